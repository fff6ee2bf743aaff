//! Pattern of written data, for checking what is read back.
//!
//! Each aligned 8-byte word is a function of its position, of the class, of the file and of a seed.
//! Two writes that overlap therefore agree on what they share, and a word that comes from elsewhere
//! in the device is noticed.

/// What the data at a position depend on, besides the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

/// An odd constant with no simple structure: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijective mix of 64 bits (the finaliser of SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Key {
    /// The key of a class's file (`None` where a device is addressed directly) under a seed.
    pub fn new(class: &str, file: Option<u32>, seed: u64) -> Self {
        let mut key = mix(seed.wrapping_add(GOLDEN));
        for &byte in class.as_bytes() {
            key = mix(key ^ u64::from(byte));
        }
        Key(mix(key ^ file.map_or(0, |id| u64::from(id) + 1)))
    }

    fn word(self, index: u64) -> u64 {
        mix(self.0.wrapping_add(index.wrapping_mul(GOLDEN)))
    }

    /// Fills `data` with the pattern at byte `offset` (any alignment).
    pub fn fill(self, offset: u64, data: &mut [u8]) {
        let skip = ((8 - offset % 8) % 8).min(data.len() as u64) as usize;
        let (head, body) = data.split_at_mut(skip);
        if !head.is_empty() {
            let from = (offset % 8) as usize;
            head.copy_from_slice(&self.word(offset / 8).to_le_bytes()[from..from + skip]);
        }
        let mut index = offset.div_ceil(8);
        let mut words = body.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.word(index).to_le_bytes());
            index += 1;
        }
        let tail = words.into_remainder();
        let length = tail.len();
        tail.copy_from_slice(&self.word(index).to_le_bytes()[..length]);
    }

    /// Whether `data` is the pattern of [`Key::fill`] at byte `offset`.
    pub fn matches(self, offset: u64, data: &[u8]) -> bool {
        let mut expected = [0_u8; 512];
        let mut at = offset;
        data.chunks(expected.len()).all(|found| {
            let expected = &mut expected[..found.len()];
            self.fill(at, expected);
            at += found.len() as u64;
            found == expected
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn classes_files_and_seeds_differ() {
        let keys = [
            Key::new("text", None, 1),
            Key::new("text", Some(0), 1),
            Key::new("text", Some(1), 1),
            Key::new("video", None, 1),
            Key::new("text", None, 2),
        ];
        for (i, a) in keys.iter().enumerate() {
            assert!(keys[i + 1..].iter().all(|b| a != b));
        }
    }

    proptest! {
        #[test]
        fn any_piece_agrees_with_the_whole(offset in 0_u64..10_000, from in 0_usize..2_000, length in 0_usize..2_000) {
            let key = Key::new("video", Some(3), 7);
            let mut whole = vec![0; from + length];
            key.fill(offset, &mut whole);
            let mut piece = vec![0; length];
            key.fill(offset + from as u64, &mut piece);
            prop_assert_eq!(&piece, &whole[from..]);
            prop_assert!(key.matches(offset, &whole));
            if length > 0 {
                piece[length / 2] ^= 1;
                prop_assert!(!key.matches(offset + from as u64, &piece));
            }
        }
    }
}
