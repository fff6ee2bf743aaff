//! Runs of `plan.json`, each with only what differs from an earlier run.
//!
//! `"like": N` names an earlier run by its place in the list, from 0. The fields of a run with `like` replace those of that run:
//! objects field by field, lists of objects with a `name` by name, other values as a whole. A run without `like` is whole.

use std::collections::HashMap;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::{Error as _, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::run::Run;

/// The field that names an earlier run.
const LIKE: &str = "like";
/// The field that names an item of a list.
const NAME: &str = "name";

/// A repetition of an earlier run. It has no other fields.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repetition {
    id: String,
    like: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repetition: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

/// A run that is written whole, and others that are written by their differences from it.
struct Base {
    place: usize,
    value: Value,
    bytes: usize,
}

/// Writes runs in order.
///
/// # Errors
/// Those of the serializer.
pub(crate) fn serialize<S: Serializer>(runs: &[Run], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(runs.len()))?;
    let mut first_of_cell: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut bases: Vec<Base> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let known = first_of_cell.entry(&run.cell).or_default();
        let all = known.iter().filter_map(|place| Some((*place, runs.get(*place)?)));
        if let Some((like, first)) = all.into_iter().find(|(_, first)| is_repetition(run, first)) {
            list.serialize_element(&Repetition {
                id: run.id.clone(),
                like,
                repetition: changed(run.repetition, first.repetition),
                block: changed(run.block, first.block),
                order: changed(run.order, first.order),
                seed: changed(run.seed, first.seed),
            })?;
            continue;
        }
        known.push(place);
        let value = serde_json::to_value(run).map_err(S::Error::custom)?;
        let shortest = bases
            .iter()
            .filter_map(|base| Some((base, difference(&base.value, &value)?)))
            .map(|(base, fields)| (fields.to_string().len(), base, fields))
            .min_by_key(|(bytes, ..)| *bytes);
        match shortest {
            Some((bytes, base, Value::Object(fields))) if bytes * 2 < base.bytes => {
                let id = ("id".to_owned(), run.id.as_str().into());
                let like = (LIKE.to_owned(), base.place.into());
                list.serialize_element(&[id, like].into_iter().chain(fields).collect::<Map<_, _>>())?;
            }
            _ => {
                list.serialize_element(&value)?;
                let bytes = value.to_string().len();
                bases.push(Base { place, value, bytes });
            }
        }
    }
    list.end()
}

/// Reads runs in order.
///
/// # Errors
/// A run names no earlier run, or is no run.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Run>, D::Error> {
    let mut runs: Vec<Run> = Vec::new();
    for entry in Vec::<Value>::deserialize(deserializer)? {
        let run = whole(entry, &runs).map_err(D::Error::custom)?;
        runs.push(run);
    }
    Ok(runs)
}

/// The schema of the list.
pub(crate) fn schema(generator: &mut SchemaGenerator) -> Schema {
    let whole = generator.subschema_for::<Run>();
    let like = json_schema!({
        "type": "object",
        "description": "A run by what differs from an earlier run.",
        "properties": {
            "id": {"type": "string"},
            LIKE: {"type": "integer", "minimum": 0, "description": "Place of the earlier run in the list, from 0."},
        },
        "required": ["id", LIKE],
    });
    let item = json_schema!({"anyOf": [like, whole]});
    json_schema!({"type": "array", "items": item})
}

/// A run from its entry and the runs before it.
fn whole(entry: Value, earlier: &[Run]) -> Result<Run, String> {
    let Some(like) = entry.get(LIKE) else {
        return serde_json::from_value(entry).map_err(|error| error.to_string());
    };
    let base = like.as_u64().and_then(|place| earlier.get(usize::try_from(place).ok()?));
    let base = base.ok_or_else(|| {
        let most = earlier.len();
        format!(
            "run {}: `{LIKE}` is {like}; it must be the place of one of the {most} runs before",
            entry["id"]
        )
    })?;
    let run = match Repetition::deserialize(&entry) {
        Ok(found) => Run {
            id: found.id,
            repetition: found.repetition.unwrap_or(base.repetition),
            block: found.block.unwrap_or(base.block),
            order: found.order.unwrap_or(base.order),
            seed: found.seed.unwrap_or(base.seed),
            ..base.clone()
        },
        Err(_) => {
            let id = entry["id"].to_string();
            let mut value = serde_json::to_value(base).map_err(|error| error.to_string())?;
            merge(&mut value, entry);
            serde_json::from_value(value).map_err(|error| format!("run {id}: {error}"))?
        }
    };
    Ok(run)
}

