//! Every shipped specification meets the figures that it declares, and gives the same bytes everywhere.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};
use weir_specs::Document;
use weir_workload::{Catalog, Stream, StreamOptions, Workload, calibrate};

const SEEDS: u64 = 20;

fn catalog() -> Catalog {
    Catalog::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")).unwrap()
}

/// Options of a server's disks.
fn server_options(catalog: &Catalog, seed: u64, duration_ns: i64) -> StreamOptions {
    StreamOptions {
        class: "server".into(),
        clients: 1,
        seed,
        duration_ns,
        warmup_ns: 0,
        folder: catalog.folder_of("").to_owned(),
    }
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
        let calibration = calibrate(&workload, catalog.folder_of(""), SEEDS, threads()).unwrap();
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
    let with = |threads| calibrate(&workload, catalog.folder_of(""), 5, threads).unwrap();
    assert_eq!(with(1), with(3));
}

/// SHA-256 of a stream's first requests, field by field in little endian.
fn fingerprint(catalog: &Catalog, workload: &Workload) -> String {
    let options = StreamOptions {
        class: "golden".into(),
        clients: 3,
        seed: 1,
        duration_ns: 86_400_000_000_000,
        warmup_ns: 0,
        folder: catalog.folder_of("").to_owned(),
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
const GOLDEN: &[(&str, &str)] = &[
    ("aperiodic-4-128k", "edc1cd76c4312052"),
    ("auspex-nfs", "703f70f9f1974403"),
    ("auspex-nfs-on-off", "d6c48628112d1507"),
    ("cello-1992-06-01", "d207d473a3babb24"),
    ("interactive-64k", "7a0b2a1bfbaeae78"),
    ("mjpeg-red-october", "2c394c5baf84fd69"),
    ("mjpeg-red-october-clip", "9240be2e764ef260"),
    ("mjpeg-wallace", "d19fd3e4b9399223"),
    ("mpeg-asterix", "24b6c5cf7e2b2a1c"),
    ("mpeg-flintstones", "ef8619762cec1039"),
    ("mpeg-four-frames", "f835158d3eeefc44"),
    ("mpeg-frasier", "3765b53776fce1c9"),
    ("mpeg-lambs", "cf65133d5801d1e7"),
    ("mpeg-news", "3f4f0b16ecda52ee"),
    ("mpeg-newscast", "85de6a7627cb7f87"),
    ("mpeg-olympics", "aa724a343dbf6deb"),
    ("mpeg-shenoy", "3615c4b94b5e1a27"),
    ("mpeg-term", "7a385c5a20a4cec7"),
    ("mpeg-vbr", "cd53ccaf9ab60b78"),
    ("poisson-text", "db839f5c747734c4"),
    ("sprite", "de41930ce099152c"),
    ("zipf-class0", "9da2c7516531ec25"),
    ("zipf-class1", "7152949e440ba237"),
    ("zipf-class2", "02a92ea163468502"),
    ("zipf-class3", "db37ff81f71fbf0f"),
    ("zipf-class4", "1b346cdc32bc9fb4"),
    ("zipf-web", "616518bb4a196b2e"),
];

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
    assert!(GOLDEN.len() >= 27);
}

/// The problems of a specification with one piece of its text replaced.
fn problems_with(name: &str, from: &str, to: &str) -> String {
    let path = catalog().file(name).unwrap().to_owned();
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
        (
            "auspex-nfs",
            "alignment_bytes: 512",
            "alignment_bytes: 1000",
            "it must be 512, or a multiple of 4096",
        ),
        ("auspex-nfs", "share: 0.58", "share: 0.5", "sizes.drawn.mixture: has shares that add up to 0.92"),
        (
            "cello-1992-06-01",
            "peak_per_minute: 2654",
            "peak_per_minute: 450",
            "requests in its window, more than",
        ),
        (
            "cello-1992-06-01",
            "from_s: 60480, to_s: 61780}",
            "from_s: 60485, to_s: 61780}",
            "must be multiples of 20",
        ),
        ("cello-1992-06-01", "count: 8", "count: 7", "has 8 disks that are asked, and files.count is 7"),
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
        ("cello-1992-06-01", "hour: 15", "hour: 24", "disks.0: knows hour 24: it must be from 0 to 23"),
        (
            "cello-1992-06-01",
            "[{hour: 15, requests: 41119}]",
            "[{hour: 15, requests: 41119}, {hour: 15, requests: 41119}]",
            "disks.0: has its known hours out of order, or one of them twice",
        ),
        // 180 cells of at most floor(0.9 * 2654 / 3).
        (
            "cello-1992-06-01",
            "requests: 41119}",
            "requests: 143281}",
            "disks.0: has 143281 requests in hour 15; with its window and a busiest minute of 2654 it must be from 33720 to 143280",
        ),
        ("cello-1992-06-01", "requests: 41119}", "requests: 33719}", "it must be from 33720 to 143280"),
        (
            "cello-1992-06-01",
            "requests: 122730",
            "requests: 102050",
            "disks.5: has 102050 requests, 91052 of them in known hours",
        ),
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
    if let weir_workload::Arrivals::ServerDay(day) = &mut workload.arrivals {
        day.start_s = 60_480;
    }
    for seed in 1..4 {
        let options = server_options(&catalog, seed, 1_300_000_000_000);
        let mut counts = [0u32; 8];
        for request in Stream::new(&workload, options).unwrap() {
            counts[request.file.unwrap() as usize] += 1;
        }
        // Bosch, Table 7.1, but for disk 1, which it gives as 0 too.
        assert_eq!(counts, [31_066, 0, 1015, 6, 6, 8401, 12_427, 831]);
    }
}

/// By disk, hour and seed; hours of two disks are known.
fn hours_of_cello(seed: u64, change: impl Fn(&mut weir_workload::ServerDay)) -> [[u32; 24]; 8] {
    let catalog = catalog();
    let mut workload = catalog.load("cello-1992-06-01").unwrap();
    if let weir_workload::Arrivals::ServerDay(day) = &mut workload.arrivals {
        change(day);
    }
    let options = server_options(&catalog, seed, 86_400_000_000_000);
    let mut hours = [[0u32; 24]; 8];
    for request in Stream::new(&workload, options).unwrap() {
        let hour = request.intended_ns / 3_600_000_000_000;
        hours[request.file.unwrap() as usize][hour as usize] += 1;
    }
    hours
}

#[test]
fn a_server_without_known_hours_has_the_bytes_of_before_there_were_any() {
    let catalog = catalog();
    let mut workload = catalog.load("cello-1992-06-01").unwrap();
    if let weir_workload::Arrivals::ServerDay(day) = &mut workload.arrivals {
        day.disks.iter_mut().for_each(|disk| disk.known_hours.clear());
    }
    assert_eq!(fingerprint(&catalog, &workload), "16c046ab4535413e");
}

#[test]
fn a_servers_known_hours_are_met_and_leave_other_disks_as_they_are() {
    for seed in 1..4 {
        let known = hours_of_cello(seed, |_| ());
        // Bosch, Table 3.4, day 44.
        assert_eq!((known[0][15], known[5][16]), (41_119, 91_052));
        assert_eq!([0, 5].map(|disk| known[disk].iter().sum::<u32>()), [200_796, 122_730]);
        // They are the busiest ones of these disks in 63 days.
        assert_eq!([0, 5].map(|disk| known[disk].iter().copied().max()), [Some(41_119), Some(91_052)]);
        let free = hours_of_cello(seed, |day| day.disks.iter_mut().for_each(|disk| disk.known_hours.clear()));
        for disk in [1, 2, 3, 4, 6, 7] {
            assert_eq!(known[disk], free[disk], "disk {disk}");
        }
    }
}

#[test]
fn a_servers_second_day_is_like_the_first_but_not_the_same() {
    let catalog = catalog();
    let mut workload = catalog.load("cello-1992-06-01").unwrap();
    if let weir_workload::Arrivals::ServerDay(day) = &mut workload.arrivals {
        day.disks.iter_mut().for_each(|disk| {
            disk.known_hours.clear();
            disk.requests = disk.requests.min(5000) + disk.window.requests + disk.peak_per_minute;
        });
    }
    let day_ns = 86_400_000_000_000;
    let options = server_options(&catalog, 1, 2 * day_ns);
    let rows: Vec<_> = Stream::new(&workload, options).unwrap().collect();
    let (first, second): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.intended_ns < day_ns);
    assert_eq!(first.len(), second.len());
    let differ = first.iter().zip(&second).filter(|(a, b)| a.intended_ns + day_ns != b.intended_ns).count();
    assert!(differ > first.len() / 2);
}

