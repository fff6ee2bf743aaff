//! I/O priorities of the kernel (ioprio_set(2)).

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Shift of the class within the kernel's priority value (`IOPRIO_CLASS_SHIFT`).
const CLASS_SHIFT: u16 = 13;

/// An I/O priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoPriorityClass {
    /// IOPRIO_CLASS_RT.
    RealTime,
    /// IOPRIO_CLASS_BE, or no class set.
    BestEffort,
    /// IOPRIO_CLASS_IDLE.
    Idle,
}

impl IoPriorityClass {
    /// The kernel's number of the class: 1 to 3.
    pub fn number(self) -> u16 {
        match self {
            IoPriorityClass::RealTime => 1,
            IoPriorityClass::BestEffort => 2,
            IoPriorityClass::Idle => 3,
        }
    }

    /// Class of a priority value of the kernel; a process without one is best effort.
    pub fn of_value(value: u16) -> Self {
        match value >> CLASS_SHIFT {
            1 => IoPriorityClass::RealTime,
            3 => IoPriorityClass::Idle,
            _ => IoPriorityClass::BestEffort,
        }
    }
}

/// I/O priority: `rt/0` to `rt/7`, `be/0` to `be/7` (0 is highest), or `idle` (ioprio_set(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IoPriority {
    class: IoPriorityClass,
    level: u8,
}

impl IoPriority {
    /// Served only when the device has nothing else to do.
    pub const IDLE: IoPriority = IoPriority { class: IoPriorityClass::Idle, level: 0 };

    const CLASSES: [(&'static str, IoPriorityClass); 2] =
        [("rt", IoPriorityClass::RealTime), ("be", IoPriorityClass::BestEffort)];

    /// The kernel's value: class in the top 3 bits of 16.
    pub fn value(self) -> u16 {
        self.class.number() << CLASS_SHIFT | u16::from(self.level)
    }

    /// Its class.
    pub fn class(self) -> IoPriorityClass {
        self.class
    }

    /// Level within the class, from 0 (highest) to 7.
    pub fn level(self) -> u8 {
        self.level
    }
}

impl TryFrom<String> for IoPriority {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "idle" {
            return Ok(Self::IDLE);
        }
        text.split_once('/')
            .and_then(|(name, level)| {
                let (_, class) = Self::CLASSES.into_iter().find(|(known, _)| *known == name)?;
                let level = level.parse().ok().filter(|level| *level < 8)?;
                Some(IoPriority { class, level })
            })
            .ok_or_else(|| format!("`{text}` is no priority: use rt/0 to rt/7, be/0 to be/7, or idle"))
    }
}

impl From<IoPriority> for String {
    fn from(priority: IoPriority) -> String {
        priority.to_string()
    }
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::CLASSES.iter().find(|(_, class)| *class == self.class) {
            Some((name, _)) => write!(f, "{name}/{}", self.level),
            None => f.write_str("idle"),
        }
    }
}

impl JsonSchema for IoPriority {
    fn schema_name() -> Cow<'static, str> {
        "Priority".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^((rt|be)/[0-7]|idle)$", "examples": ["rt/0", "be/4", "idle"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_values_agree_with_the_kernel() {
        for (text, value) in [("rt/0", 0x2000), ("rt/7", 0x2007), ("be/4", 0x4004), ("idle", 0x6000)] {
            let priority = IoPriority::try_from(text.to_owned()).unwrap();
            assert_eq!((priority.value(), priority.to_string().as_str()), (value, text));
            assert_eq!(IoPriorityClass::of_value(value), priority.class());
            assert_eq!(serde_json::to_string(&priority).unwrap(), format!("\"{text}\""));
        }
        for wrong in ["", "rt", "rt/8", "be/-1", "idle/0", "high", "inherited"] {
            assert!(IoPriority::try_from(wrong.to_owned()).unwrap_err().contains("rt/0 to rt/7"), "{wrong}");
        }
        assert_eq!(IoPriorityClass::of_value(0), IoPriorityClass::BestEffort);
    }

    #[test]
    fn classes_have_the_words_of_servers() {
        let words = serde_json::to_string(&[
            IoPriorityClass::RealTime,
            IoPriorityClass::BestEffort,
            IoPriorityClass::Idle,
        ]);
        assert_eq!(words.unwrap(), "[\"real_time\",\"best_effort\",\"idle\"]");
    }
}