fn changed<T: PartialEq>(value: T, base: T) -> Option<T> {
    (value != base).then_some(value)
}

/// Whether two runs differ in nothing but the fields of [`Repetition`].
fn is_repetition(run: &Run, first: &Run) -> bool {
    let Run {
        format,
        id: _,
        study,
        label,
        question,
        testbed,
        cell,
        levels,
        settings,
        repetition: _,
        block: _,
        order: _,
        seed: _,
        warmup_s,
        duration_s,
        capture,
        allowed_loss,
        fill_losses,
        records,
        series_s,
        placement,
        hosts,
        classes,
        devices,
        services,
        live,
        access,
        duplicate,
    } = run;
    (format, testbed, cell, levels, duplicate)
        == (&first.format, &first.testbed, &first.cell, &first.levels, &first.duplicate)
        && (study, label, question, settings)
            == (&first.study, &first.label, &first.question, &first.settings)
        && (warmup_s, duration_s, series_s) == (&first.warmup_s, &first.duration_s, &first.series_s)
        && (capture, allowed_loss, fill_losses) == (&first.capture, &first.allowed_loss, &first.fill_losses)
        && (records, placement, hosts, live) == (&first.records, &first.placement, &first.hosts, &first.live)
        && (classes, devices) == (&first.classes, &first.devices)
        && (services, access) == (&first.services, &first.access)
}

/// The fields of `value` that differ from `base`. `None` if `value` lacks a field of `base`: a difference cannot remove it.
fn difference(base: &Value, value: &Value) -> Option<Value> {
    let mut fields = Map::new();
    match (base, value) {
        (Value::Object(base), Value::Object(value)) => {
            if base.keys().any(|name| !value.contains_key(name)) {
                return None;
            }
            for (name, part) in value.iter().filter(|(name, part)| base.get(*name) != Some(part)) {
                let part = base.get(name).map_or_else(|| Some(part.clone()), |base| difference(base, part));
                fields.insert(name.clone(), part?);
            }
        }
        (Value::Array(base), Value::Array(value)) => {
            let names = || names(base).filter(|names| Some(names) == self::names(value).as_ref());
            let Some(names) = names() else { return Some(Value::Array(value.clone())) };
            for ((name, base), value) in names.into_iter().zip(base).zip(value) {
                if base != value {
                    fields.insert(name.to_owned(), difference(base, value)?);
                }
            }
        }
        // An object in place of a list would be merged by name.
        (Value::Array(_), Value::Object(_)) => return None,
        (_, value) => return Some(value.clone()),
    }
    Some(Value::Object(fields))
}

/// Names of the items of a list; `None` unless each has a name of its own.
fn names(list: &[Value]) -> Option<Vec<&str>> {
    let names: Vec<&str> = list.iter().map(|item| item[NAME].as_str()).collect::<Option<_>>()?;
    let is_unique = names.iter().enumerate().all(|(place, name)| !names[..place].contains(name));
    is_unique.then_some(names)
}

/// Puts the fields of a difference in place of those of `base`.
fn merge(base: &mut Value, fields: Value) {
    match (base, fields) {
        (Value::Object(base), Value::Object(fields)) => {
            for (name, part) in fields.into_iter().filter(|(name, _)| name != LIKE) {
                merge(base.entry(name).or_insert(Value::Null), part);
            }
        }
        (Value::Array(base), Value::Object(mut fields)) => {
            for item in base {
                if let Some(part) = item[NAME].as_str().and_then(|name| fields.remove(name)) {
                    merge(item, part);
                }
            }
        }
        (base, fields) => *base = fields,
    }
}
