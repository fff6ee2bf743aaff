//! A flash device with a translation layer: dies behind channels, a write buffer, an SLC cache, garbage collection.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use crate::device::{Completion, Device, IoRequest, Op, RequestError, check};
use crate::flash_options::{FlashCounts, FlashOptions, UNIT_BYTES, WritePlacement};
use crate::ftl::{Cleaning, Ftl, FtlOptions};
use crate::random_phase::RandomPhase;
use crate::slc_cache::SlcCache;
use crate::steady::{MOST_ROUNDS, Preconditioning, is_steady};
use crate::submission_queues::{QueueOptions, SubmissionQueues};
use crate::zones::Zones;

/// A solid-state disk with page mapping.
///
/// Page n is on die n modulo the number of dies. A read waits for the current operation of its die, then is served first;
/// a write completes when the buffer has its data (without a buffer, when the flash has), and the dies write the buffer out between
/// the reads, first to their SLC caches if there are any. A die with too few erased blocks copies and erases before it writes, one step at a time. At the
/// start the device is full, written in order, and its SLC caches are empty.
#[derive(Clone, Debug)]
pub struct FlashSsd {
    options: FlashOptions,
    capacity_bytes: u64,
    dies: Vec<Die>,
    /// Commands that the controller has not fetched, with submission queues.
    queues: Option<Box<SubmissionQueues>>,
    /// With placement by zones.
    zones: Option<Box<Zones>>,
    channel_free_ns: Vec<u64>,
    /// When the controller can begin with a command.
    controller_free_ns: u64,
    /// End of the current transfers on the link to the host: of read data, and of data to write.
    from_device_ns: u64,
    to_device_ns: u64,
    /// Completions of the dies: time, order, die. Numbers from the number of dies on: only the die's data are ready.
    working: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Requests with a known completion time: time, order, tag, start.
    done: BinaryHeap<Reverse<(u64, u64, u64, u64)>>,
    requests: HashMap<u64, Underway>,
    /// Writes that wait for room in the buffer.
    waiting: VecDeque<u64>,
    /// Units in the buffer, and how often each.
    buffered: HashMap<u64, u32>,
    buffer_used: u32,
    /// Whether a unit was ever discarded: until then all have data.
    has_holes: bool,
    chance: RandomPhase,
    retries: u64,
    /// Copies and erases of the preconditioning.
    before: (u64, u64),
    preconditioning: Option<Preconditioning>,
    order: u64,
    /// The byte after the last request.
    head_bytes: u64,
}

/// Repetitions of the read of a page, at most: then its data are restored from others.
pub(crate) const MOST_RETRIES: u64 = 10;

/// A request that is not done.
#[derive(Clone, Copy, Debug)]
struct Underway {
    tag: u64,
    /// Handle of its writes.
    handle: u8,
    op: Op,
    arrived_ns: u64,
    ready_ns: u64,
    /// For writes, when the first of the data come.
    data_ns: u64,
    /// The next unit to go into the buffer, for writes.
    next_unit: u64,
    end_unit: u64,
    units: u64,
    /// Reads of pages that are not done; without a buffer, writes of units.
    left: u64,
    done_ns: u64,
}

/// A die: its map, its queue, and its current operation.
#[derive(Clone, Debug)]
struct Die {
    ftl: Ftl,
    slc: SlcCache,
    /// Units written for the host, and moved from the SLC cache.
    host_units: u64,
    folded_units: u64,
    /// Blocks of reset zones that are to be erased, and were.
    resets: u64,
    erased_for_zones: u64,
    /// End of the last operation for the host.
    used_ns: u64,
    /// When it will look whether it was idle long enough.
    look_ns: Option<u64>,
    reads: VecDeque<Part>,
    /// Units in the buffer.
    writes: VecDeque<Pending>,
    /// Those that are being programmed.
    programmed: Vec<Pending>,
    work: Work,
}

/// Part of a read on one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    id: u64,
    units: u32,
    ready_ns: u64,
    /// Time of the die.
    sense_ns: u64,
}

