//! Every shipped specification meets the figures that it declares, and gives the same bytes everywhere.

use std::path::Path;

use sha2::{Digest, Sha256};
use weir_specs::Document;
use weir_workloads::{Catalog, Stream, StreamOptions, Workload, calibrate};

const SEEDS: u64 = 20;

fn catalog() -> Catalog {
    Catalog::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("specs")).unwrap()
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn every_target_is_met_over_20_seeds() {
    let catalog = catalog();
    let mut held = 0;
    let mut missed = Vec::new();
    for name in catalog.names() {
        let workload = catalog.load(name).unwrap();
        if workload.targets.is_none() {
            continue;
        }
        let calibration = calibrate(&workload, catalog.folder(), SEEDS, threads()).unwrap();
        for figure in &calibration.figures {
            held += 1;
            if !figure.is_met {
                missed.push(format!(
                    "{name}: {} is {:?}, not within {:?}",
                    figure.target.label(),
                    figure.mean,
                    figure.band
                ));
            }
        }
    }
    assert!(held >= 100, "only {held} targets were found");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let catalog = catalog();
    let workload = catalog.load("mpeg-frasier").unwrap();
    let with = |threads| calibrate(&workload, catalog.folder(), 5, threads).unwrap();
    assert_eq!(with(1), with(3));
}

