//! The flash device with a translation layer, from outside.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_simulator::profile::{self, Profile, SsdProfile};
use weir_simulator::{Completion, Device, FlashSsd, IoRequest, Op};

const MIB: u64 = 1 << 20;

fn nvme() -> SsdProfile {
    match profile::load("ssd-nvme").unwrap() {
        Profile::Ssd(ssd) => ssd,
        other => panic!("{other:?}"),
    }
}

fn build(profile: &SsdProfile, capacity_bytes: u64) -> FlashSsd {
    profile.build_flash(capacity_bytes).unwrap().unwrap()
}

/// Keeps `depth` requests at the device until `count` are done; returns each one's operation and response time.
fn closed_loop(
    ssd: &mut FlashSsd,
    depth: u64,
    count: u64,
    mut next: impl FnMut(u64) -> (Op, u64, u32),
) -> (Vec<(Op, u64)>, u64) {
    let (mut asked, mut done): (Vec<Op>, Vec<Completion>) = (Vec::new(), Vec::new());
    let mut now_ns = 0;
    let mut times = Vec::new();
    while (times.len() as u64) < count {
        while asked.len() as u64 - times.len() as u64 != depth && (asked.len() as u64) < count {
            let tag = asked.len() as u64;
            let (op, offset_bytes, size_bytes) = next(tag);
            ssd.arrive(now_ns, IoRequest { tag, op, offset_bytes, size_bytes }).unwrap();
            asked.push(op);
        }
        now_ns = ssd.next_event_ns().unwrap();
        ssd.advance(now_ns, &mut done);
        times.extend(done.drain(..).map(|c| (asked[c.tag as usize], c.done_ns - c.start_ns)));
    }
    (times, now_ns)
}

fn percentile(times: &[(Op, u64)], op: Op, share: f64) -> u64 {
    let mut times: Vec<u64> = times.iter().filter(|(o, _)| *o == op).map(|(_, ns)| *ns).collect();
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize]
}

#[test]
fn it_has_its_data_sheets_figures() {
    let size = 1024 * MIB;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut random = |_| (Op::Read, rng.random_range(0..size / 4096) * 4096, 4096);
    let (_, elapsed_ns) = closed_loop(&mut build(&nvme(), size), 1, 5_000, &mut random);
    let rate = 5_000.0 / (elapsed_ns as f64 / 1e9);
    assert!((17_000.0..21_000.0).contains(&rate), "{rate} reads a second at depth 1");
    let (_, elapsed_ns) = closed_loop(&mut build(&nvme(), size), 128, 100_000, &mut random);
    let rate = 100_000.0 / (elapsed_ns as f64 / 1e9);
    assert!((500_000.0..820_000.0).contains(&rate), "{rate} reads a second at depth 128");
    let in_order = |op| move |i: u64| (op, i * 131_072 % (1024 * MIB), 131_072);
    let (_, elapsed_ns) = closed_loop(&mut build(&nvme(), size), 64, 40_000, in_order(Op::Write));
    let rate = 40_000.0 * 131_072.0 / (elapsed_ns as f64 / 1e9);
    assert!((rate / 1.7e9 - 1.0).abs() < 0.1, "{rate} bytes a second written in order");
    let (_, elapsed_ns) = closed_loop(&mut build(&nvme(), size), 64, 40_000, in_order(Op::Read));
    let rate = 40_000.0 * 131_072.0 / (elapsed_ns as f64 / 1e9);
    assert!((rate / 3.5e9 - 1.0).abs() < 0.02, "{rate} bytes a second read in order");
}

#[test]
fn data_are_not_programmed_before_they_come() {
    // 1 MiB over 1 GB/s takes 1.05 ms; a write of another die's page behind it waits for the link.
    let flash = nvme().flash.map(|flash| profile::FlashProfile { interface_mb_s: 1000.0, ..flash });
    let mut ssd = build(&SsdProfile { flash, ..nvme() }, 256 * MIB);
    let mut done = Vec::new();
    ssd.arrive(0, IoRequest { tag: 1, op: Op::Write, offset_bytes: 0, size_bytes: 1 << 20 }).unwrap();
    ssd.arrive(0, IoRequest { tag: 2, op: Op::Write, offset_bytes: 64 * MIB, size_bytes: 4096 }).unwrap();
    ssd.advance(u64::MAX, &mut done);
    let done: Vec<_> = done.iter().map(|c| (c.tag, c.done_ns)).collect();
    assert_eq!(done, [(1, 10_000 + 1_048_576), (2, 10_000 + 1_048_576 + 4_096)]);
    // Meanwhile the dies read: none waits for more than the page that its die programs, and its channel.
    let flash = nvme().flash.map(|flash| profile::FlashProfile { interface_mb_s: 100.0, ..flash });
    let mut ssd = build(&SsdProfile { flash, ..nvme() }, 256 * MIB);
    done_after(&mut ssd, 0, IoRequest { tag: 0, op: Op::Write, offset_bytes: 0, size_bytes: 4 << 20 }, 0);
    for i in 1..400 {
        let read =
            IoRequest { tag: i, op: Op::Read, offset_bytes: i * 12_288 % MIB + 128 * MIB, size_bytes: 4096 };
        let taken_ns = done_after(&mut ssd, i * 100_000, read, i);
        assert!(taken_ns < 250_000, "read {i} takes {taken_ns} ns");
    }
}

