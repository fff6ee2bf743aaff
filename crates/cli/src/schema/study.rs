//! Reference of the fields of a study, from its JSON Schema, with an example of each from studies that tests plan.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use weir_specs::Document;

/// The studies that examples are taken from.
const EXAMPLES: [&str; 14] = [
    include_str!("../../../../docs/reference/examples/device.yml"),
    include_str!("../../../../docs/reference/examples/held.yml"),
    include_str!("../../../../docs/reference/examples/cached.yml"),
    include_str!("../../../../docs/reference/examples/simulator.yml"),
    include_str!("../../../../docs/reference/examples/web.yml"),
    include_str!("../../../../docs/reference/examples/auction.yml"),
    include_str!("../../../../docs/reference/examples/network.yml"),
    include_str!("../../../../docs/reference/examples/hosts.yml"),
    include_str!("../../../../docs/reference/examples/access.yml"),
    include_str!("../../../../docs/reference/examples/admission.yml"),
    include_str!("../../../../docs/reference/examples/admission-held.yml"),
    include_str!("../../../../docs/reference/examples/precision.yml"),
    include_str!("../../../../docs/reference/examples/precision-cell.yml"),
    include_str!("../../../../docs/reference/examples/label.yml"),
];
/// Stands for a name that the author of a study chooses.
const ANY_NAME: &str = "NAME";

/// The page of the documentation.
///
/// # Errors
/// An example is no YAML.
pub fn as_markdown(schema: &Value) -> anyhow::Result<String> {
    let examples = EXAMPLES
        .iter()
        .map(|text| Document::from_text(Path::new("example"), text)?.parse())
        .collect::<Result<Vec<Value>, _>>()?;
    let mut reference =
        Reference { schema, examples, waiting: vec![(Vec::new(), schema)], page: String::new() };
    reference.page.push_str(
        "# Fields of a study\n\n\
         <!-- Written by `make reference` from `weir schema study --markdown`: do not edit. -->\n\n\
         A study is a YAML file in `studies/`. Examples are taken from the studies in [examples](examples/).\n",
    );
    while !reference.waiting.is_empty() {
        let (path, object) = reference.waiting.remove(0);
        reference.section(&path, object);
    }
    Ok(reference.page)
}

struct Reference<'a> {
    schema: &'a Value,
    examples: Vec<Value>,
    /// Objects that have no section yet.
    waiting: Vec<(Vec<&'a str>, &'a Value)>,
    page: String,
}

