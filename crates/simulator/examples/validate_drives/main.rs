//! Checks the disk models against measurements of real drives.
//!
//! ```console
//! cargo run --release -p weir-simulator --example validate_drives -- TRACES [--fit] [--requests] [DRIVE]
//! ```
//!
//! TRACES is a folder with DiskSim's validation traces (`barracuda.trace` and so on). Each trace is served by the drive's
//! profile one request at a time, as it was measured, and the response times are compared: the demerit on the first half
//! (the profile was fitted to it), on the second half (it was not), and on the whole, next to the demerits of DiskSim
//! 4.0's model of the drive. With `--fit` the profile is first fitted to the first half again, starting from its current
//! values, and the fitted lines are printed. With `--requests` every request is printed with its measured and its modelled
//! time, as CSV.

mod demerit;
mod fit;
mod trace;

use std::path::Path;
use std::process::ExitCode;

use weir_simulator::Op;
use weir_simulator::profile::{self, Profile};

/// A drive: its trace, its profile, and DiskSim's demerits in ms. That of the whole trace is in its `valid/runvalid`; that of
/// the second half is from a run of DiskSim 4.0 on these lines alone (docs/reference/disks.md).
const DRIVES: &[(&str, &str, DiskSim)] = &[
    ("barracuda", "seagate-barracuda-validated", DiskSim { half_ms: 0.315, whole_ms: 0.349 }),
    ("hp_c2247a", "hp-c2247a", DiskSim { half_ms: 0.118, whole_ms: 0.090 }),
    ("hp_c3323a", "hp-c3323a", DiskSim { half_ms: 0.313, whole_ms: 0.306 }),
    ("dec_rz26", "dec-rz26", DiskSim { half_ms: 0.399, whole_ms: 0.340 }),
];

/// Demerits of DiskSim's model of a drive.
struct DiskSim {
    half_ms: f64,
    whole_ms: f64,
}

fn main() -> ExitCode {
    let (options, places): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let (Some(folder), true) =
        (places.first(), options.iter().all(|option| option == "--fit" || option == "--requests"))
    else {
        eprintln!(
            "validate_drives TRACES [--fit] [--requests] [DRIVE]: TRACES is a folder with DiskSim's validation traces"
        );
        return ExitCode::from(2);
    };
    let only = places.get(1).map(String::as_str);
    if only.is_some_and(|only| !DRIVES.iter().any(|(name, ..)| *name == only)) {
        let known: Vec<_> = DRIVES.iter().map(|(name, ..)| *name).collect();
        eprintln!("unknown drive `{}`; there are: {}", only.unwrap_or_default(), known.join(", "));
        return ExitCode::from(2);
    }
    println!(
        "demerit in ms, and in percent of the measured mean; DiskSim's, and the ratio to it: of the held-out half, of the whole"
    );
    println!(
        "{:<10} {:>8} {:>7}  {:<14} {:<14} {:<14} {:<13} {:>11} {:>16}",
        "drive",
        "requests",
        "mean ms",
        "fitted half",
        "held-out half",
        "whole",
        "DiskSim",
        "ratio",
        "median apart, ms"
    );
    for drive in DRIVES.iter().filter(|(name, ..)| only.is_none_or(|only| *name == only)) {
        if let Err(error) = validate(Path::new(folder), drive, &options) {
            eprintln!("{}: {error}", drive.0);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn validate(
    folder: &Path,
    (name, profile_name, disksim): &(&str, &str, DiskSim),
    options: &[String],
) -> Result<(), Box<dyn std::error::Error>> {
    let requests = trace::read(&folder.join(format!("{name}.trace")))?;
    let Profile::Disk(mut disk) = profile::load(profile_name)? else {
        return Err(format!("the profile {profile_name} is not a disk").into());
    };
    let (first, second) = requests.split_at(requests.len() / 2);
    let chosen = |name: &str| options.iter().any(|option| option == name);
    if chosen("--fit") {
        *disk = fit::fit(&disk, first);
    }
    let mean_ms = requests.iter().map(|m| m.response_ns).sum::<u64>() as f64 / requests.len() as f64 / 1e6;
    let mut columns = Vec::new();
    for part in [first, second, &requests] {
        let (ms, percent, apart_ms) = trace::compare(&disk, part)?;
        columns.push((format!("{ms:.3} {percent:4.1} %"), ms, apart_ms));
    }
    let DiskSim { half_ms, whole_ms } = disksim;
    println!(
        "{name:<10} {:>8} {mean_ms:>7.3}  {:<14} {:<14} {:<14} {half_ms:.3}, {whole_ms:.3}  {:>5.2}, {:.2} {:>16.3}",
        requests.len(),
        columns[0].0,
        columns[1].0,
        columns[2].0,
        columns[1].1 / half_ms,
        columns[2].1 / whole_ms,
        columns[1].2,
    );
    if chosen("--requests") {
        println!("op,sector,sectors,gap_ms,measured_ms,modelled_ms");
        for (m, modelled_ns) in requests.iter().zip(trace::replay(&disk, &requests)?) {
            let [gap_ms, measured_ms, modelled_ms] =
                [m.gap_ns, m.response_ns, modelled_ns].map(|ns| ns as f64 / 1e6);
            let op = if m.op == Op::Read { "read" } else { "write" };
            let (sector, sectors) = (m.offset_bytes / 512, m.size_bytes / 512);
            println!("{op},{sector},{sectors},{gap_ms:.6},{measured_ms:.6},{modelled_ms:.6}");
        }
    }
    if chosen("--fit") {
        println!("\n# {profile_name}\n{}", fit::lines(&disk));
    }
    Ok(())
}
