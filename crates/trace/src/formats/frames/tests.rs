//! All layouts, and their required options.

use super::*;
use crate::Options;

fn read(text: &'static str, options: &[(&str, &str)]) -> Result<Vec<TraceRequest>, Error> {
    let mut all = Options::default();
    for (key, value) in options {
        all.set(key, value).unwrap();
    }
    let input = Input::from_reader(std::path::Path::new("video"), text.as_bytes()).unwrap();
    let mut reader = (FORMAT.open)(input, &all)?;
    std::iter::from_fn(|| reader.next_request().transpose()).collect()
}

const VERBOSE: &str = "# Frame\tTime [ms]\tType\tSize [Bit]\n0\t0.0\tIDR\t800\t9\n3\t100.0\tP\t161\t9\n\
                       1\t33.333330\tB\t16\t9\n2\t66.666660\tB\t8\t9\n";

#[test]
fn verbose_files_are_put_into_display_order() {
    let frames = read(VERBOSE, &[]).unwrap();
    let seen: Vec<_> =
        frames.iter().map(|f| (f.object, f.arrival_ns, f.size_bytes, f.offset_bytes)).collect();
    assert_eq!(
        seen,
        [
            (Some(0), 0, 100, 0),
            (Some(1), 33_333_330, 2, 121),
            (Some(2), 66_666_660, 1, 123),
            (Some(3), 100_000_000, 21, 100)
        ]
    );
    // A rate option is more exact than the times in the file.
    assert_eq!(read(VERBOSE, &[("rate_hz", "30")]).unwrap()[1].arrival_ns, 33_333_333);
}

#[test]
fn or_left_in_coding_order() {
    let frames = read(VERBOSE, &[("order", "coding"), ("rate_hz", "30")]).unwrap();
    let seen: Vec<_> = frames.iter().map(|f| (f.object, f.arrival_ns)).collect();
    assert_eq!(seen, [(Some(0), 0), (Some(3), 33_333_333), (Some(1), 66_666_666), (Some(2), 100_000_000)]);
}

#[test]
fn plain_files_need_their_unit_and_rate() {
    let error = |options: &[_]| read("18059\n7274\n", options).unwrap_err().to_string();
    assert!(error(&[]).contains("--option unit=bits") && error(&[]).contains("--format lirs"));
    assert!(error(&[("unit", "bytes")]).contains("--option rate_hz="));
    assert!(error(&[("unit", "bytes"), ("rate_hz", "25"), ("order", "coding")]).contains("verbose"));
    let frames = read("18059\n7274\n", &[("unit", "bytes"), ("rate_hz", "30000/1001")]).unwrap();
    assert_eq!((frames[0].size_bytes, frames[1].offset_bytes), (18_059, 18_059));
    assert_eq!(frames[1].arrival_ns, 33_366_666);
    assert_eq!(read("12\n", &[("unit", "bits"), ("rate_hz", "24")]).unwrap()[0].size_bytes, 2);
}

#[test]
fn terse_files_need_their_rate() {
    assert!(read("536\t98.19\n", &[]).unwrap_err().to_string().contains("rate_hz"));
    let frames = read("536\t98.19\n136\t98.19\n", &[("rate_hz", "29.97")]).unwrap();
    assert_eq!((frames[0].size_bytes, frames[1].arrival_ns), (67, 33_366_700));
}

#[test]
fn layouts_are_told_apart() {
    for (row, layout) in [
        ("18059", Some(Layout::Plain)),
        ("536\t98.19", Some(Layout::Terse)),
        ("0\t0.0\tIDR\t800\t9", Some(Layout::Verbose)),
        ("1 2", None),
        ("0 0.0 X 800", None),
        ("3.5", None),
    ] {
        assert_eq!(Layout::of(row.as_bytes()), layout, "{row}");
    }
    assert!(detect(VERBOSE.as_bytes()) && !detect(b"1\n2.5\n"));
}

#[test]
fn a_frame_that_comes_again_or_too_late_is_named() {
    let rows = "0 0.0 I 8\n1 1.0 P 8\n1 1.0 P 8\n";
    let error = read(rows, &[]).unwrap_err().to_string();
    assert!(error.starts_with("video:3: frame is \"1\""), "{error}");
}
