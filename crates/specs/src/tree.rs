//! A YAML document as a tree of nodes with line numbers.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// One node, without its place.
pub(crate) enum Node {
    Scalar(Value),
    Sequence(Vec<Located>),
    Mapping(Vec<(String, u64, Located)>),
}

/// One node and the line it begins on.
pub(crate) struct Located {
    pub(crate) line: u64,
    pub(crate) node: Node,
}

impl Located {
    /// The same tree without lines.
    pub(crate) fn value(&self) -> Value {
        match &self.node {
            Node::Scalar(value) => value.clone(),
            Node::Sequence(items) => Value::Array(items.iter().map(Located::value).collect()),
            Node::Mapping(pairs) => {
                let pairs = pairs.iter().map(|(key, _, node)| (key.clone(), node.value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// Line of the node at a path, or of its nearest ancestor that exists.
    ///
    /// The line is that of the key, also when its value starts below it. A key can contain dots and then covers several
    /// steps of the path.
    pub(crate) fn line_of(&self, path: &[&str]) -> u64 {
        match &self.node {
            Node::Mapping(pairs) => (1..=path.len())
                .find_map(|steps| {
                    let name = path[..steps].join(".");
                    pairs.iter().find(|(key, _, _)| *key == name).map(|found| (found, &path[steps..]))
                })
                .map_or(self.line, |((_, line, child), rest)| match (&child.node, rest) {
                    (Node::Scalar(_), _) | (_, []) => *line,
                    _ => child.line_of(rest),
                }),
            Node::Sequence(items) => path
                .first()
                .and_then(|step| items.get(step.parse::<usize>().ok()?))
                .map_or(self.line, |child| child.line_of(&path[1..])),
            Node::Scalar(_) => self.line,
        }
    }
}

impl<'de> Deserialize<'de> for Located {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Node>::deserialize(deserializer)?;
        Ok(Located { line: spanned.referenced.line(), node: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number must be finite"))?;
        Ok(Node::Scalar(number.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut sequence = Vec::new();
        while let Some(item) = items.next_element()? {
            sequence.push(item);
        }
        Ok(Node::Sequence(sequence))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut mapping: Vec<(String, u64, Located)> = Vec::new();
        let mut known = HashSet::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            if !known.insert(key.value.clone()) {
                return Err(de::Error::custom(format!("`{}` is given twice", key.value)));
            }
            mapping.push((key.value, key.referenced.line(), entries.next_value()?));
        }
        Ok(Node::Mapping(mapping))
    }
}