/// A unit that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending {
    unit: u64,
    /// The request.
    id: u64,
    /// When its data are there.
    there_ns: u64,
    /// Handle of the request.
    handle: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Idle,
    Read(Part),
    /// Programs the units of `programmed`.
    Program,
    /// Holds a page in its register until the channel has it.
    HandOver,
    /// Writes a unit to the SLC cache.
    WriteSlc(Pending),
    /// Moves the oldest unit of the SLC cache to the other blocks.
    Fold(u32),
    Clean,
    /// Erases a block of a reset zone.
    Reset,
}

impl FlashOptions {
    /// Time of the next erase of a die.
    fn erase_of(&self, die: &Die) -> u64 {
        let takes_time =
            (die.ftl.erased_blocks + die.erased_for_zones).is_multiple_of(self.erases_for_one.max(1));
        if takes_time { self.erase_ns } else { 0 }
    }
}

impl FlashSsd {
    /// A device of `capacity_bytes` (at least 1); `seed` is for the chance of repeated reads.
    pub fn new(capacity_bytes: u64, options: FlashOptions, seed: u64) -> Self {
        let count = u64::from(options.channels.max(1)) * u64::from(options.dies_per_channel.max(1));
        let units = capacity_bytes.div_ceil(UNIT_BYTES);
        let page_units = u64::from(options.page_units.max(1));
        let each = units.div_ceil(page_units).div_ceil(count).max(1) * page_units;
        let each = u32::try_from(each).unwrap_or(u32::MAX);
        let slc_share = options.slc.map_or(0.0, |slc| slc.share);
        let ftl = FtlOptions {
            block_units: options.block_units.max(1),
            spare_share: options.spare_share,
            victims: options.victims,
            wear_gap: options.wear_gap,
            handles: match options.placement {
                WritePlacement::Fdp { handles } => handles.max(1),
                WritePlacement::Page | WritePlacement::Zns => 1,
            },
        };
        let zones = (options.placement == WritePlacement::Zns)
            .then(|| Box::new(Zones::new(units, u64::from(ftl.block_units) * count)));
        let die = Die {
            ftl: Ftl::new(each, ftl),
            slc: SlcCache::new((slc_share * f64::from(each)) as usize),
            host_units: 0,
            folded_units: 0,
            resets: 0,
            erased_for_zones: 0,
            used_ns: 0,
            look_ns: None,
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            programmed: Vec::new(),
            work: Work::Idle,
        };
        Self {
            options,
            capacity_bytes,
            dies: vec![die; count as usize],
            queues: None,
            zones,
            channel_free_ns: vec![0; options.channels.max(1) as usize],
            controller_free_ns: 0,
            from_device_ns: 0,
            to_device_ns: 0,
            working: BinaryHeap::new(),
            done: BinaryHeap::new(),
            requests: HashMap::new(),
            waiting: VecDeque::new(),
            buffered: HashMap::new(),
            buffer_used: 0,
            has_holes: false,
            chance: RandomPhase::new(seed),
            retries: 0,
            before: (0, 0),
            preconditioning: None,
            order: 0,
            head_bytes: 0,
        }
    }

    /// With submission queues, one for each class.
    #[must_use]
    pub fn with_queues(mut self, options: QueueOptions) -> Self {
        self.queues = Some(Box::new(SubmissionQueues::new(options)));
        self
    }

    /// The byte that the next write to the zone of a byte begins at; `None` without zones.
    pub fn write_pointer(&self, offset_bytes: u64) -> Option<u64> {
        self.zones.as_ref().map(|zones| zones.write_pointer(offset_bytes))
    }

    /// Size of a zone in bytes; `None` without zones. The last zone may be smaller.
    pub fn zone_bytes(&self) -> Option<u64> {
        self.zones.as_ref().map(|zones| zones.zone_bytes())
    }

