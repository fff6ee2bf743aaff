//! `weir schema`: JSON Schemas from the same types that parse the files, and references from the same comments.

mod columns;
mod study;

use std::process::ExitCode;

use clap::ValueEnum;
use schemars::generate::SchemaSettings;
use schemars::{Schema, schema_for};
use serde_json::{Map, Value, json};
use weir_daemons::Daemon;
use weir_records::manifest::RESULTS_FORMAT_FIELD;
use weir_study::DATABASES;

use crate::exit::{self, bad_input};
use crate::output::{self};

/// Print the JSON Schema of a kind of file, for editors that complete and check YAML and for readers of results; or the
/// columns of result tables.
#[derive(clap::Args)]
pub struct Args {
    /// The kind of file.
    kind: Kind,
    /// Print a page of documentation in place of JSON (study, columns).
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// studies/NAME.yml.
    Study,
    /// workloads/NAME.yml and workloads/sessions/NAME.yml.
    Workload,
    /// workloads/tables/NAME.yml.
    Table,
    /// testbeds/disks/NAME.yml.
    Profile,
    /// testbeds/filesystems/NAME.yml.
    Filesystem,
    /// testbeds/clusters/NAME.yml.
    Cluster,
    /// testbeds/daemons/NAME.yml.
    Daemon,
    /// traces/catalog.yml.
    Traces,
    /// Tasks of `weir admit`.
    Tasks,
    /// plan.json of a study.
    Plan,
    /// run.json of a run.
    Run,
    /// host.json of a run.
    Host,
    /// verdict.json of a run.
    Verdict,
    /// manifest.json of a run.
    Manifest,
    /// part.json of a host in a run of several hosts.
    Part,
    /// Columns of the tables of a run: type, unit, meaning, when null.
    Columns,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let is_written_by_users = !matches!(
        args.kind,
        Kind::Plan | Kind::Run | Kind::Host | Kind::Verdict | Kind::Manifest | Kind::Part | Kind::Columns
    );
    let schema = match args.kind {
        Kind::Columns if args.markdown => return print(&columns::as_markdown()),
        Kind::Study if args.markdown => {
            return print(&study::as_markdown(&serde_json::to_value(schema_for!(weir_study::Study))?)?);
        }
        _ if args.markdown => {
            return Err(bad_input("--markdown is for study and columns only: leave it out"));
        }
        Kind::Columns => return print(&format!("{:#}\n", columns::as_json())),
        Kind::Study => with_settings(schema_for!(weir_study::Study)),
        Kind::Workload => schema_for!(weir_workload::sessions::AnyWorkload),
        Kind::Table => schema_for!(weir_workload::sessions::Transitions),
        Kind::Profile => schema_for!(weir_simulator::profile::Profile),
        Kind::Filesystem => schema_for!(weir_study::FileSystem),
        Kind::Cluster => schema_for!(weir_daemons::cluster::Description),
        Kind::Daemon => schema_for!(Daemon),
        Kind::Traces => schema_for!(Vec<weir_trace::catalog::Entry>),
        Kind::Tasks => schema_for!(weir_study::TaskFile),
        Kind::Plan => schema_for!(weir_study::Plan),
        Kind::Run => with_version(schema_for!(weir_study::Run)),
        Kind::Host => {
            // This file is written and never read by weir: its schema is that of the output.
            let settings = SchemaSettings::default().for_serialize();
            settings.into_generator().into_root_schema_for::<weir_collectors::host::HostRecord>()
        }
        Kind::Verdict => schema_for!(weir_runner::Validity),
        Kind::Manifest => with_checksum(schema_for!(weir_records::Manifest)),
        Kind::Part => schema_for!(weir_coordination::Record),
    };
    let mut schema = schema;
    if is_written_by_users {
        let mut value = schema.to_value();
        weir_specs::accept_units(&mut value);
        // As a schema it is printed with title and description first.
        schema = value.try_into()?;
    }
    output::document(&schema)?;
    Ok(ExitCode::SUCCESS)
}

/// The schema of a run in a results folder: with the version of the folder's layout, which `plan.json` does not have. Runs
/// of versions without manifests do not have it either.
fn with_version(mut schema: Schema) -> Schema {
    let version = json!({"type": "integer", "description": "Version of the layout of the run's folder. A run with this field has a manifest."});
    add_field(&mut schema, RESULTS_FORMAT_FIELD, version);
    schema
}

/// The schema of a manifest as a file, which ends with its checksum.
fn with_checksum(mut schema: Schema) -> Schema {
    let checksum = json!({"type": "string", "description": "SHA-256 of all before this field."});
    add_field(&mut schema, "checksum", checksum);
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.push(json!("checksum"));
    }
    schema
}

fn add_field(schema: &mut Schema, name: &str, field: Value) {
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.insert(name.to_owned(), field);
    }
}

fn print(text: &str) -> anyhow::Result<ExitCode> {
    print!("{text}");
    Ok(ExitCode::SUCCESS)
}

/// The schema of a study with what each service lets it set, and each database of a site.
fn with_settings(mut schema: Schema) -> Schema {
    let of_service = Daemon::names().map(|name| rule("service", name)).collect();
    let of_site = DATABASES.map(|name| rule("database", name)).into();
    let rules: [(&str, Vec<Value>); 2] = [("StudyService", of_service), ("Site", of_site)];
    if let Some(types) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        for (name, rules) in rules {
            if let Some(of_type) = types.get_mut(name).and_then(Value::as_object_mut) {
                of_type.insert("allOf".to_owned(), Value::Array(rules));
            }
        }
    }
    schema
}

/// Where `field` names a service, its `settings` are those of that service.
fn rule(field: &str, service: &str) -> Value {
    let settings = Daemon::load(service).map(|found| found.settings).unwrap_or_default();
    let of_studies = settings.into_iter().filter(|(_, setting)| setting.kind.is_of_studies());
    let each = of_studies.map(|(name, setting)| {
        let mut schema = setting.kind.schema();
        schema["title"] = json!(setting.about);
        schema["default"] = json!(setting.default);
        (name, schema)
    });
    let each: Map<String, Value> = each.collect();
    json!({
        "if": {"properties": {field: {"const": service}}, "required": [field]},
        "then": {"properties": {"settings": {"properties": each, "additionalProperties": false}}},
    })
}
