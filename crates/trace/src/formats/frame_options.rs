//! Options of the trace format `frames`: unit, rate and order of frame sizes.

use std::str::FromStr;

/// Properties of a file of frame sizes that the file may lack.
#[derive(Debug, Clone, Default)]
pub struct FrameOptions {
    /// Unit of sizes.
    pub unit: Option<SizeUnit>,
    /// Frames a second.
    pub rate: Option<FrameRate>,
    /// Order of frames to return.
    pub order: FrameOrder,
}

/// Unit of frame sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnit {
    /// Bits.
    Bits,
    /// Bytes.
    Bytes,
}

impl FromStr for SizeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "bits" => Ok(SizeUnit::Bits),
            "bytes" => Ok(SizeUnit::Bytes),
            _ => Err(format!("unit is {text:?}, expected bits or bytes")),
        }
    }
}

/// Order in which frames are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameOrder {
    /// Display order.
    #[default]
    Display,
    /// Coding order, as stored and sent: a frame follows its reference frames.
    Coding,
}

impl FromStr for FrameOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "display" => Ok(FrameOrder::Display),
            "coding" => Ok(FrameOrder::Coding),
            _ => Err(format!("order is {text:?}, expected display or coding")),
        }
    }
}

/// Frames per second, as a fraction: exact for 30000/1001 too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRate {
    /// Number of frames,
    pub frames: u32,
    /// per this number of seconds.
    pub seconds: u32,
}

impl FrameRate {
    /// Time of a frame in ns since the first, rounded down; `None` after 292 years.
    pub fn time_ns(self, frame: u64) -> Option<i64> {
        let ns = u128::from(frame) * u128::from(self.seconds) * 1_000_000_000 / u128::from(self.frames);
        i64::try_from(ns).ok()
    }
}

impl FromStr for FrameRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = match (text.split_once('/'), text.split_once('.')) {
            (Some((frames, seconds)), _) => frames.parse().ok().zip(seconds.parse().ok()),
            (_, Some((before, after))) => u32::try_from(after.len())
                .ok()
                .and_then(|places| 10_u32.checked_pow(places))
                .and_then(|seconds| Some((format!("{before}{after}").parse().ok()?, seconds))),
            _ => text.parse().ok().map(|frames| (frames, 1)),
        };
        match rate {
            Some((frames, seconds)) if frames > 0 && seconds > 0 => Ok(FrameRate { frames, seconds }),
            _ => Err(format!(
                "rate_hz is {text:?}, expected frames per second, such as 24, 29.97 or 30000/1001"
            )),
        }
    }
}
