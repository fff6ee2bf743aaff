//! Schedules of one disk, computed by hand: 8 ms a revolution, one head, 100 sectors (80 us each) a track, 1 ms cylinder
//! skew, a seek of x cylinders takes 0.9 + 0.1 x ms, 0.1 ms command overhead.

use weir_simulator::{
    Completion, Device, Disk, Geometry, IoRequest, Mechanism, Op, QueueOrder, Rotation, SeekCurve,
};

const US: u64 = 1_000;
const CAPACITY: u64 = 20 * 100 * 512;

fn disk(order: QueueOrder, read_ahead_sectors: u64) -> Disk {
    let mut rotation = Rotation::new(8_000 * US, 1);
    rotation.cylinder_skew_ns = 1_000 * US;
    let mechanism = Mechanism {
        geometry: Geometry::fitting(20 * 100, 1, &[(1.0, 100)]).into(),
        rotation,
        seek: SeekCurve { a: 0.0, b: 100e3, c: 1e6 }.into(),
        head_switch_ns: 0,
        write_settle_ns: 500 * US,
        read_on_arrival: false,
    };
    Disk::new(mechanism, CAPACITY, order, 100 * US, 512e6, read_ahead_sectors)
}

/// Arrival in microseconds, operation, first sector, sectors.
type Arrival = (u64, Op, u64, u64);

/// Runs the arrivals (in order) and returns (start, done) of each in microseconds.
fn run(mut disk: Disk, arrivals: &[Arrival]) -> Vec<(f64, f64)> {
    let mut done: Vec<Completion> = Vec::new();
    for (tag, &(at_us, op, sector, sectors)) in arrivals.iter().enumerate() {
        disk.advance(at_us * US, &mut done);
        let request =
            IoRequest { tag: tag as u64, op, offset_bytes: sector * 512, size_bytes: (sectors * 512) as u32 };
        disk.arrive(at_us * US, request).unwrap();
    }
    disk.advance(u64::MAX, &mut done);
    assert_eq!(disk.outstanding(), 0);
    assert!(done.is_sorted_by_key(|c| c.done_ns));
    done.sort_by_key(|c| c.tag);
    done.iter().map(|c| (c.start_ns as f64 / 1e3, c.done_ns as f64 / 1e3)).collect()
}

#[test]
fn two_reads() {
    // Sector 25 begins at 2 ms. Sector 50 of cylinder 10 begins at (10 x 1 ms mod 8 ms) + 4 ms = 6 ms; the arm leaves at
    // 2.08 ms and takes 1.9 ms.
    let times = run(disk(QueueOrder::Fifo, 0), &[(0, Op::Read, 25, 1), (1000, Op::Read, 1050, 1)]);
    assert_eq!(times, [(0.0, 2080.0), (2080.0, 6080.0)]);
}

#[test]
fn a_missed_sector_costs_a_revolution() {
    // The same, but sector 20 of cylinder 10 begins at 2 + 1.6 = 3.6 ms: missed at 3.98 ms, so it is met at 11.6 ms.
    let times = run(disk(QueueOrder::Fifo, 0), &[(0, Op::Read, 25, 1), (1000, Op::Read, 1020, 1)]);
    assert_eq!(times[1].1, 11_680.0);
}

#[test]
fn a_write_settles_after_a_long_seek() {
    // 2.08 + 1.9 + 0.5 = 4.48 ms: sector 30 (2 + 2.4 = 4.4 ms) is missed by a write, and met by a read.
    let at = |op| run(disk(QueueOrder::Fifo, 0), &[(0, Op::Read, 25, 1), (0, op, 1030, 1)])[1].1;
    assert_eq!((at(Op::Read), at(Op::Write)), (4_480.0, 12_480.0));
}

#[test]
fn queued_sequential_writes_lose_no_revolution() {
    // 250 sectors from sector 0: the first track passes by 8 ms (wait for sector 0 from 0.1 ms: 7.9 ms), then two skews.
    let writes: Vec<_> = (0..5).map(|i| (0, Op::Write, i * 50, 50)).collect();
    let done: Vec<_> = run(disk(QueueOrder::Fifo, 0), &writes).iter().map(|t| t.1).collect();
    assert_eq!(done, [12_000.0, 16_000.0, 21_000.0, 25_000.0, 30_000.0]);
}

#[test]
fn one_write_at_a_time_loses_a_revolution() {
    let times = run(disk(QueueOrder::Fifo, 0), &[(0, Op::Write, 0, 50), (12_000, Op::Write, 50, 50)]);
    assert_eq!(times[1], (12_000.0, 24_000.0));
}