/// Sends a request at `now_ns`, and returns the time of request `tag`; 0 without waiting (`tag` 0).
fn done_after(ssd: &mut FlashSsd, now_ns: u64, request: IoRequest, tag: u64) -> u64 {
    let mut done = Vec::new();
    ssd.advance(now_ns, &mut done);
    ssd.arrive(now_ns, request).unwrap();
    while tag > 0 && !done.iter().any(|c: &Completion| c.tag == tag) {
        let event_ns = ssd.next_event_ns().unwrap();
        ssd.advance(event_ns, &mut done);
    }
    done.iter().find(|c| c.tag == tag).map_or(0, |c| c.done_ns - now_ns)
}

#[test]
fn garbage_collection_amplifies_random_writes_and_delays_reads() {
    let size = 256 * MIB;
    let mix = |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        move |_| {
            let op = if rng.random_range(0..10) < 3 { Op::Write } else { Op::Read };
            (op, rng.random_range(0..size / 4096) * 4096, 4096)
        }
    };
    let mut worn = build(&nvme(), size);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let before = worn.counts();
    assert_eq!((before.host_units, before.write_amplification()), (0, 1.0));
    closed_loop(&mut worn, 32, 400_000, |_| (Op::Write, rng.random_range(0..size / 4096) * 4096, 4096));
    let factor = worn.counts().write_amplification();
    assert!((2.0..8.0).contains(&factor), "write amplification {factor}");
    let (times, _) = closed_loop(&mut worn, 8, 100_000, mix(3));
    let roomy = SsdProfile {
        flash: nvme().flash.map(|flash| profile::FlashProfile { over_provisioning_percent: 900.0, ..flash }),
        ..nvme()
    };
    let (calm, _) = closed_loop(&mut build(&roomy, size), 8, 100_000, mix(3));
    // The erases are in the tail: 3.5 ms, while half of the reads wait for nothing much.
    let tail = |times: &[(Op, u64)]| percentile(times, Op::Read, 0.999);
    assert!(tail(&times) > 1_000_000 && tail(&calm) < 500_000, "{} {}", tail(&times), tail(&calm));
    assert!(percentile(&times, Op::Read, 0.5) < 200_000);
}

#[test]
fn a_full_buffer_makes_writes_wait() {
    let mut ssd = build(&nvme(), 256 * MIB);
    let (times, _) = closed_loop(&mut ssd, 1, 3_000, |i| (Op::Write, i * 65_536 % (256 * MIB), 65_536));
    let alone = times[0].1;
    assert!(alone < 40_000, "the first write takes {alone} ns");
    // All at the same time: 64 MiB do not fit into 8 MiB.
    let mut ssd = build(&nvme(), 256 * MIB);
    let (times, _) = closed_loop(&mut ssd, 1_000, 1_000, |i| (Op::Write, i * 65_536, 65_536));
    assert!(percentile(&times, Op::Write, 0.95) > 10_000_000);
    assert_eq!(ssd.outstanding(), 0);
}

#[test]
fn what_is_in_the_buffer_is_read_from_there() {
    let mut ssd = build(&nvme(), 256 * MIB);
    let mut done = Vec::new();
    ssd.arrive(0, IoRequest { tag: 1, op: Op::Write, offset_bytes: 8192, size_bytes: 4096 }).unwrap();
    ssd.arrive(1, IoRequest { tag: 2, op: Op::Read, offset_bytes: 8192, size_bytes: 4096 }).unwrap();
    ssd.advance(u64::MAX, &mut done);
    // 10 us for the command and 1.2 us on the interface, no flash.
    assert_eq!(done.iter().map(|c| (c.tag, c.done_ns)).collect::<Vec<_>>(), [(1, 11_170), (2, 11_171)]);
}

#[test]
fn sizes_that_need_too_large_a_map_are_refused() {
    let error = nvme().build_flash(2 << 40).unwrap_err().to_string();
    assert!(error.contains("1048576 MiB"), "{error}");
    assert!(build(&nvme(), 512).outstanding() == 0);
}
