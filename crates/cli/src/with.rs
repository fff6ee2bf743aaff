//! A workload by name, with some of its fields replaced.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_workload::{Catalog, Workload};

use crate::exit::bad_input;

/// A workload and its replaced fields.
#[derive(clap::Args)]
pub struct WithArgs {
    /// Replace a field of the workload: its path and its value, such as files.count=200 (repeatable).
    #[arg(long, value_name = "FIELD=VALUE")]
    with: Vec<String>,
}

impl WithArgs {
    /// Reads the workload.
    ///
    /// # Errors
    /// There is none of that name, or a replacement does not fit.
    pub fn load(&self, catalog: &Catalog, name: &str) -> anyhow::Result<Workload> {
        let workload = catalog.load(name).map_err(bad_input)?;
        if self.with.is_empty() {
            return Ok(workload);
        }
        let mut overrides = BTreeMap::new();
        for text in &self.with {
            let pair = text.split_once('=').filter(|(field, value)| !field.is_empty() && !value.is_empty());
            let Some((field, value)) = pair else {
                return Err(bad_input(format!("--with {text}: write FIELD=VALUE, such as files.count=200")));
            };
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            if overrides.insert(field.to_owned(), value).is_some() {
                return Err(bad_input(format!("--with {text}: {field} is replaced twice; give it once")));
            }
        }
        let document = catalog.document(name).map_err(bad_input)?;
        workload.with_overrides(&overrides, &document, "--with").map_err(bad_input)
    }
}
