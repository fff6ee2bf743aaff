//! Content of the benchmark's files: bytes computed from a file's number, by which a wrong file is detected.

/// Fills a buffer with the first bytes of a file.
pub(crate) fn fill(file: u64, buffer: &mut [u8]) {
    for (word, index) in buffer.chunks_mut(8).zip(0u64..) {
        let bytes = mixed(file.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(index)).to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
fn mixed(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_differ_and_a_shorter_one_is_the_beginning_of_a_longer_one() {
        let (mut one, mut other, mut short) = ([0; 4096], [0; 4096], [0; 13]);
        fill(1, &mut one);
        fill(2, &mut other);
        fill(1, &mut short);
        assert_ne!(one, other);
        assert_eq!(one[..13], short);
    }
}
