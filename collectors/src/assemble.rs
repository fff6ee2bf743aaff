//! Assembly of requests from blktrace events.
//!
//! Events of one request are matched by sector: a bio has its first sector until a request is made for it (`G`), then the
//! request has its extent, which merges (`M`, `F`) change, until it is issued (`D`) and completed (`C`).

mod under_way;

use std::collections::HashMap;
use std::sync::Arc;

use weir_records::{BlockOp, BlockRequest};
use weir_trace::blktrace::{Event, Record, category};

use crate::disk::{Disk, DiskStatistics};
use crate::reconcile::{CpuCount, DeviceReconciliation, Reconciliation, Snapshot};
use under_way::{Pending, UnderWay, is_device_flush, sector_after};

/// Rows, with their reconciliation with the kernel's counters.
pub struct Recorded {
    /// Rows in order of completion; requests without a completion come last.
    pub rows: Vec<BlockRequest>,
    /// Reconciliation with the kernel's counters.
    pub reconciliation: Reconciliation,
}

/// Assembles the requests of some disks from records in order of time.
pub struct Assembly {
    devices: Vec<Disk>,
    under_way: Vec<UnderWay>,
    cpus: HashMap<u32, CpuCount>,
    names: HashMap<u32, Arc<str>>,
    flags: HashMap<u16, Arc<str>>,
    no_name: Arc<str>,
    source: Arc<str>,
    epoch_ns: i64,
    rows: Vec<BlockRequest>,
}

impl Assembly {
    /// `source` is the name of the recorder in the rows; row times are relative to `epoch_ns`.
    pub fn new(devices: &[Disk], source: &str, epoch_ns: i64) -> Self {
        Assembly {
            devices: devices.to_vec(),
            under_way: devices.iter().map(|_| UnderWay::default()).collect(),
            cpus: HashMap::new(),
            names: HashMap::new(),
            flags: HashMap::new(),
            no_name: "".into(),
            source: source.into(),
            epoch_ns,
            rows: Vec::new(),
        }
    }

    /// Adds the name of a process.
    pub fn name_process(&mut self, pid: u32, name: &str) {
        self.names.insert(pid, name.into());
    }

    /// Adds the next event.
    pub fn add(&mut self, record: &Record) {
        if let Some(name) = record.process_name() {
            return self.name_process(record.pid, &name);
        }
        let Some(device) = self.devices.iter().position(|disk| disk.kernel_dev() == record.device) else {
            return;
        };
        let disk = &mut self.under_way[device];
        let count = self.cpus.entry(record.cpu).or_insert_with(|| CpuCount {
            cpu: record.cpu as usize,
            bios_queued: 0,
            issued: 0,
            completed: 0,
            buffer_full: 0,
            evicted: 0,
        });
        match record.event() {
            Event::Queue => {
                count.bios_queued += 1;
                disk.queue(record);
            }
            Event::Split => disk.split(record),
            Event::GetRequest => disk.get_request(record),
            Event::BackMerge => disk.back_merge(record),
            Event::FrontMerge => disk.front_merge(record),
            Event::Insert => disk.insert(record),
            Event::Issue => {
                count.issued += 1;
                disk.issue(record);
            }
            Event::Requeue => disk.requeue(record),
            Event::Complete => {
                count.completed += 1;
                self.complete(device, record);
            }
            Event::Other(_) | Event::Notify(_) => {}
        }
    }

    fn complete(&mut self, device: usize, record: &Record) {
        let disk = &mut self.under_way[device];
        let bytes = u64::from(record.bytes);
        let group = group_of(record.categories());
        disk.counters.sectors[group] += bytes / 512;
        if bytes == 0
            && !is_device_flush(record.categories())
            && let Some(row) = disk.flushing.remove(&record.sector)
        {
            // The end of a write with a flush after it.
            self.rows[row].completed_ns = relative(record.time_ns, self.epoch_ns);
            self.rows[row].status = i32::from(record.error);
            disk.counters.completed[1] += 1;
            return;
        }
        let Some(mut request) = disk.take_completed(record) else {
            // Issued before the recording began.
            if disk.has_partial(record) {
                return;
            }
            disk.counters.before_start += 1;
            disk.counters.completed[group] += 1;
            return;
        };
        if bytes < request.left {
            // A part is done: the rest has a new first sector.
            request.left -= bytes;
            disk.requests.entry(sector_after(record.sector, bytes)).or_default().push_back(request);
            return;
        }
        if request.issued_ns.is_some() {
            disk.counters.driver_completions += 1;
        }
        let row = self.row(device, &request, Some(record.time_ns), i32::from(record.error));
        let disk = &mut self.under_way[device];
        if request.in_flush_sequence {
            disk.flushing.insert(request.sector, self.rows.len());
        } else {
            disk.counters.completed[group] += 1;
        }
        self.rows.push(row);
    }