impl<'a> Reference<'a> {
    fn section(&mut self, path: &[&'a str], object: &'a Value) {
        let title = if path.is_empty() { "The study".to_owned() } else { format!("`{}`", path.join(".")) };
        let about = sentence(object);
        let _ = write!(
            self.page,
            "\n## {title}\n\n{about}\n\n| field | type | default | meaning | example |\n| --- | --- | --- | --- | --- |\n"
        );
        let choices = object["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
        for holder in std::iter::once(object).chain(choices) {
            let required = holder["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            for (name, field) in holder["properties"].as_object().into_iter().flatten() {
                let is_required = choices.is_empty() && required.iter().any(|known| known == name);
                let at: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
                let of_choice = sentence(holder);
                let meaning = if sentence(field).is_empty() { of_choice } else { sentence(field) };
                self.row(&at, field, is_required, meaning);
            }
        }
    }

    fn row(&mut self, path: &[&'a str], field: &'a Value, is_required: bool, mut meaning: String) {
        let whole = self.resolve(field);
        let kind = self.kind(path, whole);
        for value in whole["oneOf"].as_array().into_iter().flatten() {
            if let Some(name) = value["const"].as_str() {
                let _ = write!(meaning, "<br>`{name}`: {}", sentence(value));
            }
        }
        let default = match &field["default"] {
            _ if is_required => "required".to_owned(),
            Value::Null => String::new(),
            // An object of its own has the defaults of its fields in its section.
            Value::Object(_) => String::new(),
            Value::Array(values) if values.is_empty() => String::new(),
            Value::String(text) if text.is_empty() => String::new(),
            default => format!("`{}`", flow(default)),
        };
        let name = path.last().unwrap_or(&"");
        let example = match self.part_of(whole) {
            Some((suffix, object)) => {
                self.waiting.push((path.iter().copied().chain(suffix).collect(), object));
                String::new()
            }
            None => self.example(path).map(|found| format!("`{name}: {}`", flow(found))).unwrap_or_default(),
        };
        let cells = [kind, default, meaning, example].map(|text| text.replace('|', "\\|").replace('\n', " "));
        let _ = writeln!(self.page, "| `{name}` | {} |", cells.join(" | "));
    }

    /// The node without its null alternative, with its reference resolved.
    fn resolve(&self, node: &'a Value) -> &'a Value {
        if let Some(name) = node["$ref"].as_str().and_then(|text| text.strip_prefix("#/$defs/")) {
            return self.resolve(&self.schema["$defs"][name]);
        }
        match node["anyOf"].as_array().map(Vec::as_slice) {
            Some([only, null]) if null["type"] == "null" => self.resolve(only),
            _ => node,
        }
    }

    /// The object with fields of its own that a field is, or is a map of; with what its path has more.
    fn part_of(&self, node: &'a Value) -> Option<(Option<&'a str>, &'a Value)> {
        let has_fields = |object: &Value| {
            let choices = object["oneOf"].as_array().into_iter().flatten();
            std::iter::once(object).chain(choices).any(|holder| holder["properties"].is_object())
        };
        if has_fields(node) {
            return Some((None, node));
        }
        let each = node
            .get("additionalProperties")
            .map(|each| self.resolve(each))
            .filter(|each| has_fields(each))?;
        Some((Some(ANY_NAME), each))
    }

    fn kind(&self, path: &[&str], node: &'a Value) -> String {
        let node = self.resolve(node);
        if let Some((suffix, _)) = self.part_of(node) {
            let title: Vec<&str> = path.iter().copied().chain(suffix).collect();
            let anchor = title.concat().to_lowercase();
            return match suffix {
                None => format!("[object](#{anchor})"),
                Some(_) => format!("[objects by name](#{anchor})"),
            };
        }
        if let Some(choices) = node["oneOf"].as_array() {
            return choices
                .iter()
                .map(|choice| format!("`{}`", flow(&choice["const"])))
                .collect::<Vec<_>>()
                .join(", ");
        }
        if let Some(choices) = node["anyOf"].as_array() {
            return choices.iter().map(|choice| self.kind(path, choice)).collect::<Vec<_>>().join(", or ");
        }
        let kind = node["type"].as_str().or_else(|| node["type"][0].as_str()).unwrap_or("any value");
        match kind {
            "array" => format!("list of {}", self.kind(path, &node["items"])),
            "object" => match &node["additionalProperties"] {
                each @ Value::Object(_) => format!("map of {}", self.kind(path, each)),
                _ => "map".to_owned(),
            },
            kind => kind.to_owned(),
        }
    }

    /// The first value that an example has at a path.
    fn example(&self, path: &[&str]) -> Option<&Value> {
        self.examples.iter().find_map(|example| find(example, path))
    }
}

fn find<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value) };
    let fields = value.as_object()?;
    if *first == ANY_NAME {
        return fields.values().find_map(|value| find(value, rest));
    }
    find(fields.get(*first)?, rest)
}

fn sentence(node: &Value) -> String {
    node["description"].as_str().unwrap_or_default().to_owned()
}

/// A value as YAML on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./= ".contains(c));
            if is_plain { text.clone() } else { value.to_string() }
        }
        Value::Array(values) => format!("[{}]", values.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}: {}", flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_meaning_and_an_example() {
        let schema = serde_json::to_value(schemars::schema_for!(weir_study::Study)).unwrap();
        let page = as_markdown(&schema).unwrap();
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert!(rows.len() > 130, "{}", rows.len());
        for row in rows {
            let cells: Vec<&str> = row.split(" | ").collect();
            assert_eq!(cells.len(), 5, "{row}");
            let (kind, meaning, example) = (cells[1], cells[3], cells[4].trim_end_matches(" |"));
            assert!(!meaning.is_empty(), "{row}");
            assert_ne!(kind.starts_with("[object"), example.starts_with('`'), "{row}");
        }
    }
}
