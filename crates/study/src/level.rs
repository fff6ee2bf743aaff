//! Schedulers and architectures as levels of factors.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use weir_specs::{name_problem, quoted};

/// Longest name of a tunable, and longest value, in characters.
const LONGEST_TUNABLE: usize = 64;
const LONGEST_VALUE: usize = 1024;

/// Whether a value has only characters that settings of weir's own schedulers use, such as the tree `A:0.5(b:65%,c:w2)`.
fn is_value(value: &str) -> bool {
    (1..=LONGEST_VALUE).contains(&value.len())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:,()%+".contains(c))
}

/// A scheduler, with the tunables that differ from its defaults.
///
/// Written `mq-deadline` or `mq-deadline read_expire=100 fifo_batch=1`. A kernel scheduler is one of
/// [`weir_scheduler::KERNEL_SCHEDULERS`]; its tunables are the files in `/sys/block/DEV/queue/iosched/`. One of weir's
/// own schedulers has settings instead (`weir list schedulers`); on testbed `device` it orders the requests of modelled
/// disks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scheduler {
    /// Its name.
    pub name: String,
    /// Tunables by name.
    pub tunables: BTreeMap<String, String>,
}

impl Scheduler {
    /// One without tunables.
    pub fn named(name: &str) -> Self {
        Scheduler { name: name.to_owned(), tunables: BTreeMap::new() }
    }

    /// Whether it is a kernel scheduler and not one of weir's own.
    pub fn is_of_kernel(&self) -> bool {
        weir_scheduler::kernel_scheduler(&self.name).is_some()
    }
}

impl TryFrom<String> for Scheduler {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let name = words.next().unwrap_or_default();
        if name_problem(name).is_some() {
            return Err(format!(
                "{} is no scheduler: write its name, such as mq-deadline or scan-edf",
                quoted(&text)
            ));
        }
        let is_of_kernel = weir_scheduler::kernel_scheduler(name).is_some();
        let mut tunables = BTreeMap::new();
        for word in words {
            let (tunable, value) = word.split_once('=').unwrap_or((word, ""));
            // It names a file below /sys, and its value is written there.
            let is_file_name = tunable.len() <= LONGEST_TUNABLE
                && tunable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if tunable.is_empty() || !is_file_name || !is_value(value) {
                return Err(format!(
                    "{} is no tunable: write NAME=VALUE, such as read_expire=100, with letters, digits and _ in the name",
                    quoted(word)
                ));
            }
            if is_of_kernel && value.parse::<i64>().map(|number| number.to_string()).as_deref() != Ok(value) {
                return Err(format!(
                    "tunable `{tunable}` of {name} is {}; the kernel takes a whole number",
                    quoted(value)
                ));
            }
            if tunables.insert(tunable.to_owned(), value.to_owned()).is_some() {
                return Err(format!("tunable `{tunable}` is given twice"));
            }
        }
        Ok(Scheduler { name: name.to_owned(), tunables })
    }
}

impl From<Scheduler> for String {
    fn from(scheduler: Scheduler) -> String {
        scheduler.to_string()
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.tunables.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl JsonSchema for Scheduler {
    fn schema_name() -> Cow<'static, str> {
        "Scheduler".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[A-Za-z0-9_-]+( [a-z0-9_]+=[^ ]+)*$",
            "examples": ["none", "mq-deadline", "kyber", "bfq", "scan", "scan-edf", "cello"],
            "description": "Scheduler, with tunables as in `mq-deadline read_expire=100`: the kernel's on the device testbed, or a policy of weir's own, which is what the simulator has"
        })
    }
}

/// Sharing of disks between classes (Shenoy, Goyal and Vin).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// Each class has its own disks.
    Partitioned,
    /// All classes share one array of all disks.
    Integrated,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_survive_their_text() {
        for text in ["none", "mq-deadline fifo_batch=1 read_expire=100"] {
            assert_eq!(Scheduler::try_from(text.to_owned()).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_scheduler_is_refused() {
        assert!(Scheduler::try_from("../none".to_owned()).is_err());
        assert!(Scheduler::try_from(String::new()).is_err());
        for text in [
            "bfq ../../x=1",
            "mq-deadline ../../../../etc/passwd=1",
            "mq-deadline read_expire=",
            "mq-deadline read_expire=1;id",
            "mq-deadline read_expire=$(id)",
            "mq-deadline read_expire=many",
            "mq-deadline read_expire=+1",
            "mq-deadline read_expire=1\0",
            "bfq low.latency=0",
            "hds tree=`id`",
            "-x",
            "\u{e9}",
        ] {
            assert!(Scheduler::try_from(text.to_owned()).is_err(), "{text}");
        }
        let long = format!("hds tree={}", "a".repeat(1 << 20));
        assert!(Scheduler::try_from(long).unwrap_err().len() < 300);
        assert!(
            Scheduler::try_from("hds root_kb_s=18000 tree=A:0.5(s1:1),B:0.5(s2:65%,s3:w2)".to_owned())
                .is_ok()
        );
    }
}
