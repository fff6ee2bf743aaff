//! What holds for every request stream.

use proptest::prelude::*;
use weir_simulator::profile::{self, Profile};
use weir_simulator::{Completion, Device, Instant, IoRequest, Op, Part, QueueOrder, StripedArray, Striping};

const MIB: u64 = 1 << 20;

#[derive(Clone, Debug)]
struct Arrival {
    gap_ns: u64,
    write: bool,
    sector: u64,
    sectors: u32,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let one = (0..20_000_000u64, any::<bool>(), 0..120 * MIB / 512, 1..2000u32)
        .prop_map(|(gap_ns, write, sector, sectors)| Arrival { gap_ns, write, sector, sectors });
    prop::collection::vec(one, 1..60)
}

/// Runs the arrivals, driving the device from event to event, and returns the completions with each request's arrival.
fn run(device: &mut dyn Device, arrivals: &[Arrival]) -> Vec<(Completion, u64, u32)> {
    let (mut now_ns, mut done) = (0, Vec::new());
    let mut asked = Vec::new();
    for (tag, arrival) in arrivals.iter().enumerate() {
        now_ns += arrival.gap_ns;
        while let Some(event_ns) = device.next_event_ns().filter(|event_ns| *event_ns <= now_ns) {
            device.advance(event_ns, &mut done);
        }
        let request = IoRequest {
            tag: tag as u64,
            op: if arrival.write { Op::Write } else { Op::Read },
            offset_bytes: arrival.sector * 512,
            size_bytes: arrival.sectors * 512,
        };
        device.arrive(now_ns, request).unwrap();
        asked.push((now_ns, request.size_bytes));
    }
    while let Some(event_ns) = device.next_event_ns() {
        device.advance(event_ns, &mut done);
    }
    assert_eq!(device.outstanding(), 0);
    done.into_iter().map(|c| (c, asked[c.tag as usize].0, asked[c.tag as usize].1)).collect()
}

fn disk(order: QueueOrder) -> Box<dyn Device> {
    let Profile::Disk(mut profile) = profile::load("hdd-7200").unwrap() else { panic!() };
    profile.queue_order = order;
    Box::new(profile.build(128 * MIB).unwrap())
}

