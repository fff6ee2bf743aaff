//! I/O priorities, as `ioprio_set(2)` defines them.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Shift of the class within the kernel's priority value (`IOPRIO_CLASS_SHIFT`).
const CLASS_SHIFT: u16 = 13;

/// The priority that a request carries to the block layer's scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IoPriority {
    /// That of the process: best effort at a level derived from its nice value.
    #[default]
    Inherited,
    /// Real time; level 0 (highest) to 7. Needs CAP_SYS_NICE or CAP_SYS_ADMIN.
    RealTime(u8),
    /// Best effort; level 0 (highest) to 7.
    BestEffort(u8),
    /// Served only when the device has nothing else to do.
    Idle,
}

impl IoPriority {
    /// The value of a submission entry's `ioprio` field.
    pub fn to_raw(self) -> u16 {
        match self {
            IoPriority::Inherited => 0,
            IoPriority::RealTime(level) => (1 << CLASS_SHIFT) | u16::from(level),
            IoPriority::BestEffort(level) => (2 << CLASS_SHIFT) | u16::from(level),
            IoPriority::Idle => 3 << CLASS_SHIFT,
        }
    }
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoPriority::Inherited => f.write_str("inherited"),
            IoPriority::RealTime(level) => write!(f, "rt/{level}"),
            IoPriority::BestEffort(level) => write!(f, "be/{level}"),
            IoPriority::Idle => f.write_str("idle"),
        }
    }
}

impl FromStr for IoPriority {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let level = |level: &str| level.parse::<u8>().ok().filter(|&level| level <= 7);
        let parsed = match text.split_once('/') {
            Some(("rt", number)) => level(number).map(IoPriority::RealTime),
            Some(("be", number)) => level(number).map(IoPriority::BestEffort),
            None if text == "idle" => Some(IoPriority::Idle),
            None if text == "inherited" => Some(IoPriority::Inherited),
            _ => None,
        };
        parsed.ok_or_else(|| Error::Priority { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_values_agree_with_the_kernel() {
        for (text, raw) in [("rt/0", 0x2000), ("rt/7", 0x2007), ("be/4", 0x4004), ("idle", 0x6000)] {
            let priority: IoPriority = text.parse().unwrap();
            assert_eq!(priority.to_raw(), raw);
            assert_eq!(priority.to_string(), text);
        }
        for wrong in ["", "rt", "rt/8", "be/-1", "idle/0", "high"] {
            assert!(wrong.parse::<IoPriority>().unwrap_err().to_string().contains("rt/LEVEL"), "{wrong}");
        }
    }
}
