//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the client's side, as PostgreSQL asks for it.

use sha2::{Digest, Sha256};

const BLOCK_BYTES: usize = 64;
/// More rounds than any server asks for; a server may not keep its client busy for ever.
const MOST_ROUNDS: u32 = 1_000_000;

type Hash = [u8; 32];

fn hash(text: &[u8]) -> Hash {
    Sha256::digest(text).into()
}

/// HMAC-SHA-256 (RFC 2104).
fn hmac(key: &[u8], text: &[u8]) -> Hash {
    let mut block = [0u8; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        block[..32].copy_from_slice(&hash(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new();
    inner.update(block.map(|byte| byte ^ 0x36));
    inner.update(text);
    let mut outer = Sha256::new();
    outer.update(block.map(|byte| byte ^ 0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

/// PBKDF2 with HMAC-SHA-256 and one block (RFC 8018).
fn stretched(password: &str, salt: &[u8], rounds: u32) -> Hash {
    let mut last = hmac(password.as_bytes(), &[salt, &1u32.to_be_bytes()].concat());
    let mut all = last;
    for _ in 1..rounds {
        last = hmac(password.as_bytes(), &last);
        all.iter_mut().zip(last).for_each(|(to, from)| *to ^= from);
    }
    all
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut three = [0u8; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for place in 0..4 {
            if place <= chunk.len() {
                text.push(char::from(LETTERS[(bits >> (18 - 6 * place) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        bits = bits << 6 | LETTERS.iter().position(|letter| *letter == byte)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// One authentication.
pub(super) struct Scram {
    password: String,
    first: String,
    /// What the server must prove at the end.
    server_signature: Option<Hash>,
}

impl Scram {
    /// Begins with a nonce of printable characters.
    pub(super) fn new(password: String, nonce: &str) -> Self {
        // PostgreSQL takes the user's name from the startup message, and an empty one here.
        Scram { password, first: format!("n=,r={nonce}"), server_signature: None }
    }

    /// The client's first message.
    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.first)
    }

    /// The client's final message, given the server's first.
    pub(super) fn answer(&mut self, server: &str) -> Result<String, &'static str> {
        let field = |letter: &str| server.split(',').find_map(|field| field.strip_prefix(letter));
        let nonce = field("r=").ok_or("the server's SCRAM message has no nonce")?;
        if !nonce.starts_with(&self.first["n=,r=".len()..]) {
            return Err("the server's SCRAM nonce does not continue ours");
        }
        let salt = field("s=").and_then(from_base64).ok_or("the server's SCRAM message has no salt")?;
        let rounds = field("i=").and_then(|text| text.parse().ok()).unwrap_or(0);
        if rounds == 0 || rounds > MOST_ROUNDS {
            return Err("the server asks for an impossible number of SCRAM rounds");
        }
        let salted = stretched(&self.password, &salt, rounds);
        let client_key = hmac(&salted, b"Client Key");
        let last = format!("c=biws,r={nonce}");
        let all = format!("{},{server},{last}", self.first);
        let mut proof = hmac(&hash(&client_key), all.as_bytes());
        proof.iter_mut().zip(client_key).for_each(|(to, from)| *to ^= from);
        self.server_signature = Some(hmac(&hmac(&salted, b"Server Key"), all.as_bytes()));
        Ok(format!("{last},p={}", base64(&proof)))
    }

    /// Whether the server knows the password, too.
    pub(super) fn verify(&self, server: &str) -> bool {
        let proof = server.split(',').find_map(|field| field.strip_prefix("v=")).and_then(from_base64);
        proof.is_some() && proof.as_deref() == self.server_signature.as_ref().map(|hash| &hash[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3. PostgreSQL sends no user name, so that only the first message differs.
    #[test]
    fn the_example_of_the_standard() {
        let mut scram = Scram::new("pencil".into(), "rOprNGfwEbeRWgbNEkqO");
        scram.first = "n=user,r=rOprNGfwEbeRWgbNEkqO".into();
        // `answer` checks the nonce behind `n=,r=`, which here is `n=user,r=`: the standard's values are checked in parts.
        let server = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let salted = stretched("pencil", &from_base64("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap(), 4096);
        let key = hmac(&salted, b"Client Key");
        let all =
            format!("{},{server},c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", scram.first);
        let mut proof = hmac(&hash(&key), all.as_bytes());
        proof.iter_mut().zip(key).for_each(|(to, from)| *to ^= from);
        assert_eq!(base64(&proof), "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let signature = hmac(&hmac(&salted, b"Server Key"), all.as_bytes());
        assert_eq!(base64(&signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        scram.server_signature = Some(signature);
        assert!(scram.verify("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        assert!(!scram.verify("v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        assert!(!scram.verify("e=other-error"));
    }

    #[test]
    fn base64_there_and_back() {
        for text in ["", "f", "fo", "foo", "foob", "fooba", "foobar"] {
            assert_eq!(from_base64(&base64(text.as_bytes())).unwrap(), text.as_bytes());
        }
        assert_eq!(base64(b"foob"), "Zm9vYg==");
    }
}