    /// Zone append: writes at the write pointer of the zone of the request's first byte; returns where. Without zones, as
    /// [`arrive`](Device::arrive).
    ///
    /// # Errors
    /// As [`arrive`](Device::arrive).
    pub fn append(&mut self, now_ns: u64, request: IoRequest) -> Result<u64, RequestError> {
        let offset_bytes = self.write_pointer(request.offset_bytes).unwrap_or(request.offset_bytes);
        self.arrive(now_ns, IoRequest { offset_bytes, ..request })?;
        Ok(offset_bytes)
    }

    /// Counters of writes and of repeated reads.
    pub fn counts(&self) -> FlashCounts {
        let start = FlashCounts { retries: self.retries, fewest_erases: u32::MAX, ..FlashCounts::default() };
        let mut counts = self.dies.iter().fold(start, |sum, die| {
            let (fewest, most) = die.ftl.wear();
            FlashCounts {
                host_units: sum.host_units + die.host_units,
                folded_units: sum.folded_units + die.folded_units,
                copied_units: sum.copied_units + die.ftl.copied_units,
                erased_blocks: sum.erased_blocks + die.ftl.erased_blocks + die.erased_for_zones,
                most_erases: sum.most_erases.max(most),
                fewest_erases: sum.fewest_erases.min(fewest),
                ..sum
            }
        });
        if let Some(zones) = &self.zones {
            (counts.fewest_erases, counts.most_erases) = zones.wear();
        }
        counts.copied_units -= self.before.0;
        counts.erased_blocks -= self.before.1;
        counts.preconditioning = self.preconditioning;
        counts
    }

    /// The same device, with its data where they are, and other times; `None` if its flash would be arranged otherwise. Without
    /// submission queues.
    pub(crate) fn retimed(&self, capacity_bytes: u64, options: FlashOptions) -> Option<FlashSsd> {
        let arranged = |options: &FlashOptions| FlashOptions {
            read_ns: 0,
            cache_register: true,
            program_unit_ns: 0,
            program_units: 1,
            erase_ns: 0,
            transfer_unit_ns: 0,
            interface_bytes_per_s: 0.0,
            command_overhead_ns: 0,
            controller_read_ns: 0,
            controller_write_ns: 0,
            buffer_units: 0,
            retries: None,
            ..*options
        };
        let is_alike = self.capacity_bytes == capacity_bytes && arranged(&self.options) == arranged(&options);
        is_alike.then(|| FlashSsd { options, ..self.clone() })
    }

    /// Writes units at random until write amplification is steady ([`is_steady`]), without time: a device that was in use.
    /// Returns the write amplification of each round, in which as many units are written as the device has;
    /// [`counts`](Self::counts) has them too. Erases count as wear.
    pub fn precondition(&mut self, seed: u64) -> Vec<f64> {
        let mut chance = RandomPhase::new(seed);
        let units = self.capacity_bytes.div_ceil(UNIT_BYTES);
        let mut kept = Preconditioning::new(units);
        let mut rounds = Vec::new();
        while rounds.len() < MOST_ROUNDS && !is_steady(&rounds) {
            let mut copied = 0;
            for _ in 0..units {
                let (die, local) = self.die_of(chance.draw_ns(units));
                let Die { ftl, slc, .. } = &mut self.dies[die];
                let before = ftl.copied_units;
                while ftl.cleaning() != Cleaning::None {
                    ftl.clean();
                }
                slc.forget(local);
                ftl.write(local, 0);
                copied += ftl.copied_units - before;
            }
            kept.add(copied);
            rounds = kept.amplifications();
        }
        self.preconditioning = Some(kept);
        let sum = |of: fn(&Ftl) -> u64| self.dies.iter().map(|die| of(&die.ftl)).sum();
        self.before = (sum(|ftl| ftl.copied_units), sum(|ftl| ftl.erased_blocks));
        rounds
    }

    /// Size and times.
    pub fn options(&self) -> &FlashOptions {
        &self.options
    }

    pub(crate) fn head_bytes(&self) -> u64 {
        self.head_bytes
    }

    /// Transfer time of the link for a number of bytes.
    pub(crate) fn link_ns(&self, size_bytes: u64) -> u64 {
        (size_bytes as f64 / self.options.interface_bytes_per_s * 1e9).round() as u64
    }

