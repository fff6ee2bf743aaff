//! BPF programs of a mode: loading, attaching, and their shared memory.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use libbpf_rs::btf::{Btf, types as btf_types};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, OpenObject, Program};
use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::event::{EVENT_BYTES, Event, Kind};
use super::rings::{Rings, events_of_ring};
use super::skeleton::{BlockSkel, BlockSkelBuilder, types};
use crate::capability;
use crate::disk::Disk;
use crate::error::Error;
use crate::reconcile::ProgramRun;

/// Maximum devices of one collector (`MAX_DEVICES` of `block.h`).
pub(super) const MAX_DEVICES: usize = 8;
/// `MAX_CPUS` of `block.h`.
const MAX_CPUS: usize = 512;

/// Amount of recorded data of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All stages from the arrival of the first bio on, with the task.
    #[default]
    Full,
    /// One program at completion that reads the kernel's own times of the request.
    ///
    /// Cheaper, with limits: `queued_ns` is the time when a tag was granted, and a wait for one is not seen; `issued_ns` exists only
    /// while the kernel keeps it (writeback throttling, kyber or bfq); there is no task and no `inserted_ns`, and the kernel may
    /// read its clock once for several requests of a batch.
    Lean,
}

impl Mode {
    /// `full` or `lean`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Full => "full",
            Mode::Lean => "lean",
        }
    }
}

/// `enum recording` of `block.h`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Recording {
    On = 1,
    Drain = 2,
}

/// Masks of `__RQF_IO_STAT` and `__RQF_FLUSH_SEQ`; `None` before Linux 6.11, where both were macros.
///
/// In 6.12 their enum has no name, so that CO-RE cannot find it.
fn request_flags(kernel: &Btf<'_>) -> Option<[u32; 2]> {
    kernel.type_by_kind::<btf_types::Enum<'_>>().find_map(|flags| {
        let mask = |name: &str| {
            let bit = flags.iter().find(|member| member.name.is_some_and(|found| found == name))?.value;
            1_u32.checked_shl(u32::try_from(bit).ok()?)
        };
        Some([mask("__RQF_IO_STAT")?, mask("__RQF_FLUSH_SEQ")?])
    })
}

/// `SLOTS` of `block.h`.
const SLOTS: usize = 8192 * 4;

/// State of a used slot (`enum slot_state` of `block.h`).
const SLOT_QUEUED: u8 = 0;

/// The loaded programs.
pub(super) struct Programs<'object> {
    // Before the skeleton, which has the memory of their positions.
    pub(super) rings: Rings,
    pub(super) skeleton: BlockSkel<'object>,
    links: Vec<Link>,
}

/// Remaining entries of the table of outstanding requests.
pub(super) struct Leftovers {
    /// Issued, not completed.
    pub(super) issued: Vec<Event>,
    /// Arrived, not issued.
    pub(super) queued: u64,
}

