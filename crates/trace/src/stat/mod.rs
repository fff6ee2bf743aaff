//! Trace statistics in one pass; memory grows with distinct blocks only.

mod course;
mod histogram;
mod hurst;
mod report;
mod reuse;
mod scales;
mod sequence;
mod windows;

pub use course::Load;
pub use histogram::{Distribution, Histogram};
pub use hurst::Hurst;
pub use report::{
    Arrivals, Burstiness, DeviceCount, MissRatio, OpCount, Order, Report, Skipped, Times, WorkingSet,
};
pub use reuse::Reuse;
pub use scales::{AtScale, Scales};
pub use sequence::Sequentiality;
pub use windows::Peak;

use crate::units::{Keys, Unit};
use crate::{Devices, Reader, TraceOp, TraceRequest};

/// Maximum number of devices in a report; others are in its sums.
const DEVICES_LISTED: usize = 100;
const SECOND_NS: i64 = 1_000_000_000;
/// In the order of the type.
const OPS: [TraceOp; 7] = [
    TraceOp::Read,
    TraceOp::Write,
    TraceOp::WriteFua,
    TraceOp::Flush,
    TraceOp::Discard,
    TraceOp::WriteZeroes,
    TraceOp::Other,
];

/// Collects statistics of requests one by one.
#[derive(Debug)]
pub struct Statistics {
    keys: Keys,
    requests: u64,
    /// In the order of [`OPS`].
    ops: [OpCount; OPS.len()],
    devices: Vec<DeviceCount>,
    sizes: Histogram,
    read_sizes: Histogram,
    write_sizes: Histogram,
    first_ns: Option<i64>,
    /// The latest arrival so far, since the first.
    latest_ns: i64,
    order: Order,
    gaps: Histogram,
    zero_gaps: u64,
    scales: Scales,
    second: windows::Windows,
    minute: windows::Windows,
    course: course::Course,
    sequence: sequence::Sequence,
    reuse: Reuse,
    queue_lengths: Histogram,
    queueing: Histogram,
    response: Histogram,
    negative: u64,
}

impl Statistics {
    /// Empty statistics; working set and reuse have this unit.
    pub fn new(unit: Unit) -> Self {
        Statistics {
            keys: Keys::new(unit),
            requests: 0,
            ops: Default::default(),
            devices: Vec::new(),
            sizes: Histogram::default(),
            read_sizes: Histogram::default(),
            write_sizes: Histogram::default(),
            first_ns: None,
            latest_ns: 0,
            order: Order::default(),
            gaps: Histogram::default(),
            zero_gaps: 0,
            scales: Scales::default(),
            second: windows::Windows::new(SECOND_NS),
            minute: windows::Windows::new(60 * SECOND_NS),
            course: course::Course::default(),
            sequence: sequence::Sequence::default(),
            reuse: Reuse::default(),
            queue_lengths: Histogram::default(),
            queueing: Histogram::default(),
            response: Histogram::default(),
            negative: 0,
        }
    }

    /// Adds the next request.
    pub fn add(&mut self, request: &TraceRequest) {
        self.requests += 1;
        self.count(request);
        self.arrival(request);
        self.place(request);
        if let Some(length) = request.queue_length {
            self.queue_lengths.add(u64::from(length));
        }
        for (time, histogram) in
            [(request.queueing_ns, &mut self.queueing), (request.response_ns, &mut self.response)]
        {
            match time.map(u64::try_from) {
                Some(Ok(time_ns)) => histogram.add(time_ns),
                Some(Err(_)) => self.negative += 1,
                None => {}
            }
        }
    }

    fn count(&mut self, request: &TraceRequest) {
        let op = &mut self.ops[request.op as usize];
        op.requests += 1;
        op.bytes = op.bytes.saturating_add(request.size_bytes);
        // A reader numbers devices from 0 without gaps.
        let device = request.device as usize;
        if device >= self.devices.len() {
            self.devices.resize_with(device + 1, DeviceCount::default);
        }
        let device = &mut self.devices[device];
        device.requests += 1;
        device.reads += u64::from(request.op == TraceOp::Read);
        if request.op.has_data() {
            device.bytes = device.bytes.saturating_add(request.size_bytes);
            device.end_bytes = device.end_bytes.max(request.offset_bytes.saturating_add(request.size_bytes));
        }
    }