    /// The die of a unit, and the unit's number there.
    fn die_of(&self, unit: u64) -> (usize, u32) {
        let (count, page_units) = (self.dies.len() as u64, u64::from(self.options.page_units.max(1)));
        let page = unit / page_units;
        ((page % count) as usize, (page / count * page_units + unit % page_units) as u32)
    }

    /// The parts of a read that lie on a page each and are not in the buffer: die, units, and whether all of them are in the SLC
    /// cache. Units without data are not read.
    fn flash_parts(&self, first_unit: u64, end_unit: u64) -> Vec<(usize, u32, bool)> {
        let page_units = u64::from(self.options.page_units.max(1));
        let mut parts = Vec::new();
        let mut unit = first_unit;
        while unit < end_unit {
            let end = ((unit / page_units + 1) * page_units).min(end_unit);
            let (mut missing, mut cached) = (0, 0);
            for unit in (unit..end).filter(|unit| !self.buffered.contains_key(unit)) {
                let (die, local) = self.die_of(unit);
                let is_cached = self.options.slc.is_some() && self.dies[die].slc.contains(local);
                let has_data = match &self.zones {
                    Some(zones) => zones.is_written(unit),
                    None => is_cached || !self.has_holes || self.dies[die].ftl.is_mapped(local),
                };
                missing += u32::from(has_data);
                cached += u32::from(is_cached);
            }
            if missing > 0 {
                parts.push((self.die_of(unit).0, missing, missing == cached));
            }
            unit = end;
        }
        parts
    }

    /// Time of the die for reading a page, with its repetitions.
    fn sense_ns(&mut self, from_slc: bool) -> u64 {
        let once_ns = match self.options.slc {
            Some(slc) if from_slc => slc.read_ns,
            _ => self.options.read_ns,
        };
        let Some(retries) = self.options.retries else { return once_ns };
        let mut repeats = 0;
        let mut share = retries.first_share;
        while repeats < MOST_RETRIES && (self.chance.draw_ns(1 << 32) as f64) < share * (1u64 << 32) as f64 {
            repeats += 1;
            share = retries.next_share;
        }
        self.retries += repeats;
        once_ns * (1 + repeats)
    }

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn finish(&mut self, id: u64, done_ns: u64) {
        if let Some(request) = self.requests.remove(&id) {
            let order = self.next_order();
            self.done.push(Reverse((done_ns, order, request.tag, request.arrived_ns)));
        }
    }

    /// Moves waiting writes into the buffer while it has space.
    fn fill_buffer(&mut self, now_ns: u64) {
        while let Some(id) = self.waiting.front().copied() {
            let Some(mut request) = self.requests.get(&id).copied() else {
                self.waiting.pop_front();
                continue;
            };
            let first_unit = request.end_unit - request.units;
            let room = if self.options.is_buffered() { self.options.buffer_units } else { u32::MAX };
            while request.next_unit < request.end_unit && self.buffer_used < room {
                let unit = request.next_unit;
                request.next_unit += 1;
                let there_ns = request.data_ns + self.link_ns((request.next_unit - first_unit) * UNIT_BYTES);
                self.buffer_used += 1;
                *self.buffered.entry(unit).or_insert(0) += 1;
                let (die, _) = self.die_of(unit);
                let there_ns = there_ns.min(request.ready_ns);
                let handle = request.handle;
                self.dies[die].writes.push_back(Pending { unit, id, there_ns, handle });
                self.start(die, now_ns);
            }
            self.requests.insert(id, request);
            if request.next_unit < request.end_unit {
                if self.options.program_units > 1 {
                    // The buffer is full: no die waits for more.
                    (0..self.dies.len()).for_each(|die| self.start(die, now_ns));
                }
                return;
            }
            self.waiting.pop_front();
            if self.options.is_buffered() {
                self.finish(id, now_ns.max(request.ready_ns));
            }
        }
    }