#[test]
fn reading_ahead_keeps_a_late_reader_streaming() {
    // Sectors 0..10 are read by 8.8 ms; the head goes on. At 12 ms sectors up to 50 have passed: 10..20 come from the buffer
    // (command overhead and 10 us on the interface). At 12.5 ms sectors 60..70 are still to come: by 8 + 70 x 0.08 ms.
    let arrivals = [(0, Op::Read, 0, 10), (12_000, Op::Read, 10, 10), (12_500, Op::Read, 60, 10)];
    let times = run(disk(QueueOrder::Fifo, 60), &arrivals);
    assert_eq!(times[0], (0.0, 8_800.0));
    assert_eq!(times[1], (12_000.0, 12_110.0));
    // Sector 60 is ahead of the head, which must not be sent anywhere: it meets the sector in its turn.
    assert_eq!(times[2].1, 13_600.0);
}

#[test]
fn a_full_buffer_starts_again_when_there_is_room() {
    // The buffer holds 20 sectors: the head stops after sector 30, at 10.4 ms. At 20 ms 10..40 are asked for: the first 20
    // are there, sector 30 begins at 2.4 ms of each revolution, that is at 26.4 ms, and 10 sectors take 0.8 ms.
    let times = run(disk(QueueOrder::Fifo, 20), &[(0, Op::Read, 0, 10), (20_000, Op::Read, 10, 30)]);
    assert_eq!(times[1].1, 27_200.0);
}

#[test]
fn a_write_stops_reading_ahead_and_drops_what_it_overwrites() {
    // By 20.1 ms the buffer has 10..30. After the write to cylinder 10 they are still there, but not what was written.
    let write_far = [(0, Op::Read, 0, 10), (20_000, Op::Write, 1000, 1), (60_000, Op::Read, 10, 20)];
    assert_eq!(run(disk(QueueOrder::Fifo, 20), &write_far)[2].1, 60_120.0);
    let write_here = [(0, Op::Read, 0, 10), (20_000, Op::Write, 15, 1), (60_000, Op::Read, 10, 20)];
    // Sector 10 begins at 0.8 ms of a revolution: 64.8 ms, and 20 sectors take 1.6 ms.
    assert_eq!(run(disk(QueueOrder::Fifo, 20), &write_here)[2].1, 66_400.0);
}

#[test]
fn sptf_takes_what_comes_first_under_the_head() {
    // While sector 25 is read: cylinder 10 at 3.98 ms meets its sector 50 at 6 ms; sector 40 of cylinder 0 begins at 3.2 ms.
    let arrivals = [(0, Op::Read, 25, 1), (0, Op::Read, 1050, 1), (0, Op::Read, 40, 1)];
    let fifo = run(disk(QueueOrder::Fifo, 0), &arrivals);
    let sptf = run(disk(QueueOrder::Sptf, 0), &arrivals);
    assert_eq!(fifo[1].1, 6_080.0);
    assert_eq!(sptf[2].1, 3_280.0);
    // 3.28 + 1.9 = 5.18 ms, still in time for the sector at 6 ms.
    assert_eq!(sptf[1].1, 6_080.0);
}

#[test]
fn a_late_driver_changes_no_time() {
    let arrivals: Vec<_> = (0..40).map(|i| (i * 300, Op::Read, (i * 617) % 1990, 3)).collect();
    let expected = run(disk(QueueOrder::Fifo, 10), &arrivals);
    // Deliver all arrivals before the first advance.
    let mut late = disk(QueueOrder::Fifo, 10);
    for (tag, &(at_us, op, sector, sectors)) in arrivals.iter().enumerate() {
        let request =
            IoRequest { tag: tag as u64, op, offset_bytes: sector * 512, size_bytes: (sectors * 512) as u32 };
        late.arrive(at_us * US, request).unwrap();
    }
    let mut done = Vec::new();
    late.advance(u64::MAX, &mut done);
    let times: Vec<_> = done.iter().map(|c| (c.start_ns as f64 / 1e3, c.done_ns as f64 / 1e3)).collect();
    assert_eq!(times, expected);
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut disk = disk(QueueOrder::Fifo, 0);
    let request = |offset_bytes, size_bytes| IoRequest { tag: 0, op: Op::Read, offset_bytes, size_bytes };
    let message = disk.arrive(0, request(CAPACITY - 512, 1024)).unwrap_err().to_string();
    assert!(message.contains("ends behind the device's 1024000 bytes"), "{message}");
    assert!(disk.arrive(0, request(0, 0)).is_err());
    assert!(disk.arrive(0, request(u64::MAX, 1)).is_err());
    assert_eq!((disk.outstanding(), disk.next_event_ns()), (0, None));
    assert!(disk.arrive(0, request(CAPACITY - 512, 512)).is_ok());
}