#[test]
fn the_films_own_load_is_an_eighth_of_the_papers_at_25_frames_a_second() {
    let document = Document::from_text(Path::new("study.yml"), "with: {}").unwrap();
    // Mean frame sizes that Rose (1995) published, in bits: 7312, 10904, 20664, 22348.
    for (name, bits) in
        [("mpeg-lambs", 7312.0), ("mpeg-term", 10904.0), ("mpeg-news", 20664.0), ("mpeg-asterix", 22348.0)]
    {
        let overrides = BTreeMap::from([
            ("sizes.frames.source.synthetic.bytes_per_unit".to_owned(), json!(0.125)),
            ("sizes.frames.rate_hz".to_owned(), json!(25)),
        ]);
        let mut workload =
            catalog().load(name).unwrap().with_overrides(&overrides, &document, "with").unwrap();
        workload.block_bytes = Some(4096);
        let options = StreamOptions {
            class: "video".into(),
            clients: 50,
            seed: 1,
            duration_ns: 300_000_000_000,
            warmup_ns: 0,
            folder: catalog().folder_of("").to_owned(),
        };
        let bytes: u64 = Stream::new(&workload, options).unwrap().map(|request| request.size_bytes).sum();
        let per_client = bytes as f64 / 50.0 / 300.0;
        // 12.5 frames a round: 12 and 13 by turns.
        let expected = bits / 8.0 * 25.0;
        assert!((per_client / expected - 1.0).abs() < 0.08, "{name}: {per_client} for {expected}");
    }
}

