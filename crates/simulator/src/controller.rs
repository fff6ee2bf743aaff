//! Disk controller: caches, interface, mechanism.

use std::ops::Range;

use crate::device::{IoRequest, Op, SECTOR_BYTES};
use crate::mechanism::{Access, Arm, Mechanism};
use crate::random_phase::RandomPhase;
use crate::read_ahead::{Reach, ReadAheadStop, Segment};
use crate::write_cache::{WriteCache, WriteCacheOptions};

/// How a disk's controller treats requests. The default has no caches, no overheads and an interface that never limits.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    /// From a read's arrival until the arm starts, or the buffer is searched.
    pub read_overhead_ns: u64,
    /// From a write's arrival until the arm starts and data flow.
    pub write_overhead_ns: u64,
    /// The same for a read whose data are in the buffer, if it differs from `read_overhead_ns`.
    pub hit_overhead_ns: Option<u64>,
    /// Maximum request length for the watermarks; longer requests count as this long.
    pub watermark_most_bytes: u64,
    /// From when the arm starts for a write until its data begin to flow into the buffer.
    pub write_data_delay_ns: u64,
    /// From the end of the transfer to the completion at the host.
    pub completion_overhead_ns: u64,
    /// How fast data pass between buffer and host.
    pub interface_bytes_per_s: f64,
    /// How much of a read's data must be in the buffer before the host gets them, from 0 to 1.
    pub read_watermark: f64,
    /// How much of a write's data must be in the buffer before the platter gets them, from 0 to 1.
    pub write_watermark: f64,
    /// How many sectors the disk reads ahead; 0 for not at all.
    pub read_ahead_sectors: u64,
    /// Where reading ahead ends at the latest.
    pub read_ahead_stop: ReadAheadStop,
    /// How many sectors before the reader a segment keeps.
    pub keep_sectors: u64,
    /// Segments of the buffer, each for one run of sectors.
    pub segments: usize,
    /// Write cache, if any.
    pub write_cache: Option<WriteCacheOptions>,
    /// Draw the platter's angle for each access from a generator with this seed, instead of following it.
    pub random_phase_seed: Option<u64>,
    /// Reads of at least so many sectors are read track by track, and reach the host track by track.
    pub reads_by_track_from_sectors: Option<u64>,
    /// Whether writes of more than a track spend a revolution on each track, and lose one if they are not whole tracks.
    pub writes_by_revolution: bool,
    /// By how much the seek of an access may be longer or shorter than the mean.
    pub seek_noise_ns: u64,
    /// Seed of these deviations.
    pub seek_noise_seed: u64,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            read_overhead_ns: 0,
            write_overhead_ns: 0,
            hit_overhead_ns: None,
            completion_overhead_ns: 0,
            interface_bytes_per_s: f64::INFINITY,
            read_watermark: 0.0,
            write_watermark: 0.0,
            watermark_most_bytes: u64::MAX,
            write_data_delay_ns: 0,
            read_ahead_sectors: 0,
            read_ahead_stop: ReadAheadStop::Segment,
            keep_sectors: 0,
            segments: 1,
            write_cache: None,
            random_phase_seed: None,
            reads_by_track_from_sectors: None,
            writes_by_revolution: false,
            seek_noise_ns: 0,
            seek_noise_seed: 0,
        }
    }
}

/// The state of a disk between requests.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    pub mechanism: Mechanism,
    pub options: ControllerOptions,
    /// Where the arm is, unless a segment has it for reading ahead.
    arm: Arm,
    /// End of the current uninterruptible write from the cache.
    arm_free_ns: u64,
    /// The sector after the last one that was requested and transferred.
    pub head_sector: u64,
    /// The buffer's segments, the one used last first.
    segments: Vec<Segment>,
    write_cache: Option<WriteCache>,
    random_phase: Option<RandomPhase>,
    seek_noise: Option<RandomPhase>,
    /// Whether the interface can be slower than the platter.
    pub interface_limits: bool,
}

impl Controller {
    pub fn new(mechanism: Mechanism, options: ControllerOptions) -> Self {
        let densest = mechanism.geometry.zones().iter().map(|zone| zone.sectors_per_track).max().unwrap_or(1);
        let platter_bytes_per_s =
            f64::from(densest) * 512.0 / (mechanism.rotation.revolution_ns() as f64 / 1e9);
        Self {
            arm: Arm { cylinder: 0, head: 0 },
            arm_free_ns: 0,
            head_sector: 0,
            segments: Vec::new(),
            write_cache: options.write_cache.map(WriteCache::new),
            random_phase: options.random_phase_seed.map(RandomPhase::new),
            seek_noise: (options.seek_noise_ns > 0).then(|| RandomPhase::new(options.seek_noise_seed)),
            interface_limits: options.read_watermark.max(options.write_watermark) > 0.0
                || options.write_data_delay_ns > 0
                || options.interface_bytes_per_s < platter_bytes_per_s,
            mechanism,
            options,
        }
    }

