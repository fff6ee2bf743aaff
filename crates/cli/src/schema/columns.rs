//! Reference of the columns of a run's tables, from the doc comments of their row types.

use std::fmt::Write as _;

use serde_json::{Value, json};
use weir_records::column::About;

/// As JSON: one object for each table.
pub fn as_json() -> Value {
    let table =
        |table: weir_records::Table| json!({"file": table.file, "row": table.row, "columns": table.columns});
    weir_records::tables().into_iter().map(table).collect()
}

/// As a page of the documentation.
pub fn as_markdown() -> String {
    let mut page = String::from(
        "# Columns of the tables\n\n\
         <!-- Written by `make reference` from `weir schema columns --markdown`: do not edit. -->\n\n\
         A run's folder holds these Parquet tables. Every file has this description in its metadata, under the key \
         `weir.columns`.\nTimes are on `CLOCK_MONOTONIC`, from the start of the run; the start itself is in the \
         metadata, under `weir.epoch_monotonic_ns`.\nTables of a run of several hosts have one column more, `host`, at \
         the end: the name of the host.\n",
    );
    for weir_records::Table { file, row, columns } in weir_records::tables() {
        let _ = write!(
            page,
            "\n## {file}\n\nOne row: {row}.\n\n| column | type | unit | meaning | null |\n| --- | --- | --- | --- | --- |\n"
        );
        for About { name, kind, unit, meaning, null } in columns {
            let (unit, null) = (unit.unwrap_or_default(), null.unwrap_or_else(|| "never".to_owned()));
            let meaning = meaning.replace('|', "\\|");
            let _ = writeln!(page, "| `{name}` | {kind} | {unit} | {meaning} | {null} |");
        }
    }
    page
}