    fn arrival(&mut self, request: &TraceRequest) {
        let first_ns = *self.first_ns.get_or_insert(request.arrival_ns);
        let mut since_ns = request.arrival_ns.saturating_sub(first_ns);
        if since_ns < self.latest_ns {
            self.order.early += 1;
            self.order.most_early_ns = self.order.most_early_ns.max(self.latest_ns.saturating_sub(since_ns));
            since_ns = self.latest_ns;
        }
        if self.requests > 1 {
            let gap_ns = since_ns - self.latest_ns;
            self.zero_gaps += u64::from(gap_ns == 0);
            self.gaps.add(gap_ns.unsigned_abs());
        }
        self.latest_ns = since_ns;
        let bytes = if request.op.has_data() { request.size_bytes } else { 0 };
        self.scales.add(since_ns);
        self.second.add(since_ns, bytes);
        self.minute.add(since_ns, bytes);
        self.course.add(since_ns, bytes);
    }

    fn place(&mut self, request: &TraceRequest) {
        if !request.op.has_data() {
            return;
        }
        self.sizes.add(request.size_bytes);
        match request.op {
            TraceOp::Write | TraceOp::WriteFua => self.write_sizes.add(request.size_bytes),
            _ => self.read_sizes.add(request.size_bytes),
        }
        if matches!(self.keys.unit(), Unit::Block { .. }) {
            let volume = self.keys.volume(request);
            self.sequence.add(volume, request.offset_bytes, request.size_bytes);
        }
        let Some(span) = self.keys.span(request) else { return };
        for place in 0..span.units {
            let key = self.keys.key(span, place);
            self.reuse.access(key);
        }
    }

    /// Report of the requests so far, with the reader's device names and skipped records.
    pub fn finish(self, reader: &dyn Reader) -> Report {
        let duration_ns = self.latest_ns;
        let listed = self.listed(reader.devices());
        let (seen, others) = (self.devices.iter().filter(|device| device.requests > 0).count(), listed.len());
        let scales = self.scales.finish();
        let [reads, writes, ..] = self.ops;
        let bytes = reads.bytes.saturating_add(writes.bytes);
        let data = self.sizes.total();
        let per_s = |amount: u64| (duration_ns > 0).then(|| amount as f64 / (duration_ns as f64 / 1e9));
        Report {
            requests: self.requests,
            skipped: Skipped {
                records: reader.skipped().count(),
                first: reader.skipped().first().map(ToString::to_string),
            },
            noted: reader.skipped().noted().iter().copied().collect(),
            header: reader.header().iter().cloned().collect(),
            first_arrival_ns: self.first_ns,
            duration_ns,
            requests_per_s: per_s(self.requests),
            bytes_per_s: per_s(bytes),
            read_share: (data > 0).then(|| reads.requests as f64 / data as f64),
            ops: OPS
                .iter()
                .zip(self.ops)
                .filter(|(_, op)| op.requests > 0)
                .map(|(kind, op)| (kind.name(), op))
                .collect(),
            devices: seen as u64,
            devices_not_listed: (seen - others) as u64,
            device: listed,
            size_bytes: self.sizes.distribution(),
            read_size_bytes: self.read_sizes.distribution(),
            write_size_bytes: self.write_sizes.distribution(),
            arrivals: Arrivals {
                order: self.order,
                gap_ns: self.gaps.distribution(),
                zero_gaps: self.zero_gaps,
            },
            burstiness: Burstiness {
                peaks: [self.second.finish(), self.minute.finish()].into_iter().flatten().collect(),
                hurst: hurst::estimates(&scales),
                scales,
            },
            load: self.course.finish(),
            sequentiality: self.sequence.finish(),
            working_set: report::working_set(&self.reuse, &self.keys),
            times: Times {
                queue_length: self.queue_lengths.distribution(),
                queueing_ns: self.queueing.distribution(),
                response_ns: self.response.distribution(),
                negative: self.negative,
            },
        }
    }

    /// The devices with the most requests, named.
    fn listed(&self, names: &Devices) -> Vec<DeviceCount> {
        let mut devices: Vec<DeviceCount> = self
            .devices
            .iter()
            .zip(0..)
            .filter(|(device, _)| device.requests > 0)
            .map(|(device, number)| DeviceCount { name: names.name(number), ..device.clone() })
            .collect();
        devices.sort_by_key(|device| std::cmp::Reverse(device.requests));
        devices.truncate(DEVICES_LISTED);
        devices
    }
}

/// Reads a trace to its end.
///
/// # Errors
/// Same as [`Reader::next_request`].
pub fn of(reader: &mut dyn Reader, unit: Unit) -> Result<Report, crate::Error> {
    let mut statistics = Statistics::new(unit);
    while let Some(request) = reader.next_request()? {
        statistics.add(&request);
    }
    Ok(statistics.finish(reader))
}
