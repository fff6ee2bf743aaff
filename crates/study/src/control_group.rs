//! Control group of a class: the values of the kernel's I/O controllers, in the kernel's syntax.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The control group of a class, written as the kernel's files and their values:
/// `io.max.riops=1000 io.max.wbps=8388608`, `io.weight=800`, `io.bfq.weight=300`, `io.latency=10000`, `io.prio.class=idle`.
///
/// The names are those of cgroup version 2. On a host with version 1 the corresponding files of version 1 are set
/// (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/blkio-controller.rst, block/bfq-iosched.rst).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ControlGroup {
    /// Limits on the requests to each disk.
    pub max: IoMax,
    /// Weight of the controller iocost, 1 to 10000. 100 if absent.
    pub weight: Option<u32>,
    /// Weight of the scheduler bfq, 1 to 1000. 100 if absent.
    pub bfq_weight: Option<u32>,
    /// Latency target, in us. Other groups are throttled to meet it.
    pub latency_us: Option<u64>,
    /// Change of the I/O priority of its requests.
    pub prio_class: Option<PrioClass>,
}

/// Values of `io.max`. Absent ones are not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoMax {
    /// Bytes read per second.
    pub rbps: Option<u64>,
    /// Bytes written per second.
    pub wbps: Option<u64>,
    /// Read requests per second.
    pub riops: Option<u64>,
    /// Write requests per second.
    pub wiops: Option<u64>,
}

impl IoMax {
    /// Names of the values in `io.max`.
    pub const NAMES: [&'static str; 4] = ["rbps", "wbps", "riops", "wiops"];

    /// The values in the order of [`IoMax::NAMES`].
    pub fn values(self) -> [Option<u64>; 4] {
        [self.rbps, self.wbps, self.riops, self.wiops]
    }

    /// From values in the order of [`IoMax::NAMES`].
    pub fn from_values([rbps, wbps, riops, wiops]: [Option<u64>; 4]) -> Self {
        IoMax { rbps, wbps, riops, wiops }
    }

    /// Whether nothing is limited.
    pub fn is_none(self) -> bool {
        self == IoMax::default()
    }
}

/// The policies of `io.prio.class` (block/blk-ioprio.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrioClass {
    /// Requests keep their priority.
    NoChange,
    /// All that is not real-time becomes real-time.
    PromoteToRt,
    /// Real-time requests become best-effort ones.
    RestrictToBe,
    /// All become idle.
    Idle,
}

impl PrioClass {
    const ALL: [(&'static str, PrioClass); 4] = [
        ("no-change", PrioClass::NoChange),
        ("promote-to-rt", PrioClass::PromoteToRt),
        ("restrict-to-be", PrioClass::RestrictToBe),
        ("idle", PrioClass::Idle),
    ];

    /// The kernel's word for it.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("no-change", |(word, _)| word)
    }
}

/// Largest weights that the kernel takes: `CGROUP_WEIGHT_MAX`, `BFQ_MAX_WEIGHT`.
const MOST_WEIGHT: u64 = 10_000;
const MOST_BFQ_WEIGHT: u64 = 1000;

impl ControlGroup {
    /// The files of version 2 that it needs.
    pub fn files(&self) -> Vec<&'static str> {
        [
            (!self.max.is_none()).then_some("io.max"),
            self.weight.map(|_| "io.weight"),
            self.bfq_weight.map(|_| "io.bfq.weight"),
            self.latency_us.map(|_| "io.latency"),
            self.prio_class.map(|_| "io.prio.class"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = |least: u64, most: u64| {
            let found = value.parse::<u64>().ok().filter(|found| (least..=most).contains(found));
            found.ok_or_else(|| format!("`{name}={value}`: it must be a whole number from {least} to {most}"))
        };
        let once = |is_new: bool| if is_new { Ok(()) } else { Err(format!("`{name}` is given twice")) };
        if let Some(limit) = name.strip_prefix("io.max.") {
            let field = match limit {
                "rbps" => &mut self.max.rbps,
                "wbps" => &mut self.max.wbps,
                "riops" => &mut self.max.riops,
                "wiops" => &mut self.max.wiops,
                _ => return Err(unknown(name)),
            };
            // Version 1 keeps requests a second in 32 bits.
            let most = if limit.ends_with("iops") { u64::from(u32::MAX) - 1 } else { i64::MAX as u64 };
            return once(field.replace(number(1, most)?).is_none());
        }
        match name {
            "io.weight" => once(self.weight.replace(number(1, MOST_WEIGHT)? as u32).is_none()),
            "io.bfq.weight" => once(self.bfq_weight.replace(number(1, MOST_BFQ_WEIGHT)? as u32).is_none()),
            "io.latency" => once(self.latency_us.replace(number(1, 1_000_000_000)?).is_none()),
            "io.prio.class" => {
                let found = PrioClass::ALL.iter().find(|(word, _)| *word == value);
                let words = PrioClass::ALL.map(|(word, _)| word).join(", ");
                let (_, class) =
                    found.ok_or_else(|| format!("`{name}={value}`: it must be one of {words}"))?;
                once(self.prio_class.replace(*class).is_none())
            }
            _ => Err(unknown(name)),
        }
    }
}

fn unknown(name: &str) -> String {
    format!(
        "`{name}` is no value of a control group: use io.max.rbps, io.max.wbps, io.max.riops, io.max.wiops, io.weight, \
         io.bfq.weight, io.latency or io.prio.class"
    )
}

impl TryFrom<String> for ControlGroup {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut group = ControlGroup::default();
        for word in text.split_ascii_whitespace() {
            let Some((name, value)) = word.split_once('=') else {
                return Err(format!("`{word}`: write NAME=VALUE, such as io.weight=200"));
            };
            group.set(name, value)?;
        }
        Ok(group)
    }
}

