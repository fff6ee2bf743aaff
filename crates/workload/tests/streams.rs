//! Streams: exact where arithmetic says what must come out, statistical where the recipe is random.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;
use weir_records::Request;
use weir_specs::Document;
use weir_workload::{ALIGNMENT_BYTES, Catalog, Stream, StreamOptions, Workload};

const S: i64 = 1_000_000_000;

fn catalog() -> Catalog {
    Catalog::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")).unwrap()
}

fn options(clients: u32, seed: u64, seconds: i64) -> StreamOptions {
    StreamOptions {
        class: "text".into(),
        clients,
        seed,
        duration_ns: seconds * S,
        warmup_ns: S,
        folder: catalog().folder_of("").to_owned(),
    }
}

fn requests(workload: &Workload, options: StreamOptions) -> Vec<Request> {
    Stream::new(workload, options).unwrap().collect()
}

fn check_invariants(workload: &Workload, options: &StreamOptions) -> Vec<Request> {
    let stream = Stream::new(workload, options.clone()).unwrap();
    let sizes = stream.files().sizes_bytes().to_vec();
    let rows: Vec<Request> = stream.collect();
    let mut last = 0;
    for (row, index) in rows.iter().zip(0u64..) {
        assert_eq!(row.request, index);
        assert!(row.intended_ns >= last && row.intended_ns < options.duration_ns);
        last = row.intended_ns;
        let file = row.file.unwrap() as usize;
        assert!(row.size_bytes > 0);
        let unit = workload.alignment_bytes;
        assert_eq!((row.offset % unit, row.size_bytes % unit), (0, 0));
        assert!(row.offset + row.size_bytes <= sizes[file], "past the end of file {file}");
        assert_eq!(row.warmup, row.intended_ns < S);
        assert!(row.deadline_ns.is_none_or(|deadline| deadline > row.intended_ns));
    }
    rows
}

#[test]
fn every_shipped_workload_is_valid() {
    let catalog = catalog();
    let names: Vec<_> = catalog.names().collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        catalog.load(name).unwrap();
    }
}

#[test]
fn every_shipped_open_loop_workload_keeps_the_invariants() {
    let catalog = catalog();
    for name in catalog.names() {
        let workload = catalog.load(name).unwrap();
        if !workload.is_closed_loop() {
            check_invariants(&workload, &options(2, 5, 30));
        }
    }
}

#[test]
fn whole_files_are_cut_at_blocks_and_a_popular_file_is_asked_for_more_often() {
    let workload = catalog().load("zipf-class0").unwrap();
    let rows = check_invariants(&workload, &options(20, 5, 60));
    assert!(rows.iter().all(|row| row.size_bytes <= 262_144));
    let mut counts = std::collections::HashMap::new();
    rows.iter().filter(|row| row.offset == 0).for_each(|row| *counts.entry(row.file).or_insert(0) += 1);
    let most = counts.values().max().unwrap();
    // 2400 requests over 700 files and more: 3.4 each if all were alike.
    assert!(*most > 50, "{most}");
}

#[test]
fn the_same_seed_gives_the_same_requests_and_another_seed_others() {
    let text = catalog().load("poisson-text").unwrap();
    assert_eq!(requests(&text, options(5, 1, 10)), requests(&text, options(5, 1, 10)));
    assert_ne!(requests(&text, options(5, 1, 10)), requests(&text, options(5, 2, 10)));
}

#[test]
fn a_client_more_moves_no_other_clients_requests() {
    let text = catalog().load("poisson-text").unwrap();
    let times = |clients| -> Vec<i64> {
        let rows = requests(&text, options(clients, 1, 20));
        rows.iter().filter(|row| row.client == 0).map(|row| row.intended_ns).collect()
    };
    assert_eq!(times(1), times(7));
}

#[test]
fn poisson_arrivals_have_the_rate_and_variation_of_a_poisson_process() {
    let text = catalog().load("poisson-text").unwrap();
    let rows = check_invariants(&text, &options(100, 3, 200));
    let expected = 100.0 * 200.0;
    assert!((rows.len() as f64 - expected).abs() < 4.0 * f64::sqrt(expected), "{} requests", rows.len());
    let mut per_second = vec![0.0; 200];
    for row in &rows {
        per_second[(row.intended_ns / S) as usize] += 1.0;
    }
    let mean = per_second.iter().sum::<f64>() / 200.0;
    let variance = per_second.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 199.0;
    // Index of dispersion of counts: 1 for Poisson; its standard error here is sqrt(2/199) = 0.1.
    assert!((variance / mean - 1.0).abs() < 0.4, "index of dispersion {}", variance / mean);
}