    /// From a request's arrival until the arm can start for it.
    pub fn overhead_ns(&self, op: Op) -> u64 {
        match op {
            Op::Read => self.options.read_overhead_ns,
            Op::Write => self.options.write_overhead_ns,
        }
    }

    /// How long the interface takes for `size_bytes`.
    pub fn delivery_ns(&self, size_bytes: u32) -> u64 {
        (f64::from(size_bytes) / self.options.interface_bytes_per_s * 1e9).round() as u64
    }

    /// Whether the request needs no arm at `now_ns`.
    pub fn is_buffered(&self, now_ns: u64, request: &IoRequest) -> bool {
        let (first, sectors) = request.sectors();
        let end = first + sectors;
        match request.op {
            Op::Read => {
                self.segments.iter().any(|segment| segment.holds(&self.mechanism, now_ns, first, end))
                    || self.write_cache.as_ref().is_some_and(|cache| cache.holds(first, end))
            }
            Op::Write => self.write_cache.as_ref().is_some_and(|cache| cache.has_room(first, end, now_ns)),
        }
    }

    /// Where the arm is, if a request's positioning depends on nothing but the mechanism: no buffer, no reading ahead, no option.
    // Decisions of a scheduler by positioning time ask for each request (`make bench-simulator`: 1.05 times the rate of SATF).
    #[inline]
    pub fn bare_arm(&self) -> Option<Arm> {
        let is_bare = self.segments.is_empty()
            && self.write_cache.is_none()
            && self.random_phase.is_none()
            && self.options.reads_by_track_from_sectors.is_none();
        is_bare.then_some(self.arm)
    }

    /// Range of cylinders of the arm from now on: reading ahead moves it.
    pub fn arm_cylinders(&self) -> [u32; 2] {
        let geometry = &self.mechanism.geometry;
        let reading = self.segments.iter().find_map(Segment::reading_between);
        reading.map_or([self.arm.cylinder; 2], |(arm, limit)| {
            let last = limit.min(geometry.sectors().saturating_sub(1));
            [arm.cylinder, geometry.locate(last).arm().cylinder.max(arm.cylinder)]
        })
    }

    /// The runs of sectors that the buffer has, or will have: first sector, and the one after the last.
    pub fn buffered_sectors(&self) -> impl Iterator<Item = [u64; 2]> {
        self.segments.iter().map(Segment::sectors)
    }

    /// How long the arm takes to the request's first sector, if it starts at `now_ns`.
    pub fn positioning_ns(&self, now_ns: u64, request: &IoRequest) -> u64 {
        let (first, _) = request.sectors();
        let now_ns = now_ns.max(self.arm_free_ns);
        let arm = self.segments.iter().find_map(|segment| segment.arm(&self.mechanism, now_ns));
        let arm = arm.unwrap_or(self.arm);
        if self.is_by_track(request) {
            // Wherever the arm arrives on the track, the revolution of the read begins.
            return self.mechanism.move_ns(arm, self.mechanism.geometry.locate(first).arm(), request.op);
        }
        if self.random_phase.is_some() {
            let to = self.mechanism.geometry.locate(first).arm();
            return self.mechanism.move_ns(arm, to, request.op) + self.mechanism.rotation.revolution_ns() / 2;
        }
        self.mechanism.positioning_ns(now_ns, arm, first, request.op)
    }

    /// Serves a request that arrived at `arrived_ns`, from `free_ns` on, and returns its completion time.
    pub fn serve(&mut self, free_ns: u64, arrived_ns: u64, request: &IoRequest) -> u64 {
        let begin_ns = free_ns.max(arrived_ns + self.overhead_ns(request.op));
        let done_ns = match request.op {
            Op::Read => self.read(free_ns, arrived_ns, begin_ns, request),
            Op::Write => self.write(begin_ns, request),
        };
        done_ns + self.options.completion_overhead_ns
    }

