//! What lets a host into a meeting.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::Error;

/// A secret that the hosts of a study share. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Shorter ones can be guessed.
const FEWEST_CHARACTERS: usize = 32;

impl Token {
    /// Reads it; blanks around it do not count.
    ///
    /// # Errors
    /// The file cannot be read, others than its owner may read it, or it is too short.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let refuse = |why: String| Error::Refused(format!("{}: {why}", path.display()));
        let found = fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(refuse(format!("has mode {mode:o}, but is a secret: chmod 600")));
        }
        let text = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        Self::new(text.trim()).map_err(|error| refuse(error.to_string()))
    }

    /// # Errors
    /// It is too short.
    pub fn new(text: &str) -> Result<Self, Error> {
        if text.len() < FEWEST_CHARACTERS {
            let found = text.len();
            let why = format!(
                "a token of {found} characters can be guessed: use {FEWEST_CHARACTERS} random ones or more"
            );
            return Err(Error::Refused(why));
        }
        Ok(Token(text.to_owned()))
    }

    /// What who knows the token answers to a number that is used once: so the token itself is not sent. The host's and the
    /// run's names are part of it, so that an answer is of no use to another.
    pub(crate) fn answer(&self, nonce: &str, host: &str, run: &str) -> String {
        let mut digest = Sha256::new();
        // Each with its length: what one field ends with cannot be taken for what the next begins with.
        for part in [self.0.as_str(), nonce, host, run, self.0.as_str()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        hex(&digest.finalize())
    }

    /// Whether an answer is right; takes as long whichever character is wrong.
    pub(crate) fn is_answer(&self, answer: &str, nonce: &str, host: &str, run: &str) -> bool {
        let right = self.answer(nonce, host, run);
        let differ = right.bytes().zip(answer.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
        right.len() == answer.len() && differ == 0
    }
}

/// A number that is used once.
pub(crate) fn nonce() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn an_answer_is_of_one_token_number_host_and_run() {
        let token = Token::new(TEXT).unwrap();
        let answer = token.answer("1", "b", "run");
        assert!(token.is_answer(&answer, "1", "b", "run"));
        for (nonce, host, run) in [("2", "b", "run"), ("1", "c", "run"), ("1", "b", "nur"), ("1", "br", "un")]
        {
            assert!(!token.is_answer(&answer, nonce, host, run));
        }
        assert!(!Token::new(&TEXT.replace('0', "1")).unwrap().is_answer(&answer, "1", "b", "run"));
        assert!(!token.is_answer("", "1", "b", "run"));
        assert!(!format!("{token:?}").contains("0123"));
    }

    #[test]
    fn a_file_that_others_may_read_or_that_is_short_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, format!("{TEXT}\n")).unwrap();
        for (mode, text, says) in
            [(0o600, TEXT, ""), (0o400, TEXT, ""), (0o640, TEXT, "chmod 600"), (0o600, "short", "guessed")]
        {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match Token::read(&path) {
                Ok(token) => assert!(says.is_empty() && token == Token::new(TEXT).unwrap()),
                Err(error) => assert!(!says.is_empty() && error.to_string().contains(says), "{error}"),
            }
        }
        assert!(Token::read(&folder.path().join("absent")).is_err());
    }
}