#[test]
fn video_asks_for_its_bit_rate_in_rounds_with_deadlines() {
    let video = catalog().load("mpeg-vbr").unwrap();
    let rows = check_invariants(&video, &options(40, 3, 120));
    let bytes: u64 = rows.iter().map(|row| row.size_bytes).sum();
    let per_client = bytes as f64 / 40.0 / 120.0;
    assert!((per_client / (6208.3 * 30.0) - 1.0).abs() < 0.05, "{per_client} bytes/s per client");
    let first: Vec<_> = rows.iter().filter(|row| row.client == 0).collect();
    let mut times: Vec<_> = first.iter().map(|row| row.intended_ns).collect();
    times.dedup();
    assert!(times.windows(2).all(|pair| (pair[1] - pair[0] - S).abs() <= 1));
    assert!(first.iter().all(|row| (row.deadline_ns.unwrap() - row.intended_ns - S).abs() <= 1));
    assert!(first.iter().all(|row| row.size_bytes <= 65536));
}

#[test]
fn a_sequential_client_reads_each_block_once_until_it_goes_round() {
    let video = catalog().load("mpeg-vbr").unwrap();
    let rows = check_invariants(&video, &options(1, 9, 60));
    let mut seen = std::collections::HashSet::new();
    assert!(rows.iter().all(|row| seen.insert((row.file, row.offset))), "a block was read twice");
    assert!(rows.windows(2).all(|pair| {
        let end = pair[0].offset + pair[0].size_bytes;
        pair[1].offset == end || pair[1].offset == 0
    }));
}

#[test]
fn a_recorded_video_is_followed_frame_by_frame() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("frames.txt"), "32768\n".repeat(30)).unwrap();
    let mut video = catalog().load("mpeg-vbr").unwrap();
    let overrides = BTreeMap::from([(
        "sizes.frames.source".to_owned(),
        json!({"file": {"path": "frames.txt", "unit": "bits"}}),
    )]);
    let document = Document::from_text(Path::new("study.yml"), "with: {}").unwrap();
    video = video.with_overrides(&overrides, &document, "with").unwrap();
    let rows: Vec<_> =
        Stream::new(&video, StreamOptions { folder: folder.path().to_owned(), ..options(1, 1, 100) })
            .unwrap()
            .collect();
    let bytes: u64 = rows.iter().map(|row| row.size_bytes).sum();
    // 30 frames of 4096 bytes in each of 100 rounds, widened to blocks at the two ends only.
    assert!((bytes as i64 - 30 * 4096 * 100).abs() <= 2 * 65536, "{bytes} bytes");
}

#[test]
fn a_closed_loop_has_no_stream() {
    let closed = catalog().load("random-4k").unwrap();
    assert!(Stream::new(&closed, options(1, 1, 1)).err().unwrap().contains("closed-loop"));
}

#[test]
fn overrides_are_checked_like_the_specification() {
    let text = catalog().load("poisson-text").unwrap();
    let study = "classes:\n  text:\n    with:\n      arrivals.poisson.rate: 3\n";
    let document = Document::from_text(Path::new("study.yml"), study).unwrap();
    let with = |name: &str, value: serde_json::Value| {
        text.with_overrides(&BTreeMap::from([(name.to_owned(), value)]), &document, "classes.text.with")
    };
    let error = with("arrivals.poisson.rate", json!(3)).unwrap_err().to_string();
    assert!(
        error.starts_with("study.yml:4: classes.text.with.arrivals.poisson.rate: unknown field"),
        "{error}"
    );
    assert!(error.contains("did you mean `rate_per_s`?") || error.contains("known: rate_per_s"), "{error}");
    let error = with("arrivals.poisson.rate_per_s", json!(-3)).unwrap_err().to_string();
    assert!(error.contains("is -3"), "{error}");
    assert!(with("arrivals.poisson.rate_per_s", json!(5)).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_workload_keeps_the_invariants(
        name in prop::sample::select(vec!["poisson-text", "zipf-web", "mpeg-vbr", "auspex-nfs", "sprite", "cello-1992-06-01"]),
        clients in 1u32..20,
        seed in any::<u64>(),
        block in prop::option::of(1u64..64),
        alignment in prop::sample::select(vec![512u64, 4096]),
        read_share in 0.0f64..=1.0,
        file_pages in 1u64..2000,
    ) {
        let mut workload = catalog().load(name).unwrap();
        if name != "mpeg-vbr" || block.is_some() {
            workload.block_bytes = block.map(|pages| pages * ALIGNMENT_BYTES);
        }
        workload.read_share = read_share;
        workload.alignment_bytes = alignment;
        workload.files.size = weir_workload::Distribution::Fixed { bytes: file_pages * 4096 - 1 };
        check_invariants(&workload, &options(clients, seed, 5));
    }
}