    /// Starts the next operation of an idle die: reads first, then cleaning, then writes; without any of them, moves out of the
    /// SLC cache.
    fn start(&mut self, index: usize, now_ns: u64) {
        let channel = index % self.channel_free_ns.len();
        let die = &mut self.dies[index];
        if die.work != Work::Idle {
            return;
        }
        let options = &self.options;
        let slc = options.slc.filter(|_| die.slc.has_room());
        let program_units = if slc.is_some() { 1 } else { options.program_units.max(1) as usize };
        // A full buffer, or none, makes a die program what there is.
        let is_waited_for = die.writes.len() < program_units && self.buffer_used < options.buffer_units;
        let end_ns;
        (die.work, end_ns) = if let Some(part) = die.reads.pop_front() {
            (Work::Read(part), now_ns.max(part.ready_ns) + part.sense_ns)
        } else if die.resets > 0 {
            (Work::Reset, now_ns + options.erase_of(die))
        } else if let Some(pending) = die.writes.front().copied().filter(|_| !is_waited_for) {
            match die.ftl.cleaning() {
                Cleaning::Copy if slc.is_none() => {
                    (Work::Clean, now_ns + options.read_ns + options.program_unit_ns)
                }
                Cleaning::Erase if slc.is_none() => (Work::Clean, now_ns + options.erase_of(die)),
                _ => {
                    let count = program_units.min(die.writes.len());
                    let there_ns = die.writes.iter().take(count).map(|unit| unit.there_ns).max();
                    if let Some(there_ns) = there_ns.filter(|there_ns| *there_ns > now_ns) {
                        return self.look(index, there_ns);
                    }
                    let free_ns = &mut self.channel_free_ns[channel];
                    *free_ns = (*free_ns).max(now_ns) + count as u64 * options.transfer_unit_ns;
                    match slc {
                        Some(slc) => {
                            die.writes.pop_front();
                            (Work::WriteSlc(pending), *free_ns + slc.program_unit_ns)
                        }
                        None => {
                            die.programmed.extend(die.writes.drain(..count));
                            (Work::Program, *free_ns + options.program_ns())
                        }
                    }
                }
            }
        } else if let Some(slc) = options.slc
            && let Some(oldest) = die.slc.oldest()
        {
            let from_ns = die.used_ns + slc.idle_ns;
            if now_ns < from_ns {
                if die.look_ns.is_none() {
                    die.look_ns = Some(from_ns);
                    self.look(index, from_ns);
                }
                return;
            }
            match die.ftl.cleaning() {
                Cleaning::Copy => (Work::Clean, now_ns + options.read_ns + options.program_unit_ns),
                Cleaning::Erase => (Work::Clean, now_ns + options.erase_of(die)),
                Cleaning::None => (Work::Fold(oldest), now_ns + slc.read_ns + options.program_unit_ns),
            }
        } else {
            return;
        };
        let order = self.next_order();
        self.working.push(Reverse((end_ns, order, index as u32)));
    }

    /// Lets a die look for work again at a time.
    fn look(&mut self, index: usize, at_ns: u64) {
        let order = self.next_order();
        self.working.push(Reverse((at_ns, order, (index + self.dies.len()) as u32)));
    }