/// A disk's day that may or may not be possible.
fn any_disk() -> impl Strategy<Value = serde_json::Value> {
    let known = prop_oneof![Just(Vec::new()), prop::collection::vec((0u8..24, 0u32..4000), 1..3)];
    (0u32..4000, 0u32..400, 0u32..100, 0u32..600, 0u32..60, known).prop_map(
        |(rest, peak, flush, requests, per_s, known)| {
            let in_known: u32 = known.iter().map(|(_, requests)| requests).sum();
            let known: Vec<_> =
                known.iter().map(|(hour, requests)| json!({"hour": hour, "requests": requests})).collect();
            json!({
                "requests": rest + peak + requests + in_known,
                "peak_per_minute": peak,
                "longest_flush": flush,
                "window": {"requests": requests, "peak_per_s": per_s},
                "known_hours": known,
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_server_day_is_refused_or_has_its_totals_and_peaks(
        disks in prop::collection::vec(any_disk(), 1..4),
        hours in prop::collection::vec(prop_oneof![Just(0.0), 0.1f64..10.0], 24),
        window in prop_oneof![Just((0u32, 4320u32)), Just((3024, 3089)), (0u32..4000, 1u32..320).prop_map(|(a, n)| (a, a + n))],
        cov in 0.0f64..5.0,
        seed in any::<u64>(),
    ) {
        let catalog = catalog();
        let document = Document::from_text(Path::new("study.yml"), "with: {}").unwrap();
        let day = |field: &str| format!("arrivals.server_day.{field}");
        let overrides = BTreeMap::from([
            (day("disks"), json!(disks)),
            (day("hours"), json!(hours)),
            (day("window"), json!({"from_s": window.0 * 20, "to_s": window.1 * 20})),
            (day("cell_cov"), json!(cov)),
            ("files.count".to_owned(), json!(disks.len())),
        ]);
        let cello = catalog.load("cello-1992-06-01").unwrap();
        let Ok(workload) = cello.with_overrides(&overrides, &document, "with") else { return Ok(()) };
        let options = server_options(&catalog, seed, 86_400_000_000_000);
        let mut minutes = vec![vec![0u64; 1440]; disks.len()];
        let mut seconds = vec![BTreeMap::<i64, u64>::new(); disks.len()];
        for request in Stream::new(&workload, options).unwrap() {
            let file = request.file.unwrap() as usize;
            let second = request.intended_ns / 1_000_000_000;
            minutes[file][(second / 60) as usize] += 1;
            if (i64::from(window.0) * 20..i64::from(window.1) * 20).contains(&second) {
                *seconds[file].entry(second).or_default() += 1;
            }
        }
        for (at, disk) in disks.iter().enumerate() {
            prop_assert_eq!(minutes[at].iter().sum::<u64>(), disk["requests"].as_u64().unwrap());
            prop_assert_eq!(minutes[at].iter().max().copied(), disk["peak_per_minute"].as_u64());
            prop_assert_eq!(seconds[at].values().sum::<u64>(), disk["window"]["requests"].as_u64().unwrap());
            for known in disk["known_hours"].as_array().unwrap() {
                let hour = known["hour"].as_u64().unwrap() as usize;
                let found = minutes[at][hour * 60..(hour + 1) * 60].iter().sum::<u64>();
                prop_assert_eq!(found, known["requests"].as_u64().unwrap());
            }
            let peak = disk["window"]["peak_per_s"].as_u64().unwrap();
            prop_assert_eq!(seconds[at].values().max().copied().unwrap_or(0), peak);
        }
    }
}