fn check_tags(done: &[(Completion, u64, u32)], count: usize) -> Result<(), TestCaseError> {
    let mut tags: Vec<_> = done.iter().map(|(c, ..)| c.tag).collect();
    tags.sort_unstable();
    prop_assert_eq!(tags, (0..count as u64).collect::<Vec<_>>());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_fifo_disk_completes_in_order_and_never_faster_than_its_interface(arrivals in arrivals()) {
        let done = run(&mut *disk(QueueOrder::Fifo), &arrivals);
        prop_assert!(done.is_sorted_by_key(|(c, ..)| c.tag));
        let mut free_ns = 0;
        for (c, arrived_ns, size_bytes) in done {
            prop_assert!(c.start_ns >= arrived_ns && c.start_ns >= free_ns, "{:?}", c);
            // 600 MB/s from the buffer, and never less than that from the platter (231 MB/s).
            let least_ns = (f64::from(size_bytes) / 600e6 * 1e9) as u64;
            prop_assert!(c.done_ns - c.start_ns >= least_ns, "{:?} for {} bytes", c, size_bytes);
            free_ns = c.done_ns;
        }
    }

    #[test]
    fn sptf_serves_every_request_once_and_one_at_a_time(arrivals in arrivals()) {
        let done = run(&mut *disk(QueueOrder::Sptf), &arrivals);
        check_tags(&done, arrivals.len())?;
        let mut free_ns = 0;
        for (c, arrived_ns, _) in done {
            prop_assert!(c.start_ns >= arrived_ns && c.start_ns >= free_ns && c.done_ns > c.start_ns);
            free_ns = c.done_ns;
        }
    }

    #[test]
    fn a_write_alone_takes_at_least_its_time_under_the_head(sector in 0..100 * MIB / 512, sectors in 1..4000u32) {
        let mut disk = disk(QueueOrder::Fifo);
        let done = run(&mut *disk, &[Arrival { gap_ns: 0, write: true, sector, sectors }]);
        // The fastest track has 3144 sectors in a revolution of 8,333,333 ns.
        let least_ns = u64::from(sectors) * 8_333_333 / 3144 - 1;
        prop_assert!(done[0].0.done_ns >= least_ns, "{:?}", done);
    }

    #[test]
    fn an_array_covers_every_byte_once(
        devices in 1..8usize, unit_sectors in 1..64u64, offset in 0..100_000u64, size in 1..200_000u32,
    ) {
        let (unit, capacity) = (unit_sectors * 512, 400_000);
        let each = StripedArray::device_bytes(capacity, devices as u64, unit);
        let members = (0..devices).map(|_| Box::new(Instant::new(each)) as Box<dyn Device>).collect();
        let mut array = StripedArray::new(members, unit, capacity);
        let request = IoRequest { tag: 5, op: Op::Read, offset_bytes: offset, size_bytes: size };
        let striping = Striping { stripe_unit_bytes: unit, devices: devices as u64 };
        let parts = striping.parts(offset, size);
        // Back from (device, byte there) to the byte of the array.
        let mut covered = vec![0u8; capacity as usize + (devices as u64 * unit) as usize];
        for Part { device, offset_bytes: first, size_bytes: bytes } in parts {
            // The units of a device are consecutive in its part, and those of the request are consecutive in it.
            let units = striping.units(offset, size).filter(|unit| unit.0 == device);
            let mut at = first;
            for (_, on_device, _, length) in units {
                prop_assert_eq!(on_device, at);
                at += u64::from(length);
            }
            prop_assert_eq!(at, first + u64::from(bytes));
            for byte in first..first + u64::from(bytes) {
                let stripe = byte / unit * devices as u64 + device as u64;
                covered[(stripe * unit + byte % unit) as usize] += 1;
            }
        }
        let end = striping.units(offset, size).try_fold(0, |at, (_, _, first, length)| {
            (first == at).then_some(first + length)
        });
        prop_assert_eq!(end, Some(size));
        let wanted = offset as usize..offset as usize + size as usize;
        for (byte, count) in covered.iter().enumerate() {
            prop_assert_eq!(*count, u8::from(wanted.contains(&byte)), "byte {}", byte);
        }
        array.arrive(3, request).unwrap();
        let mut done = Vec::new();
        array.advance(3, &mut done);
        prop_assert_eq!(done, [Completion { tag: 5, start_ns: 3, done_ns: 3 }]);
    }

    #[test]
    fn an_array_of_disks_serves_every_request_once(arrivals in arrivals(), devices in 2..5u32) {
        let profile = profile::load("hdd-15k").unwrap();
        let mut array = profile::build_array(&profile, devices, 65_536, 512 * MIB).unwrap();
        let done = run(&mut *array, &arrivals);
        check_tags(&done, arrivals.len())?;
        for (c, arrived_ns, _) in done {
            prop_assert!(c.start_ns >= arrived_ns && c.done_ns > c.start_ns);
        }
    }

    #[test]
    fn an_ssd_serves_every_request_once_and_never_faster_than_all_channels(arrivals in arrivals()) {
        let mut ssd = profile::load("ssd-sata").unwrap().build(128 * MIB).unwrap();
        let done = run(&mut *ssd, &arrivals);
        check_tags(&done, arrivals.len())?;
        for (c, arrived_ns, size_bytes) in done {
            let least_ns = (f64::from(size_bytes) / (8.0 * 78.5e6) * 1e9) as u64;
            prop_assert!(c.start_ns == arrived_ns && c.done_ns - c.start_ns >= least_ns);
        }
    }
}