    fn row(
        &mut self,
        device: usize,
        request: &Pending,
        completed_ns: Option<u64>,
        status: i32,
    ) -> BlockRequest {
        let flags =
            self.flags.entry(request.categories).or_insert_with(|| flag_names(request.categories).into());
        let time = |ns: Option<u64>| ns.and_then(|ns| relative(ns, self.epoch_ns));
        BlockRequest {
            device: Arc::clone(&self.devices[device].name),
            sector: request.sector,
            size_bytes: u32::try_from(request.bytes).unwrap_or(u32::MAX),
            op: op_of(request.categories),
            flags: Arc::clone(flags),
            priority: None,
            pid: request.pid,
            comm: Arc::clone(self.names.get(&request.pid).unwrap_or(&self.no_name)),
            cgroup: request.cgroup,
            queued_ns: time(request.queued_ns),
            inserted_ns: time(request.inserted_ns),
            issued_ns: time(request.issued_ns),
            completed_ns: time(completed_ns),
            status,
            source: Arc::clone(&self.source),
        }
    }

    /// Adds the requests without a completion, and reconciles with the kernel's statistics before and after.
    ///
    /// `overruns`: events lost because a buffer was full.
    pub fn finish(mut self, starts: &[DiskStatistics], stops: &[DiskStatistics], overruns: u64) -> Recorded {
        let mut found = Reconciliation {
            source: self.source.to_string(),
            lost: overruns,
            agrees: overruns == 0,
            ..Default::default()
        };
        for (device, (start, stop)) in starts.iter().zip(stops).enumerate() {
            let disk = std::mem::take(&mut self.under_way[device]);
            let mut left: Vec<Pending> =
                disk.requests.into_values().flatten().filter(|request| request.issued_ns.is_some()).collect();
            left.sort_by_key(|request| request.issued_ns);
            let with_driver = usize::try_from(stop.in_flight).unwrap_or(usize::MAX);
            let unseen = left.len().saturating_sub(with_driver);
            let mut hidden = [0; 4];
            for row in disk.flushing.into_values() {
                self.rows[row].completed_ns = None;
                hidden[1] += 1;
            }
            for request in &left[..unseen] {
                hidden[group_of(request.categories)] += 1;
            }
            for request in &left {
                let row = self.row(device, request, None, 0);
                self.rows.push(row);
            }
            let counted = Snapshot { before: disk.counters, kernel: *stop, after: disk.counters };
            let nothing = Snapshot { kernel: *start, ..Default::default() };
            let compared = DeviceReconciliation::new(
                self.devices[device].name.to_string(),
                self.devices[device].keeps_statistics(),
                &nothing,
                &counted,
                hidden,
            );
            found.in_flight_at_start += disk.counters.before_start;
            found.in_flight_at_stop += (left.len() - unseen) as u64;
            found.lost += hidden.iter().sum::<u64>();
            found.unexplained += compared.unexplained_requests;
            found.agrees &= compared.agrees();
            found.devices.push(compared);
        }
        self.rows.sort_by_key(|row| row.completed_ns.unwrap_or(i64::MAX));
        found.rows = self.rows.len() as u64;
        found.cpus = self.cpus.into_values().collect();
        found.cpus.sort_by_key(|count| count.cpu);
        Recorded { rows: self.rows, reconciliation: found }
    }
}

fn relative(ns: u64, epoch_ns: i64) -> Option<i64> {
    Some(i64::try_from(ns).ok()? - epoch_ns)
}

/// Operation of a record.
pub(crate) fn op_of(categories: u16) -> BlockOp {
    if is_device_flush(categories) {
        BlockOp::Flush
    } else if categories & category::DISCARD != 0 {
        BlockOp::Discard
    } else if categories & category::PASS_THROUGH != 0 {
        BlockOp::Other
    } else if categories & category::WRITE != 0 {
        BlockOp::Write
    } else {
        BlockOp::Read
    }
}

/// Group of the kernel's statistics: reads, writes, discards, flushes.
fn group_of(categories: u16) -> usize {
    match op_of(categories) {
        BlockOp::Flush => 3,
        BlockOp::Discard => 2,
        BlockOp::Write | BlockOp::WriteZeroes => 1,
        BlockOp::Read | BlockOp::Other => 0,
    }
}

/// Flag names as of [`weir_records::block::flag_names`], as far as a record has the flags.
fn flag_names(categories: u16) -> String {
    let names = [
        (category::SYNC, "sync"),
        (category::META, "meta"),
        (category::FUA, "fua"),
        (category::FLUSH, "preflush"),
        (category::READ_AHEAD, "readahead"),
    ];
    let set = names.iter().filter(|(bit, _)| categories & bit != 0);
    set.map(|(_, name)| *name).collect::<Vec<_>>().join("|")
}
