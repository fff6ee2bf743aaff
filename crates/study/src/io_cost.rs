//! Cost model of a disk for the kernel's controller iocost (`io.weight`).

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Linear cost model of a disk with its bounds: the values of `io.cost.model` and `io.cost.qos`
/// (Documentation/admin-guide/cgroup-v2.rst).
///
/// Written `calibrated`, which `scale=...` may follow, or `rbps=... rseqiops=... rrandiops=... wbps=... wseqiops=... wrandiops=...`,
/// with any of `rpct rlat wpct wlat min max` behind it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IoCost {
    /// The model; measured before the run if absent.
    pub model: Option<CostModel>,
    /// What is set of a measured model, in %. The kernel moves the rate of its virtual time only by 4 % a period, and only under
    /// contention: a scaled model has the same effect from the first request on.
    pub scale_percent: f64,
    /// The bounds.
    pub bounds: CostBounds,
}

impl Default for IoCost {
    fn default() -> Self {
        IoCost { model: None, scale_percent: 100.0, bounds: CostBounds::default() }
    }
}

/// Throughput of a disk by kind of request, per second. `iops` are requests of 4096 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostModel {
    /// Bytes read sequentially.
    pub rbps: u64,
    /// Sequential read requests.
    pub rseqiops: u64,
    /// Random read requests.
    pub rrandiops: u64,
    /// Bytes written sequentially.
    pub wbps: u64,
    /// Sequential write requests.
    pub wseqiops: u64,
    /// Random write requests.
    pub wrandiops: u64,
}

impl CostModel {
    const NAMES: [&'static str; 6] = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];

    fn values(self) -> [u64; 6] {
        [self.rbps, self.rseqiops, self.rrandiops, self.wbps, self.wseqiops, self.wrandiops]
    }

    /// A part of it, in %.
    #[must_use]
    pub fn scaled(self, percent: f64) -> Self {
        let [rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops] =
            self.values().map(|value| ((value as f64 * percent / 100.0).round() as u64).max(1));
        CostModel { rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops }
    }

    /// The values as written in `io.cost.model` after the device number.
    pub fn words(self) -> String {
        let parts = Self::NAMES.iter().zip(self.values()).map(|(name, value)| format!("{name}={value}"));
        parts.collect::<Vec<_>>().join(" ")
    }
}

/// Bounds of the controller's adjustment of the model (`io.cost.qos`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostBounds {
    /// Percentile of read latency. 0 is off.
    pub rpct: f64,
    /// Target of this percentile, in us.
    pub rlat: u64,
    /// Percentile of write latency. 0 is off.
    pub wpct: f64,
    /// Target of this percentile, in us.
    pub wlat: u64,
    /// Smallest scaling of the model, in %.
    pub min: f64,
    /// Largest scaling of the model, in %.
    pub max: f64,
}

impl Default for CostBounds {
    /// The model is believed: the disk is divided as the weights say, and by nothing else.
    fn default() -> Self {
        CostBounds { rpct: 0.0, rlat: 250_000, wpct: 0.0, wlat: 250_000, min: 100.0, max: 100.0 }
    }
}

impl CostBounds {
    const NAMES: [&'static str; 6] = ["rpct", "rlat", "wpct", "wlat", "min", "max"];

    /// As `io.cost.qos` has it behind the disk's number.
    pub fn words(self) -> String {
        let CostBounds { rpct, rlat, wpct, wlat, min, max } = self;
        format!("rpct={rpct:.2} rlat={rlat} wpct={wpct:.2} wlat={wlat} min={min:.2} max={max:.2}")
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let decimal = |least, most| decimal(name, value, least, most);
        let whole = || {
            let found = value.parse::<u64>().ok().filter(|found| (1..=1_000_000_000).contains(found));
            found.ok_or_else(|| format!("`{name}={value}`: it must be a whole number of us, at least 1"))
        };
        match name {
            "rpct" => self.rpct = decimal(0.0, 100.0)?,
            "wpct" => self.wpct = decimal(0.0, 100.0)?,
            "rlat" => self.rlat = whole()?,
            "wlat" => self.wlat = whole()?,
            // VRATE_MIN_PPM and VRATE_MAX_PPM of block/blk-iocost.c.
            "min" => self.min = decimal(1.0, 10_000.0)?,
            _ => self.max = decimal(1.0, 10_000.0)?,
        }
        Ok(())
    }
}

/// A number within bounds, of which the kernel keeps two digits.
fn decimal(name: &str, value: &str, least: f64, most: f64) -> Result<f64, String> {
    let found = value.parse::<f64>().ok().filter(|found| (least..=most).contains(found));
    found
        .map(|found| (found * 100.0).round() / 100.0)
        .ok_or_else(|| format!("`{name}={value}`: it must be a number from {least} to {most}"))
}

/// The part of a measured model.
const SCALE: &str = "scale";
/// A model that is to be measured.
const CALIBRATED: &str = "calibrated";

impl TryFrom<String> for IoCost {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut bounds = CostBounds::default();
        let mut model = [None; 6];
        let mut is_calibrated = false;
        let mut scale_percent = None;
        let mut seen: Vec<String> = Vec::new();
        for word in text.split_ascii_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            if seen.iter().any(|known| known == name) {
                return Err(format!("`{name}` is given twice"));
            }
            seen.push(name.to_owned());
            if word == CALIBRATED {
                is_calibrated = true;
            } else if name == SCALE {
                scale_percent = Some(decimal(name, value, 1.0, 1000.0)?);
            } else if let Some(index) = CostModel::NAMES.iter().position(|known| *known == name) {
                let found = value.parse::<u64>().ok().filter(|found| (1..=1 << 50).contains(found));
                let message = || format!("`{word}`: it must be a whole number, at least 1");
                model[index] = Some(found.ok_or_else(message)?);
            } else if CostBounds::NAMES.contains(&name) {
                bounds.set(name, value)?;
            } else {
                let known = CostModel::NAMES.iter().chain(&[SCALE]).chain(&CostBounds::NAMES);
                let known = known.copied().collect::<Vec<_>>().join(", ");
                return Err(format!(
                    "`{word}` is nothing of a cost model: use {CALIBRATED}, or NAME=VALUE with {known}"
                ));
            }
        }
        if bounds.min > bounds.max {
            return Err(format!("min={} is above max={}", bounds.min, bounds.max));
        }
        let model = match model {
            [None, None, None, None, None, None] => None,
            [Some(rbps), Some(rseqiops), Some(rrandiops), Some(wbps), Some(wseqiops), Some(wrandiops)] => {
                Some(CostModel { rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops })
            }
            _ => {
                let all = CostModel::NAMES.join(", ");
                return Err(format!("a model has all of {all}, or is {CALIBRATED}"));
            }
        };
        if is_calibrated && model.is_some() {
            return Err(format!("is both {CALIBRATED} and given: choose one"));
        }
        if scale_percent.is_some() && model.is_some() {
            return Err(format!("`{SCALE}` is for a model that is {CALIBRATED}: scale the values given"));
        }
        Ok(IoCost { model, scale_percent: scale_percent.unwrap_or(100.0), bounds })
    }
}

