//! Measured service times of a drive, one request at a time, and those of a model.

use std::path::Path;

use weir_simulator::profile::DiskProfile;
use weir_simulator::{Device, IoRequest, Op};
use weir_trace::{Options, TraceOp, open};

use crate::demerit::demerit_ms;

/// One request, its delay after the completion of the previous one, and its measured time.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub op: Op,
    pub offset_bytes: u64,
    pub size_bytes: u32,
    pub gap_ns: u64,
    pub response_ns: u64,
    /// Whether it begins where the one before ended.
    pub follows: bool,
}

/// Reads a trace.
pub fn read(path: &Path) -> Result<Vec<Measured>, Box<dyn std::error::Error>> {
    let options = Options { format: Some("disksim-validate".to_owned()), ..Options::default() };
    let (_, mut reader) = open(path, &options)?;
    let mut measured = Vec::new();
    let (mut done_ns, mut end_bytes) = (0, u64::MAX);
    while let Some(request) = reader.next_request()? {
        let response_ns = request.response_ns.unwrap_or(0);
        measured.push(Measured {
            op: if request.op == TraceOp::Write { Op::Write } else { Op::Read },
            offset_bytes: request.offset_bytes,
            size_bytes: u32::try_from(request.size_bytes)?,
            gap_ns: u64::try_from(request.arrival_ns - done_ns).unwrap_or(0),
            response_ns: u64::try_from(response_ns)?,
            follows: request.offset_bytes == end_bytes,
        });
        done_ns = request.arrival_ns + response_ns;
        end_bytes = request.offset_bytes + request.size_bytes;
    }
    Ok(measured)
}

/// The model's response times, each request coming as long after the completion before it as it did on the drive.
pub fn replay(profile: &DiskProfile, requests: &[Measured]) -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let mut disk = profile.build(profile.full_bytes()?)?;
    let (mut now_ns, mut done) = (0, Vec::new());
    let mut response_ns = Vec::with_capacity(requests.len());
    for measured in requests {
        now_ns += measured.gap_ns;
        let Measured { op, offset_bytes, size_bytes, .. } = *measured;
        disk.arrive(now_ns, IoRequest { tag: 0, op, offset_bytes, size_bytes })?;
        let done_ns = disk.next_event_ns().ok_or("the disk does nothing")?;
        disk.advance(done_ns, &mut done);
        done.clear();
        response_ns.push(done_ns - now_ns);
        now_ns = done_ns;
    }
    Ok(response_ns)
}

/// The demerit of the profile for these requests, in ms and in percent of the mean, and the median distance between the
/// measured and the modelled time of one and the same request, in ms.
pub fn compare(
    profile: &DiskProfile,
    requests: &[Measured],
) -> Result<(f64, f64, f64), Box<dyn std::error::Error>> {
    let measured_ns: Vec<u64> = requests.iter().map(|m| m.response_ns).collect();
    let modelled_ns = replay(profile, requests)?;
    let (ms, percent) = demerit_ms(&measured_ns, &modelled_ns);
    let mut apart_ns: Vec<u64> = measured_ns.iter().zip(&modelled_ns).map(|(a, b)| a.abs_diff(*b)).collect();
    apart_ns.sort_unstable();
    Ok((ms, percent, apart_ns.get(apart_ns.len() / 2).map_or(0.0, |ns| *ns as f64 / 1e6)))
}
