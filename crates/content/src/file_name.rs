//! File names of a file set.

/// The name of a file of a file set: its number with at least six digits, then `.dat`.
pub fn file_name(id: u32) -> String {
    format!("{id:06}.dat")
}

/// The inverse of [`file_name`]; `None` for any name that it does not produce.
pub fn file_id(name: &str) -> Option<u32> {
    let id = name.strip_suffix(".dat")?.parse().ok()?;
    (file_name(id) == name).then_some(id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_fixed() {
        assert_eq!(file_name(0), "000000.dat");
        assert_eq!(file_name(12_345_678), "12345678.dat");
        for other in ["0.dat", "+00001.dat", "000000", "000000.dat.tmp", "0000001.dat", ".dat"] {
            assert_eq!(file_id(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn every_number_has_one_name(id: u32) {
            prop_assert_eq!(file_id(&file_name(id)), Some(id));
        }
    }
}
