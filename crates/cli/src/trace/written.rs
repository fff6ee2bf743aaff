//! Output of a trace: file and report.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_trace::Reader;
use weir_trace::write::{Class, Target, Written};

use super::words::{bytes, whole};
use crate::exit::bad_input;
use crate::output::WrittenFile;

/// How the table of requests names its classes.
#[derive(clap::Args)]
pub struct Classes {
    /// Class of the requests in a parquet file
    #[arg(long, value_name = "NAME", default_value = "trace")]
    class: String,
    /// A class for each device in a parquet file, so that `weir replay --class-target` can tell them apart
    #[arg(long, conflicts_with = "class")]
    class_per_device: bool,
}

impl Classes {
    pub fn class(&self) -> Class {
        if self.class_per_device { Class::PerDevice } else { Class::Named(self.class.as_str().into()) }
    }
}

/// The format of this name.
pub fn target(option: &str, name: &str) -> anyhow::Result<Target> {
    Target::from_name(name).ok_or_else(|| {
        let known = Target::ALL.map(Target::name).join(", ");
        bad_input(format!("{option} {name}: no format that is written; there are {known}"))
    })
}

/// The format that a file's name tells, parquet if none.
pub fn target_of(out: &Path) -> Target {
    let name = out.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.ends_with(".blktrace.0") {
        return Target::Blktrace;
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    Target::from_name(ending).unwrap_or(Target::Parquet)
}

/// Prints requests, addresses and losses of a written trace.
pub fn say(written: &Written) {
    println!(
        "{}: {} requests, to addresses up to {}",
        written.path.display(),
        whole(written.requests),
        bytes(written.end_bytes as f64)
    );
    for (what, count) in written.losses.iter() {
        println!("  {} {what}", whole(count));
    }
}

/// Prints skipped lines and warnings of the reader.
pub fn say_of_source(reader: &dyn Reader) {
    let skipped = reader.skipped();
    if skipped.count() > 0 {
        println!("  {} damaged records passed over", whole(skipped.count()));
    }
    for (what, count) in skipped.noted() {
        println!("  noted: {} {what}", whole(*count));
    }
}

/// The same of a written trace for programs.
pub fn document(written: &Written) -> anyhow::Result<Value> {
    let mut file = json!(WrittenFile::at(&written.path)?);
    file["requests"] = written.requests.into();
    file["end_bytes"] = written.end_bytes.into();
    file["losses"] =
        written.losses.iter().map(|(what, count)| json!({"what": what, "requests": count})).collect();
    Ok(file)
}

/// The same of the reader for programs.
pub fn document_of_source(reader: &dyn Reader) -> Value {
    let skipped = reader.skipped();
    let noted: Vec<Value> =
        skipped.noted().iter().map(|(what, count)| json!({"what": what, "records": count})).collect();
    json!({"skipped_records": skipped.count(), "noted": noted})
}

/// The name of a device as the name of a file in a folder: nothing in it leads out of it.
pub fn file_of(folder: &Path, device: u32, name: &str, target: Target) -> PathBuf {
    let safe: String = name
        .chars()
        .take(100)
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .collect();
    let stem =
        if safe.trim_matches('.').is_empty() || safe != name { format!("{safe}-{device}") } else { safe };
    let stem = stem.trim_start_matches('.').to_owned();
    match target {
        Target::Blktrace => folder.join(format!("{stem}.blktrace.0")),
        other => folder.join(format!("{stem}.{}", other.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_from_names() {
        let of = |name: &str| target_of(Path::new(name));
        assert_eq!(of("x.iolog"), Target::Iolog);
        assert_eq!(of("x.blktrace.0"), Target::Blktrace);
        assert_eq!(of("a.b/x.disksim"), Target::Disksim);
        assert_eq!((of("x.parquet"), of("x")), (Target::Parquet, Target::Parquet));
    }

    #[test]
    fn devices_stay_in_their_folder() {
        let file = |name: &str| file_of(Path::new("d"), 3, name, Target::Parquet);
        assert_eq!(file("sda"), Path::new("d/sda.parquet"));
        assert_eq!(file("../etc/x"), Path::new("d/_etc_x-3.parquet"));
        assert_eq!(file(".."), Path::new("d/-3.parquet"));
        assert_eq!(file("a b"), Path::new("d/a_b-3.parquet"));
    }
}