    fn read(&mut self, free_ns: u64, arrived_ns: u64, begin_ns: u64, request: &IoRequest) -> u64 {
        let (first, sectors) = request.sectors();
        let end = first + sectors;
        let hit_ns = self.options.hit_overhead_ns.map_or(begin_ns, |ns| free_ns.max(arrived_ns + ns));
        self.destage_until(begin_ns.min(hit_ns));
        if let Some(available_ns) = self.read_buffered(hit_ns, first, end) {
            return available_ns.max(hit_ns + self.delivery_ns(request.size_bytes));
        }
        self.destage_until(begin_ns);
        while self.write_cache.as_ref().is_some_and(|cache| cache.overlaps(first, end)) {
            self.destage_oldest(begin_ns);
        }
        let start_ns = begin_ns.max(self.arm_free_ns);
        let arm = self.take_arm(start_ns);
        let start_ns = self.with_seek_noise(start_ns, arm, first);
        let by_track =
            self.is_by_track(request).then(|| self.read_by_track(start_ns, arm, first..end, |_| ()));
        let access = by_track.map_or_else(
            || self.mechanism.access(start_ns, arm, first, sectors, Op::Read),
            |(access, _)| access,
        );
        (self.arm, self.head_sector) = (access.arm, end);
        if self.options.read_ahead_sectors > 0 {
            let reach = Reach {
                ahead: self.options.read_ahead_sectors,
                keep: self.options.keep_sectors,
                stop: self.options.read_ahead_stop,
            };
            self.keep(Segment::after_read(first, end, access.end_ns, access.arm, reach, &self.mechanism));
        }
        if !self.interface_limits {
            return access.end_ns;
        }
        if let Some((_, delivered_ns)) = by_track {
            return delivered_ns;
        }
        let interface = self.interface_times(request, access.end_ns - access.transfer_start_ns);
        // The host gets the data in order, so not before the lowest sector.
        let delivered_ns = access.lowest_start_ns + self.delivery_ns(request.size_bytes);
        access.end_ns.max(access.transfer_start_ns + interface.after_start_ns).max(delivered_ns)
    }

    /// Whether a request is read track by track.
    pub(crate) fn is_by_track(&self, request: &IoRequest) -> bool {
        let from = self.options.reads_by_track_from_sectors;
        request.op == Op::Read && from.is_some_and(|from| request.sectors().1 >= from)
    }

    /// A read track by track, and when the host has it: it gets each track when that is in the buffer as a whole, while the
    /// next one is read.
    /// `track` is called for each with the wanted sectors that it has.
    pub(crate) fn read_by_track(
        &self,
        start_ns: u64,
        arm: Arm,
        sectors: Range<u64>,
        mut track: impl FnMut(u32),
    ) -> (Access, u64) {
        let mut delivered_ns = 0;
        let access = self.mechanism.read_by_track(start_ns, arm, sectors, |read_ns, sectors| {
            delivered_ns = read_ns.max(delivered_ns) + self.delivery_ns(sectors * SECTOR_BYTES as u32);
            track(sectors);
        });
        (access, delivered_ns)
    }

    /// Of a write by revolution: the time of its data under the head, and that of the revolution that it loses.
    pub(crate) fn by_revolution_ns(&self, op: Op, sectors: Range<u64>) -> Option<[u64; 2]> {
        let is_by_revolution = op == Op::Write && self.options.writes_by_revolution;
        is_by_revolution.then(|| self.mechanism.revolutions_ns(sectors)).flatten()
    }

    /// When an access would have to start for its seek to end as much later or earlier as this one does.
    fn with_seek_noise(&mut self, start_ns: u64, arm: Arm, first_sector: u64) -> u64 {
        let Some(noise) = &mut self.seek_noise else { return start_ns };
        if self.mechanism.geometry.locate(first_sector).cylinder == arm.cylinder {
            return start_ns;
        }
        let noise_ns = self.options.seek_noise_ns;
        (start_ns + noise.draw_ns(2 * noise_ns + 1)).saturating_sub(noise_ns)
    }

    /// When the sectors are in the buffer, if the arm need not be sent for them.
    fn read_buffered(&mut self, now_ns: u64, first: u64, end: u64) -> Option<u64> {
        for index in 0..self.segments.len() {
            if let Some(available_ns) = self.segments[index].read(&self.mechanism, now_ns, first, end) {
                // The arm is where the disk last read or reads ahead, whatever the buffer answers.
                if self.segments[index].has_arm() {
                    self.head_sector = self.head_sector.max(end);
                }
                self.segments[..=index].rotate_right(1);
                return Some(available_ns);
            }
        }
        self.write_cache.as_ref().filter(|cache| cache.holds(first, end)).map(|_| now_ns)
    }

