use std::fs;

use proptest::prelude::*;

use super::*;

fn request(class: &str, file: Option<u32>, op: Op, offset: u64, size_bytes: u64) -> Request {
    Request {
        request: 0,
        class: Arc::from(class),
        client: 0,
        device: None,
        file,
        op,
        offset,
        size_bytes,
        intended_ns: 0,
        submitted_ns: None,
        completed_ns: None,
        deadline_ns: None,
        served_ns: None,
        status: 0,
        warmup: false,
    }
}

fn file_of(folder: &Path, name: &str, size_bytes: u64) -> PathBuf {
    let path = folder.join(name);
    fs::File::create(&path).unwrap().set_len(size_bytes).unwrap();
    path
}

#[test]
fn every_refusal_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let single = file_of(folder.path(), "disk", 10_000);
    let set = folder.path().join("set");
    fs::create_dir(&set).unwrap();
    file_of(&set, "000003.dat", 8192);
    let mut layout = Layout { default: Some(Route::to(&single)), ..Layout::default() };
    layout.classes.insert("web".to_owned(), Route::to(&set));
    let targets = Targets::open(&layout).unwrap();
    for (wrong, says) in [
        (request("text", None, Op::Read, 9_000, 1001), "past the end of"),
        (request("text", None, Op::Read, u64::MAX, 2), "beyond any device"),
        (request("text", None, Op::Read, 0, 0), "size_bytes is 0"),
        (request("text", None, Op::Write, 0, 512), "writing was not allowed"),
        (request("text", Some(3), Op::Read, 0, 512), "name a directory with 000003.dat"),
        (request("web", None, Op::Read, 0, 512), "name a device or a file"),
        (request("web", Some(4), Op::Read, 0, 512), "000004.dat"),
    ] {
        let reason = targets.resolve(&wrong).unwrap_err();
        assert!(reason.contains(says), "{reason}");
    }
    assert!(targets.resolve(&request("web", Some(3), Op::Read, 4096, 4096)).is_ok());
    assert!(targets.resolve(&request("text", None, Op::Read, 9_000, 1000)).is_ok());
}

#[test]
fn targets_that_cannot_be_used_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| {
        Targets::open(&Layout { default: Some(Route::to(path)), ..Layout::default() })
            .unwrap_err()
            .to_string()
    };
    assert!(open(&folder.path().join("absent")).contains("cannot be looked up"));
    assert!(open(folder.path()).contains("000000.dat"));
    assert!(open(Path::new("/dev/null")).contains("character device"));
}

#[test]
fn classes_share_an_open_target() {
    let folder = tempfile::tempdir().unwrap();
    let single = file_of(folder.path(), "disk", 1 << 20);
    let mut layout = Layout { default: Some(Route::to(&single)), ..Layout::default() };
    let region = Route {
        base_offset_bytes: 65_536,
        priority: Some(IoPriority::try_from("rt/2".to_owned()).unwrap()),
        ..Route::to(&single)
    };
    layout.classes.insert("video".to_owned(), region);
    let targets = Targets::open(&layout).unwrap();
    assert_eq!(targets.targets.len(), 1);
    let video = targets.resolve(&request("video", None, Op::Read, 4096, 4096)).unwrap();
    assert_eq!((video.offset, video.priority), (69_632, 0x2002));
    let text = targets.resolve(&request("text", None, Op::Read, 4096, 4096)).unwrap();
    assert_eq!((text.offset, text.priority), (4096, 0));
}

proptest! {
    #[test]
    fn a_transfer_covers_its_request(offset in 0_u64..200_000, size in 1_u64..70_000, align in 0_u32..13, base in 0_u64..9_000) {
        let folder = tempfile::tempdir().unwrap();
        let length = 200_000;
        let path = file_of(folder.path(), "disk", length);
        let route = Route { base_offset_bytes: base, ..Route::to(&path) };
        let layout = Layout { default: Some(route), allow_writes: true, ..Layout::default() };
        let mut targets = Targets::open(&layout).unwrap();
        let align = 1_u64 << align;
        targets.targets[0].files[0].alignment_bytes = align;
        let (begin, end) = (offset + base, offset + base + size);
        match targets.resolve(&request("text", None, Op::Read, offset, size)) {
            Err(reason) => prop_assert!(end > length, "{}", reason),
            Ok(transfer) => {
                let stop = transfer.offset + u64::from(transfer.length);
                prop_assert!(transfer.offset <= begin && end <= stop && end <= length);
                prop_assert!(transfer.offset % align == 0 && stop % align == 0);
                prop_assert!(begin - transfer.offset < align && stop - end < align);
                prop_assert_eq!(u64::from(transfer.skip), begin - transfer.offset);
                prop_assert_eq!(u64::from(transfer.expected), stop.min(length) - transfer.offset);
                let write = targets.resolve(&request("text", None, Op::Write, offset, size));
                prop_assert_eq!(write.is_ok(), stop <= length);
            }
        }
    }
}
