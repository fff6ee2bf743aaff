//! Sizes and times with a unit, as fio writes them: `4k`, `64KiB`, `100ms`, `2h`.
//!
//! The name of a field ends with its unit (`size_bytes`, `duration_s`). Where such a field has a text, the text is read
//! here and becomes a number in the unit of the field, before anything else reads the document. Plans and records
//! therefore have plain numbers.
//!
//! `k` is 1024, as in fio, whose jobs are copied into specifications. `KiB` is 1024, as in IEC 80000-13. `kB` is 1000 in
//! the SI and 1024 in fio: it is refused. (fio reads `KiB` as 1000 unless `kb_base=1000`; nothing else does.)

use serde_json::{Map, Number, Value, json};

use crate::name::quoted;
use crate::tree::{Located, Node};

/// Units of size, in bytes.
const SIZES: [(&str, u128); 6] =
    [("", 1), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30), ("t", 1 << 40), ("p", 1 << 50)];
/// Units of time, in ns.
const TIMES: [(&str, u128); 12] = [
    ("ns", 1),
    ("nsec", 1),
    ("us", 1_000),
    ("usec", 1_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
/// Most digits of a number with a unit: the largest product stays below 2^128.
const MOST_DIGITS: usize = 20;
/// Numbers with a unit, for editors.
const SIZE_PATTERN: &str = r"^[0-9]+(\.[0-9]+)? ?([bB]|[kKmMgGtTpP]([iI][bB]?)?)$";
const TIME_PATTERN: &str = r"^[0-9]+(\.[0-9]+)? ?(ns(ec)?|us(ec)?|ms(ec)?|s(ec)?|m(in)?|h|d)$";

/// What a field measures, and its unit in bytes or ns.
#[derive(Clone, Copy)]
enum Measure {
    Size(u128),
    Time(u128),
}

impl Measure {
    /// The measure of a field, by the end of its name; none of a field without unit, or of a rate.
    fn of(name: &str) -> Option<Self> {
        let last = name.rsplit('.').next().unwrap_or(name);
        let (before, unit) = last.rsplit_once('_').unwrap_or(("", last));
        let is_rate = ["per", "mb"].contains(&before.rsplit('_').next().unwrap_or(before));
        match unit {
            "bytes" => Some(Self::Size(1)),
            "kib" => Some(Self::Size(1 << 10)),
            "mib" => Some(Self::Size(1 << 20)),
            "gib" => Some(Self::Size(1 << 30)),
            "ns" => Some(Self::Time(1)),
            "us" => Some(Self::Time(1_000)),
            "ms" => Some(Self::Time(1_000_000)),
            // The word alone is no unit.
            "s" if !before.is_empty() && !is_rate => Some(Self::Time(1_000_000_000)),
            _ => None,
        }
    }

    /// The factor of a unit, in bytes or ns; or why it is refused.
    fn factor(self, unit: &str) -> Result<u128, String> {
        match self {
            Self::Size(_) => {
                let lower = unit.to_ascii_lowercase();
                let (prefix, rest) = lower.split_at(lower.chars().next().map_or(0, char::len_utf8));
                if matches!((prefix, rest), ("k" | "m" | "g" | "t" | "p", "b")) {
                    return Err("is ambiguous: a power of 1000 in the SI, of 1024 in fio".to_owned());
                }
                let prefix = if lower == "b" { "" } else { prefix };
                SIZES
                    .iter()
                    .find(|(name, _)| *name == prefix && matches!(rest, "" | "i" | "ib"))
                    .map(|(_, factor)| *factor)
                    .ok_or_else(|| "is no unit of size".to_owned())
            }
            Self::Time(_) => TIMES
                .iter()
                .find(|(name, _)| *name == unit)
                .map(|(_, factor)| *factor)
                .ok_or_else(|| "is no unit of time".to_owned()),
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Size(_) => "Write B, KiB, MiB, GiB, TiB or PiB (or k, m, g, t, p, which are the same)",
            Self::Time(_) => "Write ns, us, ms, s, m (minutes), h or d",
        }
    }
}

/// A number in the unit of the field, of a text that begins with a digit; none if the text is a number or another text.
fn number(measure: Measure, text: &str) -> Option<Result<Value, String>> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || unit.is_empty() {
        return None;
    }
    Some(in_unit(measure, digits, unit).map_err(|problem| format!("found {}: {problem}", quoted(text))))
}

fn in_unit(measure: Measure, digits: &str, unit: &str) -> Result<Value, String> {
    let factor = measure
        .factor(unit)
        .map_err(|problem| format!("{} {problem}. {}", quoted(unit), measure.remedy()))?;
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{decimals}");
    if all.len() > MOST_DIGITS {
        return Err(format!("has more than {MOST_DIGITS} digits. Write a shorter number"));
    }
    let all: u128 = all.parse().map_err(|_| "is no number. Write digits and a unit".to_owned())?;
    let (Measure::Size(own) | Measure::Time(own)) = measure;
    let (amount, unit_of_field) = (all * factor, own * 10_u128.pow(decimals.len() as u32));
    if amount % unit_of_field == 0 {
        return u64::try_from(amount / unit_of_field)
            .map(|number| Value::Number(number.into()))
            .map_err(|_| "is too large for this field. Write a smaller number".to_owned());
    }
    if own == 1 {
        return Err("is no whole number of the field's unit. Write a whole number".to_owned());
    }
    // Both are below 2^53 for all values of use: the quotient is the number that its decimal digits give.
    let quotient = amount as f64 / unit_of_field as f64;
    Number::from_f64(quotient).map(Value::Number).ok_or_else(|| "is no finite number".to_owned())
}

/// A size of text in bytes: digits, and a unit unless it is bytes.
///
/// # Errors
/// Why it is none, with what was found and what to write.
pub fn bytes(text: &str) -> Result<u64, String> {
    let read = match text.parse::<u64>() {
        Ok(number) => return Ok(number),
        Err(_) => number(Measure::Size(1), text),
    };
    read.unwrap_or_else(|| Err(format!("found {}, no size. Write 4096, 4KiB or 1MiB", quoted(text))))
        .map(|number| number.as_u64().unwrap_or_default())
}

/// A field whose text was read, or refused: its path, joined by dots, and its text or the problem.
pub(crate) type Found = (String, String);

/// Replaces texts with a unit by numbers. Returns the texts that were replaced, or every problem.
pub(crate) fn resolve(tree: &mut Located) -> Result<Vec<Found>, Vec<Found>> {
    let (mut written, mut problems) = (Vec::new(), Vec::new());
    walk(tree, None, false, "", &mut written, &mut problems);
    if problems.is_empty() { Ok(written) } else { Err(problems) }
}

fn walk(
    node: &mut Located,
    measure: Option<Measure>,
    is_setting: bool,
    field: &str,
    written: &mut Vec<Found>,
    problems: &mut Vec<Found>,
) {
    let join = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
    match &mut node.node {
        Node::Mapping(pairs) => {
            for (key, _, child) in pairs {
                let is_setting = field == "settings" || field.ends_with(".settings");
                walk(child, Measure::of(key), is_setting, &join(key), written, problems);
            }
        }
        Node::Sequence(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                walk(item, measure, false, &join(&at.to_string()), written, problems);
            }
        }
        Node::Scalar(value) => {
            let Some((text, read)) = value
                .as_str()
                .zip(measure)
                .and_then(|(text, measure)| number(measure, text).map(|read| (text.to_owned(), read)))
            else {
                return;
            };
            match read {
                Ok(number) => {
                    // Settings of daemons are texts.
                    *value = if is_setting { Value::String(number.to_string()) } else { number };
                    written.push((field.to_owned(), text));
                }
                Err(problem) => problems.push((field.to_owned(), problem)),
            }
        }
    }
}

