//! Real traces, read to the statistics that are known of them. The files are not part of this repository: the
//! environment variable `WEIR_TRACES` names the folder that they are in, laid out by source (`disksim/ajw.1week.srt`).

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use weir_trace::{Options, Reader, TraceOp, TraceRequest, open};

/// A trace, read as a whole.
struct Sample {
    format: &'static str,
    reader: Box<dyn Reader>,
    requests: Vec<TraceRequest>,
}

/// Reads a file with options, or prints why it cannot. Without option `format`, the format is detected from the content.
fn sample(file: &str, options: &[(&str, &str)]) -> Option<Sample> {
    let Some(folder) = std::env::var_os("WEIR_TRACES") else {
        eprintln!("skipped: WEIR_TRACES does not name a folder with {file}");
        return None;
    };
    let path = PathBuf::from(folder).join(file);
    if !path.exists() {
        eprintln!("skipped: there is no {}", path.display());
        return None;
    }
    let mut all = Options::default();
    for (key, value) in options {
        match *key {
            "format" => all.format = Some((*value).to_owned()),
            key => all.set(key, value).unwrap(),
        }
    }
    let (format, mut reader) = open(&path, &all).unwrap();
    let mut requests = Vec::new();
    while let Some(request) = reader.next_request().unwrap() {
        requests.push(request);
    }
    assert_eq!(reader.skipped().count(), 0, "{file}");
    Some(Sample { format: format.name, reader, requests })
}

impl Sample {
    fn share_of_reads(&self) -> f64 {
        let reads = self.requests.iter().filter(|request| request.op == TraceOp::Read).count();
        reads as f64 / self.requests.len() as f64
    }

    fn moments(&self, value: impl Fn(&TraceRequest) -> f64) -> (f64, f64) {
        moments(&self.requests.iter().map(value).collect::<Vec<_>>())
    }

    fn span_s(&self) -> f64 {
        let times = || self.requests.iter().map(|request| request.arrival_ns);
        (times().max().unwrap() - times().min().unwrap()) as f64 / 1e9
    }

    fn objects(&self) -> usize {
        self.requests.iter().filter_map(|request| request.object).collect::<HashSet<_>>().len()
    }
}

/// Mean, and standard deviation over n - 1.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (squares / (values.len() - 1) as f64).sqrt())
}

/// Whether a number is another, as far as that is printed.
#[track_caller]
fn printed(value: f64, expected: &str) {
    let places = expected.split_once('.').map_or(0, |(_, places)| places.len());
    let unit = 10_f64.powi(-(places as i32));
    let expected: f64 = expected.parse().unwrap();
    assert!((value - expected).abs() <= 0.51 * unit, "{value} is not {expected}");
}

#[test]
fn hplajw() {
    let Some(week) = sample("disksim/ajw.1week.srt", &[]) else { return };
    assert_eq!((week.format, week.requests.len()), ("srt", 44_519));
    assert_eq!(
        week.requests[0],
        TraceRequest {
            arrival_ns: 0,
            queueing_ns: Some(174_000),
            response_ns: Some(19_687_000),
            device: 0,
            op: TraceOp::Read,
            offset_bytes: 1056 * 256,
            size_bytes: 4096,
            object: None,
            queue_length: Some(1),
            pid: None,
        }
    );
    printed(week.span_s(), "603064.6");
    printed(100.0 * week.share_of_reads(), "29.3");
    printed(week.moments(|r| r.size_bytes as f64).0, "5914");
    printed(week.moments(|r| r.queueing_ns.unwrap() as f64 / 1e6).0, "91.6");
    printed(week.moments(|r| (r.response_ns.unwrap() - r.queueing_ns.unwrap()) as f64 / 1e6).0, "25.1");
    printed(week.moments(|r| r.response_ns.unwrap() as f64 / 1e6).0, "116.7");
    let gaps: Vec<_> =
        week.requests.windows(2).map(|pair| (pair[1].arrival_ns - pair[0].arrival_ns) as f64).collect();
    let (mean, deviation) = moments(&gaps);
    printed(deviation / mean, "9.81");
    assert_eq!(week.reader.devices().len(), 2);
    // 113 sectors of 256 bytes on 8 heads and 1449 cylinders.
    assert!(week.requests.iter().all(|r| r.offset_bytes + r.size_bytes <= 113 * 8 * 1449 * 256));
    let header = week.reader.header();
    assert!(header.contains(&("tracedate".to_owned(), "Sat May 30 00:03:06 1992".to_owned())));
}