    /// A die has done its work.
    fn worked(&mut self, index: usize, now_ns: u64) {
        let work = std::mem::replace(&mut self.dies[index].work, Work::Idle);
        match work {
            Work::Idle | Work::HandOver => {}
            Work::Clean => self.dies[index].ftl.clean(),
            Work::Reset => {
                self.dies[index].resets -= 1;
                self.dies[index].erased_for_zones += 1;
            }
            Work::Fold(local) => {
                let die = &mut self.dies[index];
                // Unless it was discarded meanwhile.
                if die.slc.oldest() == Some(local) {
                    die.slc.forget(local);
                    die.ftl.write(local, 0);
                    die.folded_units += 1;
                }
            }
            Work::Read(Part { id, units, .. }) => {
                self.dies[index].used_ns = now_ns;
                let channel = index % self.channel_free_ns.len();
                let free_ns = &mut self.channel_free_ns[channel];
                *free_ns = (*free_ns).max(now_ns) + u64::from(units) * self.options.transfer_unit_ns;
                let channel_ns = *free_ns;
                if !self.options.cache_register {
                    self.dies[index].work = Work::HandOver;
                    let order = self.next_order();
                    self.working.push(Reverse((channel_ns, order, index as u32)));
                }
                let link_ns = self.link_ns(u64::from(units) * UNIT_BYTES);
                self.from_device_ns = self.from_device_ns.max(now_ns) + link_ns;
                let done_ns = channel_ns.max(self.from_device_ns);
                if let Some(request) = self.requests.get_mut(&id) {
                    request.done_ns = request.done_ns.max(done_ns);
                    request.left -= 1;
                    if request.left == 0 {
                        let done_ns = request.done_ns;
                        self.finish(id, done_ns);
                    }
                }
            }
            Work::Program => {
                let mut programmed = std::mem::take(&mut self.dies[index].programmed);
                programmed.drain(..).for_each(|pending| self.written(index, pending, false, now_ns));
                // Keeps its memory.
                self.dies[index].programmed = programmed;
                self.fill_buffer(now_ns);
            }
            Work::WriteSlc(pending) => {
                self.written(index, pending, true, now_ns);
                self.fill_buffer(now_ns);
            }
        }
        self.start(index, now_ns);
    }

    /// A unit is in the flash.
    fn written(&mut self, index: usize, pending: Pending, is_in_slc: bool, now_ns: u64) {
        let Pending { unit, id, handle, .. } = pending;
        let (_, local) = self.die_of(unit);
        let die = &mut self.dies[index];
        die.used_ns = now_ns;
        die.host_units += 1;
        if self.zones.is_some() {
            // It is where its address says.
        } else if is_in_slc {
            die.slc.write(local);
            die.ftl.discard(local);
        } else {
            die.slc.forget(local);
            die.ftl.write(local, handle);
        }
        self.buffer_used -= 1;
        if let Some(count) = self.buffered.get_mut(&unit) {
            *count -= 1;
            if *count == 0 {
                self.buffered.remove(&unit);
            }
        }
        if !self.options.is_buffered()
            && let Some(request) = self.requests.get_mut(&id)
        {
            request.left -= 1;
            if request.left == 0 {
                self.finish(id, now_ns);
            }
        }
    }
}

impl FlashSsd {
    /// Starts a request that was checked.
    fn begin(&mut self, now_ns: u64, request: IoRequest, class: usize) {
        let id = self.next_order();
        self.head_bytes = request.end_bytes();
        let (next_unit, end_unit) =
            (request.offset_bytes / UNIT_BYTES, request.end_bytes().div_ceil(UNIT_BYTES));
        self.controller_free_ns =
            self.controller_free_ns.max(now_ns) + self.options.controller_ns(request.op);
        let command_ns = self.controller_free_ns + self.options.command_overhead_ns;
        let link_ns = self.link_ns(u64::from(request.size_bytes));
        let data_ns = self.to_device_ns.max(command_ns);
        let mut underway = Underway {
            tag: request.tag,
            handle: match self.options.placement {
                WritePlacement::Fdp { handles } => (class % usize::from(handles.max(1))) as u8,
                WritePlacement::Page | WritePlacement::Zns => 0,
            },
            op: request.op,
            arrived_ns: now_ns,
            ready_ns: command_ns,
            data_ns,
            next_unit,
            end_unit,
            units: end_unit - next_unit,
            left: 0,
            done_ns: command_ns,
        };
        match underway.op {
            Op::Write => {
                underway.ready_ns = data_ns + link_ns;
                self.to_device_ns = underway.ready_ns;
                underway.left = underway.units;
                self.requests.insert(id, underway);
                self.waiting.push_back(id);
                self.fill_buffer(now_ns);
            }
            Op::Read => {
                let from_flash = self.flash_parts(next_unit, end_unit);
                underway.left = from_flash.len() as u64;
                self.requests.insert(id, underway);
                if from_flash.is_empty() {
                    self.from_device_ns = self.from_device_ns.max(now_ns) + link_ns;
                    self.finish(id, self.from_device_ns.max(command_ns + link_ns));
                }
                for (die, units, from_slc) in from_flash {
                    let sense_ns = self.sense_ns(from_slc);
                    self.dies[die].reads.push_back(Part { id, units, ready_ns: command_ns, sense_ns });
                    self.start(die, now_ns);
                }
            }
        }
    }