/// Adds texts with a unit to the JSON schema of a file that users write, wherever a field with a unit is a number.
pub fn accept_units(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
                for (name, field) in properties {
                    if let Some(measure) = Measure::of(name) {
                        accept(measure, field);
                    }
                }
            }
            fields.values_mut().for_each(accept_units);
        }
        Value::Array(items) => items.iter_mut().for_each(accept_units),
        _ => {}
    }
}

/// Accepts texts in a field, and in the items of a list. A pattern concerns texts only, and a minimum numbers only.
fn accept(measure: Measure, field: &mut Value) {
    let Some(field) = field.as_object_mut() else { return };
    if let Some(items) = field.get_mut("items") {
        accept(measure, items);
    }
    let types = match field.get("type") {
        Some(Value::String(one)) => vec![json!(one)],
        Some(Value::Array(several)) => several.clone(),
        _ => return,
    };
    if types.iter().any(|one| one == "integer" || one == "number") {
        add_text(field, types, measure);
    }
}

fn add_text(field: &mut Map<String, Value>, mut types: Vec<Value>, measure: Measure) {
    types.push(json!("string"));
    field.insert("type".to_owned(), Value::Array(types));
    let pattern = if matches!(measure, Measure::Size(_)) { SIZE_PATTERN } else { TIME_PATTERN };
    field.insert("pattern".to_owned(), json!(pattern));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(field: &str, text: &str) -> Result<Value, String> {
        number(Measure::of(field).expect("a field with a unit"), text).expect("a number with a unit")
    }

    #[test]
    fn sizes_and_times_become_numbers_in_the_unit_of_the_field() {
        for (field, text, expected) in [
            ("size_bytes", "4k", json!(4096)),
            ("files.size.fixed.bytes", "64KiB", json!(65536)),
            ("size_mib", "1g", json!(1024)),
            ("block_kib", "1.5 MiB", json!(1536)),
            ("bytes", "512B", json!(512)),
            ("duration_s", "2h", json!(7200)),
            ("warmup_s", "100ms", json!(0.1)),
            ("think_us", "3ms", json!(3000)),
            ("interval_ms", "250us", json!(0.25)),
            ("deadline_ns", "10s", json!(10_000_000_000_u64)),
            ("duration_s", "2m", json!(120)),
            ("duration_s", "1d", json!(86400)),
        ] {
            assert_eq!(read(field, text), Ok(expected), "{field}: {text}");
        }
    }

    #[test]
    fn what_is_ambiguous_wrong_or_not_whole_is_refused() {
        for (field, text, problem) in [
            ("size_bytes", "4kB", "ambiguous"),
            ("size_bytes", "4MB", "ambiguous"),
            ("size_bytes", "10s", "no unit of size"),
            ("duration_s", "4k", "no unit of time"),
            ("duration_s", "4 parsecs", "no unit of time"),
            ("size_bytes", "0.3k", "whole"),
            ("size_bytes", "99999999p", "too large"),
            ("size_bytes", "1.2.3k", "no number"),
            ("size_bytes", "123456789012345678901k", "digits"),
        ] {
            let found = read(field, text).unwrap_err();
            assert!(found.contains(problem) && found.contains(text), "{field}: {text}: {found}");
        }
    }

    #[test]
    fn rates_names_and_plain_texts_are_left_alone() {
        for name in ["rate_per_s", "requests_per_s", "interface_mb_s", "s", "words", "capacity_gb", "rate_hz"]
        {
            assert!(Measure::of(name).is_none(), "{name}");
        }
        for text in ["12", "1.5", "k", "", "-4k", "four k", "."] {
            assert!(number(Measure::Size(1), text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_schema_accepts_texts_in_fields_with_a_unit_only() {
        let mut schema = json!({"properties": {
            "size_bytes": {"type": ["integer", "null"], "minimum": 0},
            "block_kib": {"type": "array", "items": {"type": "integer"}},
            "count": {"type": "integer"},
            "response_ms": {"type": "object", "properties": {"think_us": {"type": "integer"}}},
        }});
        accept_units(&mut schema);
        let of = |path: &str| schema.pointer(path).cloned();
        assert_eq!(of("/properties/size_bytes/type"), Some(json!(["integer", "null", "string"])));
        assert_eq!(of("/properties/block_kib/items/type"), Some(json!(["integer", "string"])));
        assert_eq!(of("/properties/count/type"), Some(json!("integer")));
        assert_eq!(of("/properties/response_ms/type"), Some(json!("object")));
        assert_eq!(
            of("/properties/response_ms/properties/think_us/type"),
            Some(json!(["integer", "string"]))
        );
    }

    proptest! {
        /// Any text gives a number, a problem, or is left alone.
        #[test]
        fn no_text_panics(text in "[0-9. ]{0,24}[a-zA-Zµ/]{0,5}") {
            for measure in [Measure::Size(1 << 20), Measure::Time(1_000_000_000)] {
                number(measure, &text);
            }
        }
    }
}
