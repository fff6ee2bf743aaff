//! Token: the secret shared by the hosts of a study, with proofs and keys derived from it.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::Error;

pub(crate) type HmacSha256 = Hmac<Sha256>;

/// Secret shared by the hosts of a study. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Minimum length: shorter tokens can be guessed from a recorded handshake.
const FEWEST_CHARACTERS: usize = 32;

/// Side of a connection. Proofs and keys differ between sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Coordinator,
    Host,
}

/// Values exchanged in a handshake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handshake<'a> {
    pub(crate) coordinator_nonce: &'a str,
    pub(crate) host_nonce: &'a str,
    pub(crate) host: &'a str,
    pub(crate) run: &'a str,
}

impl Token {
    /// Reads a token from a file, without surrounding blanks.
    ///
    /// # Errors
    /// The file cannot be read, is readable by others, or is too short.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let refuse = |why: String| Error::Refused(format!("{}: {why}", path.display()));
        let found = fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(refuse(format!("wrong mode (found {mode:o}, expected 600). Use chmod 600")));
        }
        let text = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        Self::new(text.trim()).map_err(|error| refuse(error.to_string()))
    }

    /// # Errors
    /// The token is too short.
    pub fn new(text: &str) -> Result<Self, Error> {
        if text.len() < FEWEST_CHARACTERS {
            let found = text.len();
            let why = format!(
                "the token is too short (found {found} characters, expected {FEWEST_CHARACTERS} or more random ones)"
            );
            return Err(Error::Refused(why));
        }
        Ok(Token(text.to_owned()))
    }

    /// Proof that a side knows the token, for this handshake only.
    pub(crate) fn proof(&self, side: Side, handshake: &Handshake<'_>) -> String {
        hex(&self.mac(purpose(side, "proof"), handshake).finalize().into_bytes())
    }

    /// Whether a proof is right, in constant time.
    pub(crate) fn is_proof(&self, proof: &str, side: Side, handshake: &Handshake<'_>) -> bool {
        unhex(proof.as_bytes())
            .is_some_and(|proof| self.mac(purpose(side, "proof"), handshake).verify_slice(&proof).is_ok())
    }

    /// Key of all messages that a side sends on the connection of this handshake.
    pub(crate) fn key(&self, side: Side, handshake: &Handshake<'_>) -> [u8; 32] {
        self.mac(purpose(side, "key"), handshake).finalize().into_bytes().into()
    }

    fn mac(&self, purpose: &str, handshake: &Handshake<'_>) -> HmacSha256 {
        let mut mac = keyed(&Sha256::digest(&self.0).into());
        let Handshake { coordinator_nonce, host_nonce, host, run } = handshake;
        // Each part with its length, which separates fields unambiguously.
        for part in [purpose, coordinator_nonce, host_nonce, host, run] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

fn purpose(side: Side, what: &str) -> &'static str {
    match (side, what) {
        (Side::Coordinator, "proof") => "weir 2 proof of the coordinator",
        (Side::Coordinator, _) => "weir 2 key of the coordinator",
        (Side::Host, "proof") => "weir 2 proof of a host",
        (Side::Host, _) => "weir 2 key of a host",
    }
}

/// HMAC with a key of 32 bytes, which HMAC pads with zeros to a block.
pub(crate) fn keyed(key: &[u8; 32]) -> HmacSha256 {
    let mut block = [0; 64];
    block[..32].copy_from_slice(key);
    <HmacSha256 as hmac::digest::KeyInit>::new(&block.into())
}

/// A random number that is used once.
pub(crate) fn nonce() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// 32 bytes from 64 lower-case hexadecimal digits.
pub(crate) fn unhex(text: &[u8]) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0123456789abcdef0123456789abcdef";

    fn handshake<'a>(numbers: [&'a str; 2], host: &'a str, run: &'a str) -> Handshake<'a> {
        Handshake { coordinator_nonce: numbers[0], host_nonce: numbers[1], host, run }
    }

    #[test]
    fn proof_is_bound_to_token_side_numbers_host_and_run() {
        let token = Token::new(TEXT).unwrap();
        let right = handshake(["1", "2"], "b", "run");
        let proof = token.proof(Side::Host, &right);
        assert!(token.is_proof(&proof, Side::Host, &right));
        assert!(!token.is_proof(&proof, Side::Coordinator, &right));
        for other in [
            handshake(["2", "1"], "b", "run"),
            handshake(["12", ""], "b", "run"),
            handshake(["1", "2"], "c", "run"),
            handshake(["1", "2"], "b", "nur"),
            handshake(["1", "2"], "br", "un"),
        ] {
            assert!(!token.is_proof(&proof, Side::Host, &other), "{other:?}");
        }
        assert!(!Token::new(&TEXT.replace('0', "1")).unwrap().is_proof(&proof, Side::Host, &right));
        for wrong in [String::new(), proof.to_uppercase(), proof[1..].to_owned(), format!("{proof}0")] {
            assert!(!token.is_proof(&wrong, Side::Host, &right), "{wrong}");
        }
        assert!(!format!("{token:?}").contains("0123"));
    }

    #[test]
    fn keys_differ_by_direction_and_connection() {
        let token = Token::new(TEXT).unwrap();
        let (one, other) = (handshake(["1", "2"], "b", "run"), handshake(["1", "3"], "b", "run"));
        let keys = [
            token.key(Side::Host, &one),
            token.key(Side::Coordinator, &one),
            token.key(Side::Host, &other),
            unhex(token.proof(Side::Host, &one).as_bytes()).unwrap(),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key));
        }
        assert_ne!(nonce().unwrap(), nonce().unwrap());
    }

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        // Test case 1, whose key of 20 bytes is filled up with zeros.
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        let mut mac = keyed(&key);
        mac.update(b"Hi There");
        assert_eq!(
            hex(&mac.finalize().into_bytes()),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
    }

    #[test]
    fn a_file_that_others_may_read_or_that_is_short_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, format!("{TEXT}\n")).unwrap();
        for (mode, text, says) in
            [(0o600, TEXT, ""), (0o400, TEXT, ""), (0o640, TEXT, "chmod 600"), (0o600, "short", "too short")]
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
