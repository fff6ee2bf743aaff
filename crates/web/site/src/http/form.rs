//! Forms (`key=value&key=value`), as in the query of a URL and the body of a POST request.

/// The pairs of a form, decoded; a key without `=` has an empty value. An escape that is not hexadecimal stays as it is.
pub fn pairs(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// Appends a pair to a form.
pub fn put(form: &mut String, key: &str, value: &str) {
    form_urlencoded::Serializer::for_suffix(form, 0).append_pair(key, value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_escape_stays() {
        let found = pairs("a=1%2&b&c=%zz+%C3%A9&&=x");
        let found: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(found, [("a", "1%2"), ("b", ""), ("c", "%zz é"), ("", "x")]);
    }

    proptest! {
        #[test]
        fn forms_there_and_back(given in proptest::collection::vec(("\\PC{1,8}", "\\PC{0,8}"), 0..5)) {
            let mut form = String::new();
            given.iter().for_each(|(key, value)| put(&mut form, key, value));
            prop_assert_eq!(pairs(&form), given);
        }

        #[test]
        fn no_form_is_too_strange(text in "[%+=&a-f0-9é]{0,40}") {
            let _ = pairs(&text);
        }
    }
}