impl<'object> Programs<'object> {
    pub(super) fn load(
        storage: &'object mut MaybeUninit<OpenObject>,
        devices: &[Disk],
        mode: Mode,
        ring_bytes: u32,
    ) -> Result<Self, Error> {
        if let Some(missing) = capability::missing_for_bpf() {
            return Err(Error::Bpf(missing));
        }
        let refuse =
            |what: &'static str| move |error: libbpf_rs::Error| Error::Bpf(capability::explain(what, &error));
        let mut open =
            BlockSkelBuilder::default().open(storage).map_err(refuse("opening the block programs"))?;
        let rodata = open.maps.rodata_data.as_mut().ok_or_else(|| no_data("rodata"))?;
        rodata.device_count = u32::try_from(devices.len()).unwrap_or(0);
        for (slot, disk) in rodata.devices.iter_mut().zip(devices) {
            *slot = disk.kernel_dev();
        }
        let kernel = Btf::from_vmlinux().map_err(refuse("reading the kernel's types"))?;
        if let Some([io_stat, flush_seq]) = request_flags(&kernel) {
            rodata.rqf_io_stat = io_stat;
            rodata.rqf_flush_seq = flush_seq;
        }
        let cpus = possible_cpus();
        let events_of_ring = events_of_ring(ring_bytes, cpus);
        rodata.ring_cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
        rodata.ring_events = events_of_ring;
        u32::try_from(cpus * events_of_ring as usize * EVENT_BYTES)
            .map_err(|_| Error::Bpf(format!("rings of {ring_bytes} bytes are too large")))
            .and_then(|bytes| {
                open.maps.data_completed.set_value_size(bytes).map_err(refuse("sizing the rings"))
            })?;
        let full = mode == Mode::Full;
        let programs = &mut open.progs;
        programs.rq_complete_lean.set_autoload(!full);
        for program in [
            &mut programs.task_rename,
            &mut programs.bio_queue,
            &mut programs.bio_split,
            &mut programs.bio_back_merge,
            &mut programs.bio_front_merge,
            &mut programs.rq_merge,
            &mut programs.rq_insert,
            &mut programs.rq_issue,
            &mut programs.rq_requeue,
            &mut programs.rq_complete,
        ] {
            program.set_autoload(full);
        }
        let mut skeleton = open.load().map_err(refuse("loading the block programs"))?;
        let shared = skeleton.maps.bss_data.as_deref_mut().ok_or_else(|| no_data("bss"))?;
        let positions = NonNull::from(&mut shared.rings).cast();
        // SAFETY: `bss` has a ring for each of MAX_CPUS, and is mapped for as long as the skeleton, which lives as long as the rings.
        let rings = unsafe { Rings::map(&skeleton.maps.data_completed, positions, cpus, events_of_ring)? };
        Ok(Programs { rings, skeleton, links: Vec::new() })
    }