impl From<ControlGroup> for String {
    fn from(group: ControlGroup) -> String {
        group.to_string()
    }
}

impl fmt::Display for ControlGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = IoMax::NAMES.iter().zip(self.max.values());
        let mut words: Vec<String> =
            max.filter_map(|(name, value)| Some(format!("io.max.{name}={}", value?))).collect();
        words.extend(self.weight.map(|weight| format!("io.weight={weight}")));
        words.extend(self.bfq_weight.map(|weight| format!("io.bfq.weight={weight}")));
        words.extend(self.latency_us.map(|target| format!("io.latency={target}")));
        words.extend(self.prio_class.map(|class| format!("io.prio.class={}", class.word())));
        f.write_str(&words.join(" "))
    }
}

impl JsonSchema for ControlGroup {
    fn schema_name() -> Cow<'static, str> {
        "ControlGroup".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(io\\.[a-z.]+=[a-z0-9-]+( io\\.[a-z.]+=[a-z0-9-]+)*)?$",
            "examples": ["io.max.riops=1000", "io.weight=800", "io.bfq.weight=300", "io.latency=10000", "io.prio.class=idle"],
            "description": "Values of a class's control group, in the kernel's words; empty: a group of its own without values"
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<ControlGroup, String> {
        ControlGroup::try_from(text.to_owned())
    }

    #[test]
    fn every_value_is_read() {
        let text = "io.max.rbps=8388608 io.max.wiops=20 io.weight=800 io.bfq.weight=300 io.latency=10000 io.prio.class=idle";
        let group = read(text).unwrap();
        assert_eq!((group.max.rbps, group.max.wbps, group.max.wiops), (Some(8_388_608), None, Some(20)));
        assert_eq!((group.weight, group.bfq_weight, group.latency_us), (Some(800), Some(300), Some(10_000)));
        assert_eq!(group.prio_class, Some(PrioClass::Idle));
        assert_eq!(group.to_string(), text);
        assert_eq!(group.files(), ["io.max", "io.weight", "io.bfq.weight", "io.latency", "io.prio.class"]);
        assert_eq!(read("").unwrap(), ControlGroup::default());
    }

    #[test]
    fn what_the_kernel_would_refuse_is_named() {
        assert!(read("io.weight=0").unwrap_err().contains("from 1 to 10000"));
        assert!(read("io.bfq.weight=1001").unwrap_err().contains("from 1 to 1000"));
        assert!(read("io.max.riops=max").unwrap_err().contains("whole number"));
        assert!(read("io.max.iops=5").unwrap_err().contains("io.max.riops"));
        assert!(read("io.prio.class=none").unwrap_err().contains("restrict-to-be"));
        assert!(read("io.weight=5 io.weight=6").unwrap_err().contains("twice"));
        assert!(read("io.weight").unwrap_err().contains("NAME=VALUE"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z.= 0-9-]{0,60}") {
            if let Ok(group) = read(&text) {
                prop_assert_eq!(read(&group.to_string()).unwrap(), group);
            }
        }

        #[test]
        fn limits_survive_their_text(values in proptest::array::uniform4(proptest::option::of(1u64..1 << 31))) {
            let group = ControlGroup { max: IoMax::from_values(values), ..ControlGroup::default() };
            prop_assert_eq!(read(&group.to_string()).unwrap(), group);
        }
    }
}
