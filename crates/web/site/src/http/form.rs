//! `key=value&key=value`, as in the query of a URL and the body of a form.

/// The pairs of a form, decoded; a key without `=` has an empty value.
pub fn pairs(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        })
        .collect()
}

/// `+` is a space, `%41` is `A`; what is not so stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        let hex = || {
            let (pair, behind) = behind.split_at_checked(2)?;
            let byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
            Some((byte, behind))
        };
        match first {
            b'+' => bytes.push(b' '),
            b'%' => match hex() {
                Some((byte, behind)) => {
                    bytes.push(byte);
                    rest = behind;
                }
                None => bytes.push(b'%'),
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Adds a pair to a form.
pub fn put(form: &mut String, key: &str, value: &str) {
    if !form.is_empty() {
        form.push('&');
    }
    encode(form, key);
    form.push('=');
    encode(form, value);
}

fn encode(form: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                form.push(char::from(byte))
            }
            b' ' => form.push('+'),
            other => form.push_str(&format!("%{other:02X}")),
        }
    }
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
