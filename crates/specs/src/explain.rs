//! Explanation of a document that cannot be parsed: all its problems by the JSON schema of its type.
//!
//! The parser decides and stops at its first problem. This explains all of them. A general validator reports that a value
//! matches no alternative of a schema. This one picks the nearest alternative and reports its problems.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::name::quoted;
use crate::problem::nearest;

/// A field, as a path of keys joined by dots, and its problem.
pub(crate) type Finding = (String, String);

/// Recursion limit. Schemas can refer to themselves, and documents are less deep than this.
const DEEPEST: usize = 100;

/// All problems of a value by a schema.
pub(crate) fn explain(schema: &Value, value: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    Explainer { root: schema }.check(schema, value, "", DEEPEST, &mut found);
    found
}

struct Explainer<'a> {
    root: &'a Value,
}

impl<'a> Explainer<'a> {
    fn check(&self, schema: &'a Value, value: &Value, field: &str, deeper: usize, found: &mut Vec<Finding>) {
        let Some(schema) = schema.as_object().filter(|_| deeper > 0) else { return };
        if let Some(target) = self.target(schema) {
            self.check(target, value, field, deeper - 1, found);
        }
        for part in list(schema, "allOf") {
            self.check(part, value, field, deeper - 1, found);
        }
        let alternatives = self.alternatives(schema, deeper);
        if !alternatives.is_empty() {
            self.check_alternatives(&alternatives, value, field, deeper - 1, found);
        }
        let found_before = found.len();
        check_scalar(schema, value, field, found);
        if found.len() > found_before {
            return;
        }
        match value {
            Value::Object(fields) => self.check_object(schema, fields, field, deeper, found),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    if let Some(of_items) = schema.get("items") {
                        self.check(of_items, item, &join(field, &at.to_string()), deeper - 1, found);
                    }
                }
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
                if (items.len() as u64) < least {
                    found.push((
                        field.to_owned(),
                        format!("has {} items, expected at least {least}", items.len()),
                    ));
                }
            }
            _ => {}
        }
    }

    fn check_object(
        &self,
        schema: &'a Map<String, Value>,
        fields: &Map<String, Value>,
        field: &str,
        deeper: usize,
        found: &mut Vec<Finding>,
    ) {
        let own = schema.get("properties").and_then(Value::as_object);
        for (name, value) in fields {
            let at = join(field, name);
            if let Some(of_field) = own.and_then(|own| own.get(name)) {
                self.check(of_field, value, &at, deeper - 1, found);
                continue;
            }
            match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => {
                    found.push((at, unknown(name, own.into_iter().flat_map(Map::keys).map(String::as_str))));
                }
                Some(of_others) => self.check(of_others, value, &at, deeper - 1, found),
                None => {}
            }
        }
        for name in list(schema, "required").iter().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                let form = own.and_then(|own| own.get(name)).map(|of_field| self.describe(of_field, deeper));
                let form = form.map_or_else(String::new, |form| format!(": expected {form}"));
                found.push((field.to_owned(), format!("`{name}` is missing{form}")));
            }
        }
    }

    /// Checks a value by its nearest alternative.
    fn check_alternatives(
        &self,
        alternatives: &[&'a Map<String, Value>],
        value: &Value,
        field: &str,
        deeper: usize,
        found: &mut Vec<Finding>,
    ) {
        let fits = |one: &&&Map<String, Value>| match (value, object_fields(one)) {
            (Value::Object(fields), Some(own)) => {
                fields.keys().any(|name| own.contains_key(name)) || (fields.is_empty() && own.is_empty())
            }
            (Value::Object(_), None) => one.get("additionalProperties").is_some_and(Value::is_object),
            (_, Some(_)) => false,
            (_, None) => is_of_type(one, value),
        };
        let nearest = alternatives
            .iter()
            .filter(fits)
            .map(|one| {
                let mut problems = Vec::new();
                check_scalar(one, value, field, &mut problems);
                match value {
                    Value::Object(fields) => self.check_object(one, fields, field, deeper, &mut problems),
                    Value::Array(items) => {
                        for (at, item) in items.iter().enumerate() {
                            if let Some(of_items) = one.get("items") {
                                self.check(
                                    of_items,
                                    item,
                                    &join(field, &at.to_string()),
                                    deeper,
                                    &mut problems,
                                );
                            }
                        }
                    }
                    _ => {}
                }
                problems
            })
            .min_by_key(Vec::len);
        let is_word = value.is_string() && nearest.as_ref().is_some_and(|problems| !problems.is_empty());
        match nearest {
            Some(problems) if !is_word => found.extend(problems),
            _ => found.push(self.no_alternative(alternatives, value, field, deeper)),
        }
    }

    fn no_alternative(
        &self,
        alternatives: &[&'a Map<String, Value>],
        value: &Value,
        field: &str,
        deeper: usize,
    ) -> Finding {
        let words: Vec<&str> = alternatives.iter().flat_map(|one| words(one)).collect();
        let tags = || alternatives.iter().filter_map(|one| object_fields(one)).flat_map(Map::keys);
        match value {
            Value::Object(fields) if fields.len() == 1 && tags().next().is_some() => {
                let name = fields.keys().next().map(String::as_str).unwrap_or_default();
                return (join(field, name), unknown(name, tags().map(String::as_str)));
            }
            Value::String(text) if !words.is_empty() => {
                let near =
                    nearest(text, words.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
                let forms = self.forms(alternatives, deeper);
                let message = format!("found {}, expected {forms}{}", quoted(text), near.unwrap_or_default());
                return (field.to_owned(), message);
            }
            _ => {}
        }
        let hint = byte_hint(alternatives, value).unwrap_or_default();
        let forms = self.forms(alternatives, deeper);
        (field.to_owned(), format!("found {}, expected {forms}{hint}", describe_value(value)))
    }

    fn forms(&self, alternatives: &[&'a Map<String, Value>], deeper: usize) -> String {
        let forms: BTreeSet<String> = alternatives
            .iter()
            .map(|one| self.describe_map(one, deeper))
            .filter(|form| form != "nothing")
            .collect();
        forms.into_iter().collect::<Vec<_>>().join(" or ")
    }

    /// The alternatives of a schema, with nested alternatives.
    fn alternatives(&self, schema: &'a Map<String, Value>, deeper: usize) -> Vec<&'a Map<String, Value>> {
        let mut all = Vec::new();
        for one in list(schema, "anyOf").iter().chain(list(schema, "oneOf")).filter_map(Value::as_object) {
            let one = self.resolved(one, deeper);
            let inner = if deeper > 0 { self.alternatives(one, deeper - 1) } else { Vec::new() };
            if inner.is_empty() { all.push(one) } else { all.extend(inner) }
        }
        all
    }

    fn resolved(&self, schema: &'a Map<String, Value>, deeper: usize) -> &'a Map<String, Value> {
        match self.target(schema).and_then(Value::as_object) {
            Some(target) if deeper > 0 => self.resolved(target, deeper - 1),
            _ => schema,
        }
    }

    fn target(&self, schema: &Map<String, Value>) -> Option<&'a Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    fn describe(&self, schema: &'a Value, deeper: usize) -> String {
        schema.as_object().map_or_else(|| "a value".to_owned(), |map| self.describe_map(map, deeper))
    }

    fn describe_map(&self, schema: &'a Map<String, Value>, deeper: usize) -> String {
        let schema = self.resolved(schema, deeper);
        let alternatives = self.alternatives(schema, deeper);
        if !alternatives.is_empty() && deeper > 0 {
            return self.forms(&alternatives, deeper - 1);
        }
        let words = words(schema);
        if !words.is_empty() {
            return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
        }
        match types(schema).into_iter().find(|name| *name != "null") {
            Some("object") => match object_fields(schema) {
                Some(own) if !own.is_empty() => {
                    let needed: Vec<&str> =
                        list(schema, "required").iter().filter_map(Value::as_str).collect();
                    let shown: Vec<String> = own
                        .keys()
                        .filter(|name| needed.is_empty() || needed.contains(&name.as_str()))
                        .take(4)
                        .map(|name| format!("{name}: ..."))
                        .collect();
                    format!("{{{}}}", shown.join(", "))
                }
                _ => "a mapping".to_owned(),
            },
            Some(name) => type_in_words(name, schema),
            None if schema.get("type").is_some() => "nothing".to_owned(),
            None => "a value".to_owned(),
        }
    }
}

/// Type, allowed words and bounds.
fn check_scalar(schema: &Map<String, Value>, value: &Value, field: &str, found: &mut Vec<Finding>) {
    let known = words(schema);
    if let (false, Value::String(text)) = (known.is_empty(), value) {
        if !known.contains(&text.as_str()) {
            let near = nearest(text, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
            let known = known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
            let message = format!("found {}, expected {known}{}", quoted(text), near.unwrap_or_default());
            found.push((field.to_owned(), message));
        }
        return;
    }
    if !is_of_type(schema, value) {
        let expected: Vec<String> = types(schema)
            .into_iter()
            .filter(|name| *name != "null")
            .map(|name| type_in_words(name, schema))
            .collect();
        let hint = hint(schema, value, field).unwrap_or_default();
        let message = format!("found {}, expected {}{hint}", describe_value(value), expected.join(" or "));
        found.push((field.to_owned(), message));
        return;
    }
    let Some(number) = value.as_f64() else { return };
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    if bound("minimum").is_some_and(|least| number < least)
        || bound("maximum").is_some_and(|most| number > most)
        || bound("exclusiveMinimum").is_some_and(|above| number <= above)
    {
        let expected = type_in_words(types(schema).first().copied().unwrap_or("number"), schema);
        found.push((field.to_owned(), format!("found {value}, expected {expected}")));
    }
}

fn list<'a>(schema: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    schema.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn object_fields(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The words of a schema that allows only words.
fn words(schema: &Map<String, Value>) -> Vec<&str> {
    schema.get("const").into_iter().chain(list(schema, "enum")).filter_map(Value::as_str).collect()
}

fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of_type(schema: &Map<String, Value>, value: &Value) -> bool {
    let types = types(schema);
    types.is_empty()
        || types.into_iter().any(|name| match name {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            _ => true,
        })
}

fn type_in_words(name: &str, schema: &Map<String, Value>) -> String {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let range = match (bound("minimum"), bound("maximum"), bound("exclusiveMinimum")) {
        (Some(least), Some(most), _) => format!(" from {least} to {most}"),
        (Some(least), None, _) => format!(" of {least} or more"),
        (None, Some(most), _) => format!(" of {most} or less"),
        (None, None, Some(above)) => format!(" above {above}"),
        (None, None, None) => String::new(),
    };
    match name {
        "integer" => format!("a whole number{range}"),
        "number" => format!("a number{range}"),
        "string" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => "a list".to_owned(),
        "object" => "a mapping".to_owned(),
        other => other.to_owned(),
    }
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        scalar => format!("`{scalar}`"),
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let near = nearest(name, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    format!("unknown field{} (known: {})", near.unwrap_or_default(), known.join(", "))
}

fn join(field: &str, name: &str) -> String {
    if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") }
}

/// Units by the suffix of a field name, in the base unit.
const UNITS: [(&str, &str, f64); 8] = [
    ("ns", "_ns", 1e-9),
    ("us", "_us", 1e-6),
    ("ms", "_ms", 1e-3),
    ("s", "_s", 1.0),
    ("b", "_bytes", 1.0),
    ("kib", "_kib", 1024.0),
    ("mib", "_mib", 1_048_576.0),
    ("gib", "_gib", 1_073_741_824.0),
];

/// `384MiB` as its number, its unit in seconds or bytes, and whether it is a time.
fn with_unit(text: &str) -> Option<(f64, f64, bool)> {
    let end = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = (text[..end].trim().parse().ok()?, text[end..].trim().to_lowercase());
    let unit = match unit.as_str() {
        "k" | "kb" => "kib",
        "m" | "mb" => "mib",
        "g" | "gb" => "gib",
        other => other,
    };
    let at = UNITS.iter().position(|(name, ..)| *name == unit)?;
    Some((number, UNITS[at].2, at < 4))
}

/// What to write in place of a value of the wrong type.
fn hint(schema: &Map<String, Value>, value: &Value, field: &str) -> Option<String> {
    let types = types(schema);
    let wants = |name: &str| types.contains(&name);
    match value {
        Value::Bool(_) | Value::Number(_) | Value::Null if wants("string") => {
            Some("; if the text is meant, put it in quotes".to_owned())
        }
        Value::String(text) if wants("integer") || wants("number") => {
            let Some((number, unit, is_time)) = with_unit(text) else {
                let number: f64 = text.trim().parse().ok()?;
                return Some(format!(": write {number} without quotes"));
            };
            let own = UNITS.iter().position(|(_, ending, _)| field.ends_with(ending));
            match own {
                Some(at) if (at < 4) == is_time => {
                    Some(format!(": the unit is in the field's name, write {}", number * unit / UNITS[at].2))
                }
                _ => Some(": write the number without a unit".to_owned()),
            }
        }
        Value::String(text) if wants("object") => bytes_in_mapping(text, object_fields(schema)?),
        scalar if wants("array") && !scalar.is_object() => Some(format!(": write [{}]", plain(scalar))),
        _ => None,
    }
}

/// `{bytes: 67108864}` in place of `64MiB`, if an alternative has such a field.
fn byte_hint(alternatives: &[&Map<String, Value>], value: &Value) -> Option<String> {
    let text = value.as_str()?;
    alternatives.iter().filter_map(|one| object_fields(one)).find_map(|own| bytes_in_mapping(text, own))
}

fn bytes_in_mapping(text: &str, own: &Map<String, Value>) -> Option<String> {
    let (number, unit, is_time) = with_unit(text)?;
    let bytes = number * unit;
    if is_time {
        return None;
    }
    if own.contains_key("bytes") {
        return Some(format!(": write {{bytes: {bytes}}}"));
    }
    own.contains_key("fixed").then(|| format!(": write {{fixed: {{bytes: {bytes}}}}}"))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
