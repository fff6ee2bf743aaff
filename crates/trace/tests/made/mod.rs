//! A trace in memory, and requests to fill it with.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::VecDeque;
use std::path::Path;

use proptest::prelude::*;
use weir_trace::{Devices, Error, Reader, Skipping, TraceOp, TraceRequest};

/// Yields requests that a test made.
pub struct Made {
    requests: VecDeque<TraceRequest>,
    devices: Devices,
    skipping: Skipping,
}

impl Made {
    /// Requests to devices that are called `disk 0`, `disk 1` ...
    pub fn reader(requests: &[TraceRequest]) -> Box<dyn Reader> {
        let mut devices = Devices::default();
        for number in 0..=requests.iter().map(|request| request.device).max().unwrap_or(0) {
            devices.number(format!("disk {number}").as_bytes());
        }
        Box::new(Made {
            requests: requests.iter().copied().collect(),
            devices,
            skipping: Skipping::default(),
        })
    }
}

impl Reader for Made {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        Ok(self.requests.pop_front())
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn skipped(&self) -> &Skipping {
        &self.skipping
    }
}

/// All requests of a reader.
pub fn all(reader: &mut dyn Reader) -> Result<Vec<TraceRequest>, Error> {
    let mut requests = Vec::new();
    while let Some(request) = reader.next_request()? {
        requests.push(request);
    }
    Ok(requests)
}

/// Name in error messages.
pub fn here() -> &'static Path {
    Path::new("made")
}

/// A request as a block trace may have it; times in any order.
pub fn request() -> impl Strategy<Value = TraceRequest> {
    let op = prop_oneof![
        4 => Just(TraceOp::Read), 4 => Just(TraceOp::Write), 1 => Just(TraceOp::WriteFua),
        1 => Just(TraceOp::Flush), 1 => Just(TraceOp::Discard), 1 => Just(TraceOp::WriteZeroes),
        1 => Just(TraceOp::Other)
    ];
    let service = prop::option::of((0_i64..1 << 33, 0_i64..1 << 33));
    let place = (0_u64..1 << 40, 1_u64..4096, any::<bool>());
    let extra = (prop::option::of(0_u32..1000), prop::option::of(1_u32..9999));
    (0_i64..1 << 45, service, 0_u32..3, op, place, extra).prop_map(
        |(arrival_ns, service, device, op, (block, blocks, whole), (queue_length, pid))| TraceRequest {
            arrival_ns,
            queueing_ns: service.map(|(queueing, _)| queueing),
            response_ns: service.map(|(queueing, serving)| queueing + serving),
            device,
            op,
            offset_bytes: block * 512 + u64::from(!whole) * 77,
            size_bytes: blocks * 512,
            object: None,
            queue_length,
            pid,
        },
    )
}

/// Requests in the order of their times, the first at 0.
pub fn ordered() -> impl Strategy<Value = Vec<TraceRequest>> {
    prop::collection::vec(request(), 0..60).prop_map(|mut requests| {
        requests.sort_by_key(|request| request.arrival_ns);
        let first_ns = requests.first().map_or(0, |request| request.arrival_ns);
        requests.iter_mut().for_each(|request| request.arrival_ns -= first_ns);
        requests
    })
}