/// SHA-256 of a stream's first requests, field by field in little endian.
fn fingerprint(catalog: &Catalog, workload: &Workload) -> String {
    let options = StreamOptions {
        class: "golden".into(),
        clients: 3,
        seed: 1,
        duration_ns: 300_000_000_000,
        warmup_ns: 0,
        folder: catalog.folder().to_owned(),
    };
    let mut hash = Sha256::new();
    for request in Stream::new(workload, options).unwrap().take(20_000) {
        hash.update(request.intended_ns.to_le_bytes());
        hash.update(request.client.to_le_bytes());
        hash.update(request.file.unwrap().to_le_bytes());
        hash.update(request.op.name());
        hash.update(request.offset.to_le_bytes());
        hash.update(request.size_bytes.to_le_bytes());
        hash.update(request.deadline_ns.unwrap_or(-1).to_le_bytes());
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The fingerprints that every machine must arrive at; a change of one changes published results and belongs
/// into the changelog.
const GOLDEN: &[(&str, &str)] = &[("poisson-text", "")];

#[test]
fn the_same_specification_and_seed_give_the_same_bytes_on_every_machine() {
    let catalog = catalog();
    let found: Vec<(String, String)> = catalog
        .names()
        .map(|name| (name, catalog.load(name).unwrap()))
        .filter(|(_, workload)| !workload.is_closed_loop())
        .map(|(name, workload)| (name.to_owned(), fingerprint(&catalog, &workload)))
        .collect();
    // Workloads whose fingerprint is kept elsewhere need not be here; those that are here must agree.
    for (name, expected) in GOLDEN {
        let now = found.iter().find(|(found, _)| found == name).map(|(_, now)| now.as_str());
        let all: Vec<String> =
            found.iter().map(|(name, now)| format!("    (\"{name}\", \"{now}\"),")).collect();
        assert_eq!(now, Some(*expected), "{name}; all fingerprints now:\n{}", all.join("\n"));
    }
    assert!(GOLDEN.len() >= 18);
}

/// The problems of a specification with one piece of its text replaced.
fn problems_with(name: &str, from: &str, to: &str) -> String {
    let path = catalog().folder().join(format!("{name}.yml"));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{name} does not hold {from}");
    let document = Document::from_text(&path, &text.replacen(from, to, 1)).unwrap();
    Workload::from_document(&document).err().map(|problems| problems.to_string()).unwrap_or_default()
}

#[test]
fn mistakes_in_targets_and_generators_are_named() {
    let cases = [
        (
            "auspex-nfs",
            "statistic: requests_per_s",
            "statistic: request_per_s",
            "did you mean `requests_per_s`?",
        ),
        ("auspex-nfs", "window_s: 1, ", "", "window_s: is missing; peak_to_mean_bytes needs it"),
        (
            "auspex-nfs",
            "statistic: requests_per_s",
            "window_s: 1, statistic: requests_per_s",
            "does not apply to requests_per_s",
        ),
        ("auspex-nfs", "stay_s: 60", "stay_s: -60", "arrivals.mmpp.states.0.stay_s: is -60"),
        ("auspex-nfs", "alignment_bytes: 512", "alignment_bytes: 1000", "it must be 512 or 4096"),
        ("auspex-nfs", "share: 0.58", "share: 0.5", "sizes.drawn.mixture: has shares that add up to 0.92"),
        ("cello-1992-06-01", "peak_per_minute: 2654", "peak_per_minute: 150", "more than"),
        (
            "cello-1992-06-01",
            "from_s: 60480, to_s: 61780}",
            "from_s: 60485, to_s: 61780}",
            "must be multiples of 20",
        ),
        ("cello-1992-06-01", "count: 8", "count: 7", "has 8 disks, and files.count is 7"),
        ("cello-1992-06-01", "hours: [0.5, ", "hours: [", "has 23 numbers; it must have 24"),
        ("mpeg-lambs", "marginal: gamma", "marginal: gama", "did you mean `gamma`?"),
        (
            "mpeg-lambs",
            "marginal: gamma",
            "marginal: gamma\n        correlation: autoregressive",
            "is gamma; an autoregressive",
        ),
        ("mpeg-lambs", "bytes_per_unit: 1", "bytes_per_unit: 0", "bytes_per_unit: is 0"),
        ("sprite", "part: 0.18", "part: 0.2", "sizes.accesses.read: has shares that add up to"),
        ("zipf-class0", "value: 0.9,", "value: 0.9, band: [1, 2],", "does not hold its value"),
    ];
    for (name, from, to, expected) in cases {
        let problems = problems_with(name, from, to);
        assert!(problems.contains(expected), "{name} with {to:?}: {problems:?} lacks {expected:?}");
    }
}

#[test]
fn a_server_that_begins_in_its_window_has_the_windows_requests() {
    let catalog = catalog();
    let mut workload = catalog.load("cello-1992-06-01").unwrap();
    if let weir_workloads::Arrivals::ServerDay(day) = &mut workload.arrivals {
        day.start_s = 60_480;
    }
    for seed in 1..4 {
        let options = StreamOptions {
            class: "server".into(),
            clients: 1,
            seed,
            duration_ns: 1_300_000_000_000,
            warmup_ns: 0,
            folder: catalog.folder().to_owned(),
        };
        let mut counts = [0u32; 8];
        for request in Stream::new(&workload, options).unwrap() {
            counts[request.file.unwrap() as usize] += 1;
        }
        // Bosch, Table 7.1, but for disk 1, which it gives as 0 too.
        assert_eq!(counts, [31_066, 0, 1015, 6, 6, 8401, 12_427, 831]);
    }
}

#[test]
fn a_servers_second_day_is_like_the_first_but_not_the_same() {
    let catalog = catalog();
    let mut workload = catalog.load("cello-1992-06-01").unwrap();
    if let weir_workloads::Arrivals::ServerDay(day) = &mut workload.arrivals {
        day.disks.iter_mut().for_each(|disk| {
            disk.requests = disk.requests.min(5000) + disk.window.requests + disk.peak_per_minute;
        });
    }
    let day_ns = 86_400_000_000_000;
    let options = StreamOptions {
        class: "server".into(),
        clients: 1,
        seed: 1,
        duration_ns: 2 * day_ns,
        warmup_ns: 0,
        folder: catalog.folder().to_owned(),
    };
    let rows: Vec<_> = Stream::new(&workload, options).unwrap().collect();
    let (first, second): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.intended_ns < day_ns);
    assert_eq!(first.len(), second.len());
    let differ = first.iter().zip(&second).filter(|(a, b)| a.intended_ns + day_ns != b.intended_ns).count();
    assert!(differ > first.len() / 2);
}
