//! Problems of a specification: file, line, field, message.

use std::fmt;
use std::path::PathBuf;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// Line from 1, if known.
    pub line: Option<u64>,
    /// Dotted path of the field; empty for the document as a whole.
    pub field: String,
    /// What was found, what is expected, and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All problems of one or more files. Never empty when it is an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// `Ok(value)` if there is no problem.
    ///
    /// # Errors
    /// All the problems.
    pub fn or<T>(self, value: T) -> Result<T, Problems> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Problems(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Length of the longest name for which a similar one is searched, in letters.
const LONGEST_NAME: usize = 200;

/// The known name nearest to `found`, if it is similar enough.
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing takes time and memory by the product of their lengths.
    if found.len() > LONGEST_NAME {
        return None;
    }
    let distance = |name: &str| strsim::damerau_levenshtein(&found.to_lowercase(), &name.to_lowercase());
    let (distance, name) = known.into_iter().map(|name| (distance(name), name)).min()?;
    // Up to a third of the letters may differ, and at least two edits for short words.
    (distance <= (found.chars().count() / 3).max(2)).then_some(name)
}

/// Message for an unknown name, with the nearest known name or all of them.
pub fn one_of<'a>(what: &str, found: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let found = &shortened(found);
    let meant = match nearest(found, known.iter().copied()) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    };
    match known.as_slice() {
        [] => format!("unknown {what} `{found}`"),
        _ => format!("unknown {what} `{found}`{meant} (known: {})", known.join(", ")),
    }
}

/// Text that may be very long, for a message.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_NAME) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_long_name_is_neither_compared_nor_repeated() {
        let long = "n".repeat(10_000_000);
        assert_eq!(nearest(&long, ["none"]), None);
        assert!(one_of("scheduler", &long, ["none"]).len() < 300);
    }

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        assert_eq!(nearest("mq-deadlnie", ["none", "mq-deadline", "bfq"]), Some("mq-deadline"));
        assert_eq!(nearest("quantum", ["none", "mq-deadline", "bfq"]), None);
    }
}
