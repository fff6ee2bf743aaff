//! Response times of one workload on a flash profile, as a line of JSON: for comparisons with other simulators.
//!
//! `validate_flash PROFILE CAPACITY_BYTES READ_PERCENT KIB SEQUENTIAL DEPTH GAP_NS REQUESTS`: a closed loop of DEPTH, or Poisson
//! arrivals every GAP_NS on average if that is not 0. The profile says in which state the device begins.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_simulator::profile::{self, Profile};
use weir_simulator::{Device, IoRequest, Op};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, numbers @ ..] = &arguments[..] else { return Err("give a profile and seven numbers".into()) };
    let numbers = numbers.iter().map(|text| text.parse()).collect::<Result<Vec<u64>, _>>()?;
    let [capacity_bytes, read_percent, kib, sequential, depth, gap_ns, requests] = numbers[..] else {
        return Err("give seven numbers behind the profile".into());
    };
    let Profile::Ssd(ssd) = profile::load(name)? else { return Err("the profile is no flash device".into()) };
    let mut device = ssd.build_flash(capacity_bytes, 2)?.ok_or("the profile has no `flash`")?;
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let places = capacity_bytes / (kib * 1024);
    let warm_up = requests / 10;
    let (mut sent, mut finished, mut now_ns, mut next_ns) = (0, 0, 0_u64, 0.0_f64);
    let (mut times, mut done) = (Vec::new(), Vec::new());
    let (mut from_ns, mut before) = (0, device.counts());
    while finished < warm_up + requests {
        // The closed loop has `depth` outstanding; the open loop sends what is due.
        let may_send = sent < warm_up + requests
            && if gap_ns > 0 {
                device.next_event_ns().is_none_or(|event_ns| next_ns as u64 <= event_ns)
            } else {
                sent - finished < depth
            };
        if may_send {
            if gap_ns > 0 {
                now_ns = next_ns as u64;
                next_ns -= gap_ns as f64 * (1.0 - rng.random::<f64>()).ln();
            }
            let place = if sequential > 0 { sent % places } else { rng.random_range(0..places) };
            let op = if rng.random_range(0..100) < read_percent { Op::Read } else { Op::Write };
            let size_bytes = (kib * 1024) as u32;
            device
                .arrive(now_ns, IoRequest { tag: sent, op, offset_bytes: place * kib * 1024, size_bytes })?;
            sent += 1;
            continue;
        }
        now_ns = device.next_event_ns().ok_or("the device lost a request")?;
        device.advance(now_ns, &mut done);
        for completion in done.drain(..) {
            finished += 1;
            if finished == warm_up {
                (from_ns, before) = (now_ns, device.counts());
            } else if finished > warm_up {
                times.push(completion.done_ns - completion.start_ns);
            }
        }
    }
    times.sort_unstable();
    let counts = device.counts();
    let (host, copied) = (counts.host_units - before.host_units, counts.copied_units - before.copied_units);
    let amplification = if read_percent == 0 && copied > 0 {
        format!("{:.4}", 1.0 + copied as f64 / host as f64)
    } else {
        "null".into()
    };
    println!(
        "{{\"mean_us\": {:.3}, \"p99_us\": {:.3}, \"per_s\": {:.1}, \"amplification\": {amplification}}}",
        times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e3,
        times[times.len() * 99 / 100] as f64 / 1e3,
        times.len() as f64 / ((now_ns - from_ns) as f64 / 1e9),
    );
    Ok(())
}