    /// Starts the requests that the controller fetches from its submission queues.
    fn fetch(&mut self, now_ns: u64) {
        while let Some((class, request)) = self.queues.as_mut().and_then(|queues| queues.fetch()) {
            self.begin(now_ns, request, class);
        }
    }
}

impl Device for FlashSsd {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        self.arrive_of(now_ns, request, 0)
    }

    fn arrive_of(&mut self, now_ns: u64, request: IoRequest, class: usize) -> Result<(), RequestError> {
        check(&request, self.capacity_bytes)?;
        if let Some(zones) = &mut self.zones
            && request.op == Op::Write
        {
            zones.write(&request)?;
        }
        match &mut self.queues {
            None => self.begin(now_ns, request, class),
            Some(queues) => {
                queues.push(class, request);
                self.fetch(now_ns);
            }
        }
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        let working = self.working.peek().map(|Reverse((ns, ..))| *ns);
        let done = self.done.peek().map(|Reverse((ns, ..))| *ns);
        working.into_iter().chain(done).min()
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        while let Some(event_ns) = self.next_event_ns().filter(|event_ns| *event_ns <= now_ns) {
            if let Some(Reverse((done_ns, _, tag, start_ns))) = self.done.peek().copied()
                && done_ns == event_ns
            {
                self.done.pop();
                completions.push(Completion { tag, start_ns, done_ns });
                if let Some(queues) = &mut self.queues {
                    queues.inside -= 1;
                    self.fetch(done_ns);
                }
            } else if let Some(Reverse((_, _, die))) = self.working.pop() {
                match (die as usize).checked_sub(self.dies.len()) {
                    Some(die) => {
                        let look_ns = &mut self.dies[die].look_ns;
                        *look_ns = look_ns.filter(|look_ns| *look_ns > event_ns);
                        self.start(die, event_ns);
                    }
                    None => self.worked(die as usize, event_ns),
                }
            }
        }
    }

    /// Forgets the data of the units that lie in a range altogether, at once. What is in the buffer is still written. With zones:
    /// resets those that lie in the range altogether; their dies erase a block each before they write again.
    fn discard(&mut self, offset_bytes: u64, size_bytes: u64) {
        let end_bytes = offset_bytes.saturating_add(size_bytes).min(self.capacity_bytes);
        if let Some(zones) = &mut self.zones {
            // The last unit of the device may be smaller than the others.
            let is_end = end_bytes == self.capacity_bytes;
            let end_bytes = if is_end { end_bytes.next_multiple_of(UNIT_BYTES) } else { end_bytes };
            let page_units = u64::from(self.options.page_units.max(1));
            for written_units in zones.reset(offset_bytes, end_bytes) {
                let dies = written_units.div_ceil(page_units).min(self.dies.len() as u64);
                // Zones begin on the first die.
                self.dies[..dies as usize].iter_mut().for_each(|die| die.resets += 1);
            }
            return;
        }
        // The last unit of the device may be smaller than the others.
        let end_unit = if end_bytes == self.capacity_bytes {
            end_bytes.div_ceil(UNIT_BYTES)
        } else {
            end_bytes / UNIT_BYTES
        };
        for unit in offset_bytes.div_ceil(UNIT_BYTES)..end_unit {
            let (die, local) = self.die_of(unit);
            self.dies[die].slc.forget(local);
            self.dies[die].ftl.discard(local);
            self.has_holes = true;
        }
    }

    fn flash_counts(&self) -> Option<FlashCounts> {
        Some(self.counts())
    }

    fn outstanding(&self) -> usize {
        let queued = self.queues.as_ref().map_or(0, |queues| queues.waiting());
        queued + self.requests.len() + self.done.len()
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
}