impl From<IoCost> for String {
    fn from(cost: IoCost) -> String {
        cost.to_string()
    }
}

impl fmt::Display for IoCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.model.map_or(CALIBRATED.to_owned(), CostModel::words);
        if self.scale_percent.total_cmp(&100.0).is_ne() {
            let _ = write!(text, " {SCALE}={}", self.scale_percent);
        }
        if self.bounds != CostBounds::default() {
            let _ = write!(text, " {}", self.bounds.words());
        }
        f.write_str(&text)
    }
}

impl JsonSchema for IoCost {
    fn schema_name() -> Cow<'static, str> {
        "IoCost".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(calibrated|[a-z]+=[0-9.]+)( [a-z]+=[0-9.]+)*$",
            "examples": ["calibrated", "calibrated min=50 max=150", "calibrated scale=80",
                "rbps=150000000 rseqiops=20000 rrandiops=90 wbps=150000000 wseqiops=20000 wrandiops=90"],
            "description": "Cost model of each disk behind io.weight, and how far the kernel may depart from it"
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<IoCost, String> {
        IoCost::try_from(text.to_owned())
    }

    #[test]
    fn a_model_is_whole_or_measured() {
        assert_eq!(read("calibrated").unwrap(), IoCost::default());
        let given = read("rbps=6 rseqiops=5 rrandiops=4 wbps=3 wseqiops=2 wrandiops=1").unwrap();
        assert_eq!(
            given.model.unwrap().words(),
            "rbps=6 rseqiops=5 rrandiops=4 wbps=3 wseqiops=2 wrandiops=1"
        );
        assert!(read("rbps=6").unwrap_err().contains("has all of"));
        assert!(read("calibrated rbps=6 rseqiops=5 rrandiops=4 wbps=3 wseqiops=2 wrandiops=1").is_err());
    }

    #[test]
    fn a_measured_model_is_scaled() {
        let half = read("calibrated scale=50 min=90").unwrap();
        assert_eq!(
            half.to_string(),
            "calibrated scale=50 rpct=0.00 rlat=250000 wpct=0.00 wlat=250000 min=90.00 max=100.00"
        );
        assert_eq!(read(&half.to_string()).unwrap(), half);
        let model =
            CostModel { rbps: 1001, rseqiops: 200, rrandiops: 30, wbps: 4, wseqiops: 3, wrandiops: 1 };
        let words = "rbps=501 rseqiops=100 rrandiops=15 wbps=2 wseqiops=2 wrandiops=1";
        assert_eq!(model.scaled(half.scale_percent).words(), words);
        assert!(read(&format!("{words} scale=50")).unwrap_err().contains("scale the values given"));
        assert!(read("calibrated scale=0").unwrap_err().contains("from 1 to 1000"));
    }

    #[test]
    fn bounds_are_those_of_the_kernel() {
        let words = "rpct=0.00 rlat=250000 wpct=0.00 wlat=250000 min=100.00 max=100.00";
        assert_eq!(CostBounds::default().words(), words);
        let found = read("calibrated rpct=95 rlat=20000 min=50 max=150").unwrap().bounds;
        assert_eq!(found.words(), "rpct=95.00 rlat=20000 wpct=0.00 wlat=250000 min=50.00 max=150.00");
        assert!(read("calibrated min=200 max=100").unwrap_err().contains("above"));
        assert!(read("calibrated rpct=101").unwrap_err().contains("from 0 to 100"));
        assert!(read("calibrated vrate=5").unwrap_err().contains("rrandiops"));
        assert!(read("calibrated min=5 min=6").unwrap_err().contains("twice"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(calibrated|[a-z]{1,8}=[0-9.]{0,6})( [a-z]{3,4}=[0-9.]{0,8}){0,4}") {
            if let Ok(cost) = read(&text) {
                prop_assert_eq!(read(&cost.to_string()).unwrap(), cost);
            }
        }
    }
}