/// Frames, mean and coefficient of variation, largest, KB/s (of 1024) at the rate.
#[track_caller]
fn video(file: &str, options: &[(&str, &str)], rate_hz: f64, known: (usize, &str, &str, u64, &str)) -> bool {
    let Some(video) = sample(file, options) else { return false };
    let (frames, mean, variation, largest, kb_s) = known;
    assert_eq!((video.format, video.requests.len()), ("frames", frames));
    let (bytes, deviation) = video.moments(|r| r.size_bytes as f64);
    printed(bytes, mean);
    printed(deviation / bytes, variation);
    assert_eq!(video.requests.iter().map(|r| r.size_bytes).max(), Some(largest));
    printed(bytes * rate_hz / 1024.0, kb_s);
    let seconds = (frames - 1) as f64 / rate_hz;
    assert!((video.span_s() - seconds).abs() < 1e-3 * rate_hz, "{} s of {seconds}", video.span_s());
    assert!(video.requests.iter().enumerate().all(|(number, r)| r.object == Some(number as u64)));
    true
}

#[test]
fn videos() {
    let bytes_at = |rate| [("unit", "bytes"), ("rate_hz", rate)];
    let garrett = "mpeg/garrett/starwars.frames.old";
    if video(garrett, &bytes_at("24"), 24.0, (171_000, "27791.2", "0.225", 78_459, "651.36")) {
        let frames = sample(garrett, &bytes_at("24")).unwrap();
        printed(frames.moments(|r| r.size_bytes as f64).1, "6254.2");
        assert_eq!(frames.requests.iter().map(|r| r.size_bytes).min(), Some(8622));
    }
    video("mpeg/tkn/Terse_silence.dat", &bytes_at("25"), 25.0, (89_998, "2876", "0.797", 22_239, "70.22"));
    let at_30 = [("rate_hz", "30")];
    video("mpeg/asu/silenceOfTheLambs_terse", &at_30, 30.0, (53_997, "7431", "1.133", 82_228, "217.70"));
    video("mpeg/asu/starWars4_terse", &at_30, 30.0, (53_997, "6784", "1.054", 52_977, "198.75"));
    // The file has times.
    video("mpeg/asu/terminator2_verbose", &[], 30.0, (17_998, "119212", "0.441", 405_006, "3492.55"));
}

#[test]
fn virtual_disks_of_cloudphysics() {
    let Some(vscsi) = sample("libcachesim/cloudPhysicsIO.vscsi", &[]) else { return };
    assert_eq!((vscsi.format, vscsi.requests.len()), ("vscsi1", 113_872));
    printed(vscsi.span_s(), "7200");
    printed(100.0 * vscsi.share_of_reads(), "41");
    printed(vscsi.moments(|r| r.size_bytes as f64).0, "36936");
    // The same requests, as objects: an object is the first block, and keeps the size of its first request.
    let Some(oracle) = sample("libcachesim/cloudPhysicsIO.oracleGeneral.bin", &[]) else { return };
    assert_eq!((oracle.format, oracle.requests.len()), ("oracle-general", 113_872));
    let mut sizes = HashMap::new();
    for (request, object) in vscsi.requests.iter().zip(&oracle.requests) {
        assert_eq!(Some(request.offset_bytes / 512), object.object);
        let size_bytes = *sizes.entry(request.offset_bytes).or_insert(request.size_bytes);
        assert_eq!(size_bytes, object.size_bytes);
        assert_eq!(request.arrival_ns / 1_000_000_000, object.arrival_ns / 1_000_000_000);
    }
}

