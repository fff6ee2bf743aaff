//! Generated text and random numbers of the populations.

use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The syllables of the digits 0 to 9 (TPC-W, clause 4.7).
const SYLLABLES: [&str; 10] = ["BA", "OG", "AL", "RI", "RE", "SE", "AT", "UL", "IN", "NG"];
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
/// Syllables of filler words.
const PARTS: [&str; 24] = [
    "ab", "an", "ba", "ca", "de", "di", "el", "en", "fa", "ga", "he", "in", "ka", "lo", "ma", "no", "or",
    "pe", "ra", "se", "ta", "un", "ve", "wi",
];

/// DIGSYL: a number as syllables, one for each digit, padded to `digits` digits (0: no padding).
pub fn digsyl(number: u64, digits: usize) -> String {
    format!("{number:0digits$}").bytes().map(|digit| SYLLABLES[usize::from(digit - b'0')]).collect()
}

/// The generator of a row: its numbers depend only on the seed, the table and the row's number, not on the order of
/// generation or the number of threads.
pub fn row_generator(seed: u64, table: &str, row: u64) -> ChaCha8Rng {
    // FNV-1a, 64 bits (Fowler, Noll, Vo).
    let hash = table
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ hash);
    rng.set_stream(row);
    rng
}

/// Small letters, from `least` to `most` of them.
pub fn letters(rng: &mut impl Rng, least: usize, most: usize) -> String {
    let count = rng.random_range(least..=most);
    (0..count).map(|_| char::from(LETTERS[rng.random_range(0..LETTERS.len())])).collect()
}

/// Digits, `count` of them.
pub fn digits(rng: &mut impl Rng, count: usize) -> String {
    (0..count).map(|_| char::from(b'0' + rng.random_range(0..10u8))).collect()
}

/// Words with spaces between them, from `least` to `most` characters in all.
pub fn words(rng: &mut impl Rng, least: usize, most: usize) -> String {
    let count = rng.random_range(least..=most);
    let mut text = String::with_capacity(count + 8);
    while text.len() < count {
        if !text.is_empty() {
            text.push(' ');
        }
        for _ in 0..rng.random_range(1..=4) {
            text.push_str(PARTS[rng.random_range(0..PARTS.len())]);
        }
    }
    text.truncate(count);
    // A space at the end would be lost by engines that compare padded.
    if text.ends_with(' ') {
        text.pop();
        text.push('x');
    }
    text
}

/// NURand (TPC-W, clause 2.1.13 as in TPC-C 2.1.6): uneven numbers from `least` to `most`.
pub fn nurand(rng: &mut impl Rng, a: u64, least: u64, most: u64) -> u64 {
    let mixed = rng.random_range(0..=a) | rng.random_range(least..=most);
    mixed % (most - least + 1) + least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digsyl_as_the_specification_shows() {
        assert_eq!(digsyl(18273, 0), "OGINALULRI");
        assert_eq!(digsyl(7, 3), "BABAUL");
    }

    #[test]
    fn a_row_does_not_depend_on_its_neighbours() {
        let row = |number| letters(&mut row_generator(1, "item", number), 30, 30);
        assert_eq!(row(5), row(5));
        assert_ne!(row(5), row(6));
        assert_ne!(row(5), letters(&mut row_generator(1, "author", 5), 30, 30));
    }

    #[test]
    fn lengths_are_kept() {
        let mut rng = row_generator(1, "x", 0);
        for _ in 0..1000 {
            let text = words(&mut rng, 14, 60);
            assert!((14..=60).contains(&text.len()) && !text.ends_with(' '), "{text:?}");
        }
        assert!((0..1000).all(|_| (3..=50).contains(&nurand(&mut rng, 63, 3, 50))));
    }
}
