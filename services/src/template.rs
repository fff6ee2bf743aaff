//! Texts with placeholders: `{port}`, `{data}` and so on.

use std::collections::BTreeMap;

/// What placeholders stand for.
pub type Values = BTreeMap<String, String>;

/// Fills in every placeholder: a name of small letters, digits and `_` between braces. Other braces stay as they are.
///
/// # Errors
/// A placeholder that stands for nothing; the text names it and those that there are.
pub(crate) fn fill(text: &str, values: &Values) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        match placeholder(rest) {
            Some(name) => {
                let value = values.get(name).ok_or_else(|| {
                    let known: Vec<&str> = values.keys().map(String::as_str).collect();
                    format!("{{{name}}} stands for nothing; there are {}", known.join(", "))
                })?;
                filled.push_str(value);
                rest = &rest[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The name at the beginning of a text that begins with a brace.
fn placeholder(text: &str) -> Option<&str> {
    let name = &text[1..text.find('}')?];
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let values: Values =
            [("port", "80"), ("run_2", "/x")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let filled = fill("http { listen {port}; }\n{}{run_2}{Port}", &values).unwrap();
        assert_eq!(filled, "http { listen 80; }\n{}/x{Port}");
        assert!(
            fill("{user}", &values).unwrap_err().contains("{user} stands for nothing; there are port, run_2")
        );
    }
}
