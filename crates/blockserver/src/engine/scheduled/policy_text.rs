//! Scheduler with settings as text: `NAME key=value ...`, as in studies.

use weir_scheduler::{Class, Policy, SettingError, Settings};

use super::classes::ClassSpec;

/// Name and settings of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyText {
    name: String,
    settings: Settings,
}

impl PolicyText {
    /// Parses the text. [`build`](Self::build) checks name and settings.
    ///
    /// # Errors
    /// A word is not `key=value`, or a key is repeated.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let Some(name) = words.next() else {
            return Err("is empty. `weir list schedulers` lists the schedulers".to_owned());
        };
        let mut settings = Settings::default();
        for word in words {
            let Some((key, value)) = word.split_once('=') else {
                return Err(format!("has `{word}` after the scheduler's name. Write settings as key=value"));
            };
            if settings.0.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(format!("sets `{key}` twice. Leave one of them out"));
            }
        }
        Ok(PolicyText { name: name.to_owned(), settings })
    }

    /// Makes one scheduler for each of `heads` heads.
    ///
    /// # Errors
    /// The scheduler is unknown, or refuses the settings or the classes.
    pub fn build(&self, classes: &[ClassSpec], heads: usize) -> Result<Vec<Box<dyn Policy>>, SettingError> {
        let classes: Vec<Class> = classes.iter().map(ClassSpec::class).collect();
        (0..heads).map(|_| weir_scheduler::build(&self.name, &classes, &self.settings)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_from_the_name() {
        let policy = PolicyText::parse("hds  root_kb_s=2000 burst_ms=100").unwrap();
        assert_eq!((policy.name.as_str(), policy.settings.0.len()), ("hds", 2));
        assert!(PolicyText::parse(" ").is_err());
        assert!(PolicyText::parse("hds fast").unwrap_err().contains("key=value"));
        assert!(PolicyText::parse("hds a=1 a=2").unwrap_err().contains("twice"));
    }

    #[test]
    fn every_policy_can_be_asked_for() {
        let classes = [ClassSpec::named("a"), ClassSpec::named("b")];
        for entry in weir_scheduler::POLICIES {
            let built = PolicyText::parse(entry.name).unwrap().build(&classes, 2);
            assert_eq!(built.map(|all| all.len()).unwrap_or(0), 2, "{}", entry.name);
        }
        let error = PolicyText::parse("fcsf").unwrap().build(&classes, 1).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("did you mean `fcfs`"), "{error}");
    }
}