    fn write(&mut self, begin_ns: u64, request: &IoRequest) -> u64 {
        let (first, sectors) = request.sectors();
        let end = first + sectors;
        let delivery_ns = self.options.write_data_delay_ns + self.delivery_ns(request.size_bytes);
        self.destage_until(begin_ns);
        if self.write_cache.as_ref().is_some_and(|cache| cache.fits(sectors)) {
            return self.write_to_cache(begin_ns, first, end, delivery_ns);
        }
        while self.write_cache.as_ref().is_some_and(|cache| cache.overlaps(first, end)) {
            self.destage_oldest(begin_ns);
        }
        let start_ns = begin_ns.max(self.arm_free_ns);
        let arm = self.take_arm(start_ns);
        self.segments.retain(|segment| !segment.overlaps(first, end));
        let by_revolution = self.by_revolution_ns(Op::Write, first..end);
        let mut ready_ns = start_ns;
        if self.interface_limits {
            let transfer_ns = by_revolution.map_or_else(
                || self.mechanism.transfer_ns(first, sectors, Op::Write),
                |[transfer_ns, _]| transfer_ns,
            );
            ready_ns = begin_ns + self.interface_times(request, transfer_ns).before_ns;
        }
        let start_ns = self.with_seek_noise(start_ns, arm, first);
        let access = match by_revolution {
            Some([transfer_ns, lost_ns]) => {
                let under_head_ns = transfer_ns + lost_ns;
                self.mechanism.write_by_revolution(start_ns, ready_ns, arm, first..end, under_head_ns)
            }
            None => self.mechanism.access_when_ready(start_ns, ready_ns, arm, first..end, Op::Write),
        };
        (self.arm, self.head_sector) = (access.arm, end);
        access.end_ns
    }

    /// Puts sectors into the write cache, after making room, and returns the time when all are stored.
    fn write_to_cache(&mut self, begin_ns: u64, first: u64, end: u64, delivery_ns: u64) -> u64 {
        let mut now_ns = begin_ns;
        while self.write_cache.as_ref().is_some_and(|cache| !cache.has_room(first, end, now_ns)) {
            if self.arm_free_ns <= now_ns {
                self.destage_oldest(now_ns);
            }
            now_ns = now_ns.max(self.arm_free_ns);
        }
        if let Some(cache) = &mut self.write_cache {
            cache.take(first, end, now_ns + delivery_ns);
        }
        // A segment that the arm still fills stops before the overwritten sectors.
        if self.segments.iter().any(|segment| segment.overlaps(first, end)) {
            self.take_arm(now_ns);
            self.segments.retain(|segment| !segment.overlaps(first, end));
        }
        now_ns + delivery_ns
    }

    /// Processes idle-time writes from the cache that began before `now_ns`.
    fn destage_until(&mut self, now_ns: u64) {
        while let Some((_, start_ns)) =
            self.write_cache.as_ref().and_then(|cache| cache.due(self.arm_free_ns, now_ns))
        {
            self.destage_oldest(start_ns);
        }
    }

    /// Writes the oldest run of the cache to the platter, beginning at `now_ns` or when the arm is free.
    fn destage_oldest(&mut self, now_ns: u64) {
        let Some(run) = self.write_cache.as_ref().and_then(WriteCache::oldest) else { return };
        let start_ns = now_ns.max(self.arm_free_ns);
        let arm = self.take_arm(start_ns);
        let start_ns = self.with_seek_noise(start_ns, arm, run.first);
        let access = self.mechanism.access(start_ns, arm, run.first, run.end - run.first, Op::Write);
        (self.arm, self.arm_free_ns) = (access.arm, access.end_ns);
        if let Some(cache) = &mut self.write_cache {
            cache.leave(access.end_ns);
        }
        self.keep(Segment::stored(run.first, run.end));
    }

    /// Puts a segment into the buffer, in the place of the one not used for longest if it is full.
    fn keep(&mut self, segment: Segment) {
        self.segments.truncate(self.options.segments.saturating_sub(1));
        self.segments.insert(0, segment);
    }

    /// Stops reading ahead, and returns the position of the arm. A new access follows, so a random angle is drawn.
    fn take_arm(&mut self, now_ns: u64) -> Arm {
        for segment in &mut self.segments {
            if let Some(arm) = segment.stop(&self.mechanism, now_ns) {
                self.arm = arm;
            }
        }
        if let Some(random) = &mut self.random_phase {
            self.mechanism.rotation.phase_ns = random.draw_ns(self.mechanism.rotation.revolution_ns());
        }
        self.arm
    }
}
