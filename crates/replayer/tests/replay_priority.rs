//! The priority of a class reaches the block layer.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::LoopDevice;
use common::block_trace::BlockTrace;
use weir_records::Request;
use weir_replayer::{Layout, Options, Route, Targets, replay};
use weir_vocabulary::IoPriority;

const LENGTH: u64 = 8 << 20;

#[test]
fn each_class_has_its_own_priority() {
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("disk");
    std::fs::write(&backing, vec![0; LENGTH as usize]).unwrap();
    let Some(device) = LoopDevice::attach(&backing, true) else { return };
    let trace = match BlockTrace::start(&device.numbers(), &["block_rq_issue"], 0) {
        Ok(trace) => trace,
        Err(error) => {
            eprintln!("skipped: needs tracefs: {error}");
            return;
        }
    };
    // Classes are told apart by the region that they read.
    let classes = [("video", "rt/3", "rt,0,3"), ("text", "be/6", "be,0,6"), ("backup", "idle", "idle,0,0")];
    let mut layout = Layout::default();
    let mut stream: Vec<Request> = Vec::new();
    for (region, (class, priority, _)) in (0..).zip(classes) {
        let priority = Some(IoPriority::try_from(priority.to_owned()).unwrap());
        let route = Route { base_offset_bytes: region << 20, priority, ..Route::to(&device.path) };
        layout.classes.insert(class.to_owned(), route);
        for i in 0..20 {
            let request = common::read(i, i as i64 * 1_000_000, i * 8192, 4096);
            stream.push(Request { class: Arc::from(class), ..request });
        }
    }
    stream.sort_by_key(|request| request.intended_ns);
    let targets = Targets::open(&layout).unwrap();
    let fidelity = replay(stream.into_iter(), &targets, &Options::default(), |_| ()).unwrap();
    assert_eq!((fidelity.completed, fidelity.failed), (60, 0));

    let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
    for event in trace.stop().unwrap() {
        let region = (event.sector * 512) >> 20;
        let (class, _, expected) = classes[region as usize];
        assert!(event.text.contains(expected), "{class}: {}", event.text);
        *seen.entry(region).or_default() += 1;
    }
    assert_eq!(seen, [(0, 20), (1, 20), (2, 20)].into());
}
