//! The factor `variant`, which varies any field of the study.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use weir_specs::{Document, Problem, Problems, one_of};
use weir_workload::sessions::AnyWorkload;

use crate::cells::VARIANT;
use crate::context::Context;
use crate::spec::Study;
use crate::validate;

/// Fields that cannot be varied.
const FIXED: [&str; 10] = [
    "name",
    "label",
    "testbed",
    "seed",
    "repetitions",
    "precision",
    "records",
    "hosts",
    "factors",
    "exclude",
];
/// Field of a class whose own fields are dotted paths in a workload.
const WITH: &str = "with";

/// A study with the fields of one of its variants, and the workloads of its classes.
pub(crate) struct Variant {
    /// Its level; `None` if the study has no variants.
    pub(crate) name: Option<String>,
    pub(crate) study: Study,
    pub(crate) workloads: BTreeMap<String, Arc<AnyWorkload>>,
}

/// Checks a study and its variants.
///
/// # Errors
/// All problems of the study; if it has none, all problems of its variants.
pub(crate) fn all(
    study: Study,
    document: &Document,
    context: &Context<'_>,
) -> Result<Vec<Variant>, Problems> {
    let workloads = validate::check(&study, document, context)?;
    let Some(variants) = study.factors.variant.clone() else {
        return Ok(vec![Variant { name: None, study, workloads: shared(workloads) }]);
    };
    let mut made = Vec::new();
    let mut problems = Problems::default();
    for (name, fields) in &variants {
        match one(&study, name, fields, document, context) {
            Ok(variant) => made.push(variant),
            Err(found) => problems.0.extend(found.0),
        }
    }
    problems.or(made)
}

fn one(
    study: &Study,
    name: &str,
    fields: &BTreeMap<String, Value>,
    document: &Document,
    context: &Context<'_>,
) -> Result<Variant, Problems> {
    let at = format!("factors.{VARIANT}.{name}");
    let mut value = serde_json::to_value(study)
        .map_err(|error| Problems::from(document.problem(&at, error.to_string())))?;
    for (path, replacement) in fields {
        set(&mut value, path, replacement)
            .map_err(|message| Problems::from(document.problem(format!("{at}.{path}"), message)))?;
    }
    // These problems come from the variant: its fields are named, not those of the document.
    let placed = |found: Problems| {
        let place = |problem: Problem| document.problem(format!("{at}.{}", problem.field), problem.message);
        Problems(found.0.into_iter().map(place).collect())
    };
    let study: Study = document.parse_all_of(&value).map_err(placed)?;
    let workloads = validate::check(&study, document, context).map_err(placed)?;
    Ok(Variant { name: Some(name.to_owned()), study, workloads: shared(workloads) })
}

fn shared(workloads: BTreeMap<String, AnyWorkload>) -> BTreeMap<String, Arc<AnyWorkload>> {
    workloads.into_iter().map(|(name, workload)| (name, Arc::new(workload))).collect()
}

/// Whether the step at a depth of a path names a setting of a service: `services.web.settings.workers`, or
/// `services.shop.site.settings.buffer_mib`.
fn is_setting(path: &str, depth: usize) -> bool {
    match path.split('.').collect::<Vec<_>>()[..] {
        ["services", _, "settings", _] => depth == 4,
        ["services", _, "site", "settings", _] => depth == 5,
        _ => false,
    }
}

/// Replaces the field at a dotted path, such as `storage.profile` or `classes.text.with.files.count`.
fn set(study: &mut Value, path: &str, replacement: &Value) -> Result<(), String> {
    let mut steps = path.split('.');
    let first = path.split('.').next().unwrap_or_default();
    if FIXED.contains(&first) {
        return Err(format!("`{first}` is the same in all variants: leave it out, or make another study"));
    }
    let mut at = study;
    let mut depth = 0;
    while let Some(step) = steps.next() {
        depth += 1;
        let Value::Object(fields) = at else {
            return Err(format!("`{step}`: there is nothing below this field"));
        };
        if step == WITH && depth == 3 && first == "classes" {
            let within = steps.collect::<Vec<_>>().join(".");
            let overrides = fields.entry(WITH).or_insert_with(|| Value::Object(Map::new()));
            if within.is_empty() {
                return Err("name the field of the workload, such as with.files.count".to_owned());
            }
            overrides[within.as_str()] = replacement.clone();
            return Ok(());
        }
        // What is held and has its default may be absent; whether there is such a setting is asked when the study is read.
        let may_be_absent = (first == "hold" && depth == 2) || is_setting(path, depth);
        if !fields.contains_key(step) && !may_be_absent {
            return Err(one_of("field", step, fields.keys().map(String::as_str)));
        }
        at = fields.entry(step).or_insert(Value::Null);
    }
    *at = replacement.clone();
    Ok(())
}
