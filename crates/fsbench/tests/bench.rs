//! The benchmark on file systems of its own, and against tools that know nothing of it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use weir_fsbench::{Cold, Error, Options, Report, Verified, bench};
use weir_host::page_cache::residency;

/// A file system on a loop device, gone when it is dropped.
struct Loop {
    folder: tempfile::TempDir,
}

impl Loop {
    fn ext4() -> Option<Self> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
            eprintln!("skipped: needs root and loop devices");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()])?;
        fs::create_dir(folder.path().join("mnt")).unwrap();
        let made = Loop { folder };
        // Devices are taken by several at once: another try may find a free one.
        (0..5).find_map(|_| {
            run("mount", &["-o", "loop", image.to_str().unwrap(), made.point().to_str().unwrap()])
        })?;
        Some(made)
    }

    fn point(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = run("umount", &[self.point().to_str().unwrap()]);
    }
}

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) => {
            eprintln!("{program}: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            None
        }
    }
}

fn measured(folder: &Path, cold: Cold) -> Result<Report, Error> {
    let options = Options { sizes_bytes: vec![4 << 10, 1 << 20], repetitions: 2, files: 5, rounds: 5, cold };
    bench(folder, &options, &AtomicBool::new(false))
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().filter(|entry| entry.as_ref().unwrap().file_name() != "lost+found").count()
}

#[test]
fn on_a_disk_each_read_is_known_to_be_what_it_is_called() {
    let Some(ext4) = Loop::ext4() else { return };
    let report = measured(&ext4.point(), Cold::Fadvise).unwrap();
    assert_eq!((report.file_system.fs_type.as_str(), report.note.as_str()), ("ext4", ""));
    for size in &report.sizes {
        for (latency, samples) in [(&size.read_cached, 50), (&size.read_uncached, 10)] {
            assert_eq!(latency.verified, Verified::Yes, "{latency:?}");
            assert_eq!(latency.summary.as_ref().unwrap().samples + latency.left_out, samples);
        }
        let median = |latency: &weir_fsbench::Latency| latency.summary.as_ref().unwrap().median_us;
        assert!(median(&size.read_uncached) > median(&size.read_cached), "{size:?}");
        assert!(median(&size.open_close) > 0.0);
    }
    assert_eq!(entries(&ext4.point()), 0, "its files are gone");
}

#[test]
fn a_remount_makes_cold_and_one_that_comes_to_nothing_is_noticed() {
    let Some(ext4) = Loop::ext4() else { return };
    let point = ext4.point();
    let image = ext4.folder.path().join("image");
    // The loop device goes with the mount, so the image itself must forget, too: its own pages are cached below.
    let command = format!("umount {0} && mount -o loop {1} {0}", point.display(), image.display());
    let report = measured(&point, Cold::Remount(command)).unwrap();
    assert!(report.sizes.iter().all(|size| size.read_uncached.verified == Verified::Yes));
    let error = measured(&point, Cold::Remount("false".to_owned())).unwrap_err();
    assert!(error.to_string().contains("`false` failed"), "{error}");
}

#[test]
fn memory_has_no_uncached_reads() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        eprintln!("skipped: no /dev/shm");
        return;
    }
    let report = measured(shm, Cold::Fadvise).unwrap();
    assert_eq!(report.file_system.fs_type, "tmpfs");
    for size in &report.sizes {
        assert_eq!(size.read_uncached.summary, None);
        assert!(size.read_uncached.reason.contains("no uncached reads"));
        assert_eq!(size.read_cached.verified, Verified::Yes);
    }
    let json = serde_json::to_value(&report).unwrap();
    assert!(json["sizes"][0]["read_uncached"].get("median_us").is_none(), "{json}");
    assert!(json["sizes"][0]["read_cached"]["median_us"].is_f64());
}

#[test]
fn nonsense_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for options in [
        Options { sizes_bytes: vec![], ..Options::default() },
        Options { sizes_bytes: vec![0], ..Options::default() },
        Options { repetitions: 0, ..Options::default() },
    ] {
        assert!(matches!(bench(folder.path(), &options, &AtomicBool::new(false)), Err(Error::Refused(_))));
    }
    let stopped = bench(folder.path(), &Options::default(), &AtomicBool::new(true));
    assert!(matches!(stopped, Err(Error::Failed(_))));
    assert!(matches!(measured(Path::new("/nonexistent"), Cold::Fadvise), Err(Error::Refused(_))));
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn residency_agrees_with_fincore() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = 0;
    for (index, size) in (0..).zip([100, 4096, 100_000, 3 << 20]) {
        let path = folder.path().join(format!("{index}"));
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![1; size]).unwrap();
        ours += size as u64;
    }
    let found = residency(folder.path()).unwrap();
    assert_eq!((found.cached_bytes, found.total_bytes), (ours, ours));
    let files: Vec<String> = (0..4).map(|index| format!("{}/{index}", folder.path().display())).collect();
    let mut arguments = vec!["--bytes", "--noheadings", "--output", "PAGES"];
    arguments.extend(files.iter().map(String::as_str));
    let Some(text) = run("fincore", &arguments) else { return };
    let pages: u64 = text.split_ascii_whitespace().map(|word| word.parse::<u64>().unwrap()).sum();
    assert_eq!(pages, [100, 4096, 100_000, 3u64 << 20].iter().map(|size| size.div_ceil(4096)).sum::<u64>());
}

#[test]
fn an_uncached_read_takes_as_long_as_fio_says() {
    let Some(ext4) = Loop::ext4() else { return };
    let report = measured(&ext4.point(), Cold::Fadvise).unwrap();
    let ours = report.sizes[1].read_uncached.summary.as_ref().unwrap().median_us;
    let file = ext4.point().join("fio");
    let filename = format!("--filename={}", file.display());
    // As many bytes in one request, each from another file's worth of data, after fio invalidated the cache.
    let fio = [
        "--name=x",
        &filename,
        "--size=10m",
        "--bs=1m",
        "--rw=read",
        "--ioengine=psync",
        "--invalidate=1",
        "--fadvise_hint=random",
        "--output-format=json",
    ];
    let Some(text) = run("fio", &fio) else { return };
    let value: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let theirs = value["jobs"][0]["read"]["clat_ns"]["percentile"]["50.000000"].as_f64().unwrap() / 1e3;
    eprintln!("1 MiB uncached: ours {ours} us, fio's {theirs} us");
    // Coarse: read-ahead across requests helps fio, and the machine may be busy.
    assert!(ours > theirs / 20.0 && ours < theirs * 20.0, "ours {ours} us, fio's {theirs} us");
}