    /// Attaches every program, last stage first: a request whose begin is seen has its end seen.
    pub(super) fn attach(&mut self, mode: Mode) -> Result<(), Error> {
        let programs = &mut self.skeleton.progs;
        let wanted = match mode {
            Mode::Lean => vec![&mut programs.rq_complete_lean],
            Mode::Full => vec![
                &mut programs.rq_complete,
                &mut programs.rq_requeue,
                &mut programs.rq_issue,
                &mut programs.rq_insert,
                &mut programs.rq_merge,
                &mut programs.bio_front_merge,
                &mut programs.bio_back_merge,
                &mut programs.bio_split,
                &mut programs.task_rename,
                &mut programs.bio_queue,
            ],
        };
        for program in wanted {
            let link = program.attach().map_err(|error| {
                let name = program.name().to_string_lossy().into_owned();
                Error::Bpf(capability::explain(&format!("attaching {name}"), &error))
            })?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Runs of each program.
    pub(super) fn runs(&self) -> Vec<ProgramRun> {
        let ours: Vec<u32> = self
            .skeleton
            .object()
            .progs()
            .filter(|program| program.autoload())
            .filter_map(|program| Program::id_from_fd(program.as_fd()).ok())
            .collect();
        ProgInfoIter::default()
            .filter(|info| ours.contains(&info.id))
            .map(|info| ProgramRun {
                name: info.name.to_string_lossy().into_owned(),
                runs: info.run_cnt,
                run_time_ns: info.run_time_ns,
                recursion_misses: info.recursion_misses,
            })
            .collect()
    }

    /// Detaches every program.
    pub(super) fn detach(&mut self) {
        self.links.clear();
    }

    fn shared(&self) -> Result<*const types::bss, Error> {
        let shared = self.skeleton.maps.bss_data.as_deref().ok_or_else(|| no_data("bss"))?;
        Ok(std::ptr::from_ref(shared))
    }

    pub(super) fn set_recording(&mut self, to: Recording, now_ns: i64) -> Result<(), Error> {
        let shared = self.skeleton.maps.data_data.as_deref_mut().ok_or_else(|| no_data("data"))?;
        // SAFETY: both are aligned fields of the mapped data segment, which outlives this borrow; the programs only
        // read them, and volatile writes keep their order: the start is known before recording begins.
        unsafe {
            if matches!(to, Recording::On) {
                (&raw mut shared.started_ns).write_volatile(u64::try_from(now_ns).unwrap_or(0));
            }
            (&raw mut shared.recording).write_volatile(to as i32);
        }
        Ok(())
    }

    /// The counters of one device on one CPU.
    fn counters_at(shared: *const types::bss, device: usize, cpu: usize) -> Counters {
        // SAFETY: the index is inside the array (device < MAX_DEVICES, cpu < MAX_CPUS), which is mapped for as long as
        // the skeleton lives. The programs continue to count: each field is read at once, as aligned 8 bytes, and margins of the
        // reconciliation cover readings at different instants.
        let raw = unsafe { (&raw const (*shared).counters[device * MAX_CPUS + cpu]).read_volatile() };
        Counters {
            bios_queued: raw.bios_queued,
            issued: raw.issued,
            completed: raw.completed,
            sectors: raw.sectors,
            completed_uncounted: raw.completed_uncounted,
            driver_completions: raw.driver_completions,
            before_start: raw.before_start,
            after_stop: raw.after_stop,
            arrival_unknown: raw.arrival_unknown,
            unseen_until_completion: raw.arrival_unknown_at_end,
            completions_ring_full: raw.completions_ring_full,
            reuses_ring_full: raw.reuses_ring_full,
            evicted: raw.evicted,
            hidden: raw.hidden,
            requeued: raw.requeued,
            bio_back_merges: raw.bio_back_merges,
            bio_front_merges: raw.bio_front_merges,
            request_merges: raw.request_merges,
            splits: raw.splits,
        }
    }

    /// Counters of one device, summed over CPUs.
    pub(super) fn device_counters(&self, device: usize) -> Result<Counters, Error> {
        let shared = self.shared()?;
        Ok((0..possible_cpus())
            .fold(Counters::default(), |sum, cpu| sum.plus(&Self::counters_at(shared, device, cpu))))
    }

    /// Counters of one CPU, summed over devices.
    pub(super) fn cpu_counters(&self, cpu: usize, devices: usize) -> Result<Counters, Error> {
        let shared = self.shared()?;
        Ok((0..devices)
            .fold(Counters::default(), |sum, device| sum.plus(&Self::counters_at(shared, device, cpu))))
    }

    /// Remaining entries of one device in the table.
    pub(super) fn leftovers(&self, device: usize) -> Result<Leftovers, Error> {
        let shared = self.shared()?;
        let mut found = Leftovers { issued: Vec::new(), queued: 0 };
        for index in 0..SLOTS {
            // SAFETY: the index is inside the array, which is mapped for as long as the skeleton lives; a slot that changes
            // while it is read can only be of a request under way, and the caller asks when there is none, or counts it
            // as such.
            let slot = unsafe { (&raw const (*shared).slots[index]).read_volatile() };
            if slot.key == 0 || usize::from(slot.device) != device {
                continue;
            }
            if slot.state == SLOT_QUEUED || slot.issued_ns == 0 {
                found.queued += 1;
                continue;
            }
            found.issued.push(Event {
                queued_ns: slot.queued_ns,
                inserted_ns: slot.inserted_ns,
                issued_ns: slot.issued_ns,
                completed_ns: 0,
                sector: slot.sector,
                cgroup: slot.cgroup,
                bytes: slot.bytes,
                cmd_flags: slot.cmd_flags,
                pid: slot.pid,
                priority: slot.priority,
                device: slot.device,
                status: 0,
                kind: Kind::Hidden,
            });
        }
        Ok(found)
    }
}

fn no_data(section: &str) -> Error {
    Error::Bpf(format!("the kernel cannot map the programs' {section}. Use Linux 5.5 or later"))
}

/// CPUs that may ever be online.
pub(super) fn possible_cpus() -> usize {
    libbpf_rs::num_possible_cpus().unwrap_or(1).min(MAX_CPUS)
}

/// Refuses more devices or CPUs than the programs' tables can hold.
pub(super) fn check_limits(devices: &[Disk]) -> Result<(), Error> {
    if devices.is_empty() || devices.len() > MAX_DEVICES {
        return Err(Error::Device {
            device: devices.iter().map(|disk| &*disk.name).collect::<Vec<_>>().join(", "),
            reason: format!(
                "wrong number of devices (found {}, expected 1 to {MAX_DEVICES} devices)",
                devices.len()
            ),
        });
    }
    let cpus = libbpf_rs::num_possible_cpus().unwrap_or(1);
    if cpus > MAX_CPUS {
        return Err(Error::Bpf(format!(
            "too many CPUs on this host (found {cpus}, expected at most {MAX_CPUS})"
        )));
    }
    Ok(())
}