#[test]
fn nfs_at_harvard() {
    let Some(nfs) = sample("dataseries/ellard-raw-data.txt", &[]) else { return };
    let noted: u64 = nfs.reader.skipped().noted().iter().map(|(_, count)| count).sum();
    let answered = nfs.requests.iter().filter(|r| r.response_ns.is_some()).count();
    // 176 lines: calls, replies to them, and replies to others; unanswered calls are noted too.
    let unanswered = nfs.requests.len() - answered;
    assert_eq!(nfs.format, "nfsdump");
    assert_eq!((nfs.requests.len() + answered) as u64 + noted - unanswered as u64, 176);
    let first_read = nfs.requests.iter().find(|r| r.op == TraceOp::Read).unwrap();
    assert_eq!((first_read.arrival_ns, first_read.response_ns), (1_006_231_504_285_023_000, Some(9_685_000)));
    assert_eq!((first_read.offset_bytes, first_read.size_bytes), (0, 0x2000));
}

#[test]
fn references_without_times() {
    if let Some(sprite) = sample("caffeine/lirs_sprite.trace.gz", &[("format", "lirs")]) {
        assert_eq!((sprite.requests.len(), sprite.objects()), (133_996, 7075));
    }
    if let Some(web) = sample("caffeine/cache2k_web12.trace.xz", &[("format", "cache2k")]) {
        assert_eq!((web.requests.len(), web.objects()), (95_607, 13_756));
    }
}

#[test]
fn world_cup() {
    let Some(log) = sample("dataseries/wc_day50_4.head", &[]) else { return };
    assert_eq!((log.format, log.requests.len()), ("worldcup", 10_000));
    assert_eq!((log.objects(), log.span_s() as u64), (1244, 42));
    assert!(log.requests.iter().filter(|r| r.size_bytes == 0).count() >= 723);
}

#[test]
fn block_traces_of_servers_and_clouds() {
    if let Some(msr) = sample("msr/msr-cambridge1-sample.csv", &[]) {
        assert_eq!((msr.format, msr.requests.len()), ("msr", 1000));
        let first = msr.requests[0];
        assert_eq!((first.offset_bytes, first.size_bytes), (9_056_014_336, 2048));
        assert_eq!((first.op, first.response_ns), (TraceOp::Write, Some(283_300)));
        assert_eq!(first.arrival_ns, (128_166_385_295_514_663 - 116_444_736_000_000_000) * 100);
        assert_eq!(msr.reader.devices().name(0), "hm_0");
    }
    if let Some(systor) = sample("systor/systor17-traces-sample.csv.gz", &[]) {
        assert_eq!((systor.format, systor.requests.len()), ("systor", 999));
    }
    if let Some(tencent) = sample("tencent/cloud_storage-sample.bz2", &[]) {
        assert_eq!((tencent.format, tencent.requests.len()), ("tencent", 50_000));
        assert_eq!(tencent.reader.devices().len(), 2038);
        let first = tencent.requests[0];
        assert_eq!((first.op, first.offset_bytes), (TraceOp::Write, 4_247_200 * 512));
    }
}

#[test]
fn traces_of_simulators() {
    if let Some(ascii) = sample("disksim/ascii.trace", &[]) {
        assert_eq!((ascii.format, ascii.requests.len()), ("disksim", 100_000));
        printed(100.0 * ascii.share_of_reads(), "80");
        assert_eq!(ascii.reader.devices().len(), 14);
    }
    if let Some(tpcc) = sample("mqsim/tpcc-small.trace", &[]) {
        assert_eq!((tpcc.format, tpcc.requests.len()), ("mqsim", 6999));
    }
    for (disk, lines) in [("barracuda", 10_000), ("dec_rz26", 7980), ("hp_c2247a", 9999), ("hp_c3323a", 9074)]
    {
        if let Some(disk) = sample(&format!("disksim/{disk}.trace"), &[]) {
            assert_eq!((disk.format, disk.requests.len()), ("disksim-validate", lines));
            assert!(disk.requests.windows(2).all(|pair| pair[0].arrival_ns <= pair[1].arrival_ns));
        }
    }
}
