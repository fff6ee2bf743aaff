//! Requests of a file server's day, by disk and cell.

use std::collections::VecDeque;

use rand_chacha::ChaCha8Rng;
use weir_vocabulary::Op;

use crate::client::{Batch, ClassRecipe, Extents, align, cut, deadline_ns};
use crate::draw::{below, chance, exponential, geometric, normal, pareto_quantile, unit};
use crate::seed::{Purpose, generator};
use crate::server::ServerDay;
use crate::server_plan::{CELL_S, Cell, DAY_CELLS, plan};
use crate::spec::{Arrivals, Workload};

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: i64 = 1_000_000_000;
const CELL_NS: i64 = CELL_S as i64 * NS_PER_S;
/// Two reads of a train are at least this far apart: a request takes some time.
const SHORTEST_GAP_NS: f64 = 2e6;

/// A client that represents a server.
pub(crate) struct Server {
    class: String,
    seed: u64,
    number: u32,
    /// Cells since midnight of day 0.
    cell: usize,
    /// The same for time 0 of the stream.
    start_cell: usize,
    disks: Vec<DiskState>,
    /// Remaining requests of the current cell, in time order.
    queue: VecDeque<(i64, u32, Op)>,
}

struct DiskState {
    rng: ChaCha8Rng,
    plan: Vec<Cell>,
    reads: u64,
    all: u64,
    /// End of the last request.
    end: u64,
}

impl Server {
    pub(crate) fn new(day: &ServerDay, workload: &Workload, class: &str, seed: u64, number: u32) -> Self {
        let start_cell = (day.start_s / CELL_S) as usize;
        let mut server = Server {
            class: class.to_owned(),
            seed,
            number,
            cell: start_cell,
            start_cell,
            disks: Vec::new(),
            queue: VecDeque::new(),
        };
        server.begin_day(day);
        server.refill(day, workload.read_share);
        server
    }

    pub(crate) fn next_ns(&self) -> i64 {
        self.queue.front().map_or(i64::MAX, |(at_ns, ..)| *at_ns)
    }

    pub(crate) fn batch(&mut self, recipe: &ClassRecipe) -> Batch {
        let workload = &recipe.workload;
        let Some((at_ns, file, op)) = self.queue.pop_front() else {
            return Batch {
                at_ns: i64::MAX,
                deadline_ns: None,
                file: 0,
                op: Op::Read,
                extents: Extents::new(),
            };
        };
        let mut extents = Extents::new();
        if let Arrivals::ServerDay(day) = &workload.arrivals {
            let file_bytes = recipe.files.sizes_bytes()[file as usize];
            let (start, end) = self.disks[file as usize].place(day, recipe, op, file_bytes);
            extents = cut(start, end, workload.block_bytes);
            if self.queue.is_empty() {
                self.refill(day, workload.read_share);
            }
        }
        Batch { at_ns, deadline_ns: deadline_ns(workload, at_ns, 0.0), file, op, extents }
    }

    /// Plans the day of the current cell.
    fn begin_day(&mut self, day: &ServerDay) {
        let date = (self.cell / DAY_CELLS) as u16;
        let ends: Vec<u64> = self.disks.iter().map(|disk| disk.end).collect();
        self.disks = day
            .asked()
            .into_iter()
            .enumerate()
            .map(|(file, (number, disk))| {
                let purpose = Purpose::Disk { client: self.number, disk: number, day: date };
                let mut rng = generator(self.seed, &self.class, purpose);
                let end = ends.get(file).copied().unwrap_or(0);
                DiskState { plan: plan(day, disk, &mut rng), rng, reads: 0, all: 0, end }
            })
            .collect();
    }

    /// Makes the requests of the next cell that has any; a checked specification has one within two days.
    fn refill(&mut self, day: &ServerDay, read_share: f64) {
        for _ in 0..2 * DAY_CELLS {
            let start_ns = (self.cell as i64 - self.start_cell as i64) * CELL_NS;
            let mut requests = Vec::new();
            for (number, disk) in (0..).zip(&mut self.disks) {
                let cell = disk.plan[self.cell % DAY_CELLS];
                let made = disk.make(day, cell, read_share);
                requests.extend(made.into_iter().map(|(at_ns, op)| (start_ns + at_ns, number, op)));
            }
            // Stable: requests of one disk at one instant stay in their order.
            requests.sort_by_key(|(at_ns, ..)| *at_ns);
            self.queue.extend(requests);
            self.cell += 1;
            if self.cell.is_multiple_of(DAY_CELLS) {
                self.begin_day(day);
            }
            if !self.queue.is_empty() {
                break;
            }
        }
    }
}

impl DiskState {
    /// Times and kinds of a cell's requests, in ns since its beginning and in order.
    fn make(&mut self, day: &ServerDay, cell: Cell, read_share: f64) -> Vec<(i64, Op)> {
        let mut made: Vec<(i64, Op)> = Vec::with_capacity(cell.count as usize);
        let mut left = cell.count.saturating_sub(cell.spike);
        let mut full = None;
        if cell.spike > 0 {
            // A second of writes alone: only a flush makes so many.
            let second = below(u64::from(CELL_S), &mut self.rng) as i64;
            full = Some(second);
            for _ in 0..cell.spike {
                made.push((second * NS_PER_S + below(NS_PER_S as u64, &mut self.rng) as i64, Op::Write));
            }
            self.all += u64::from(cell.spike);
        }
        if cell.flush > 0 {
            let flush = cell.flush.min(left);
            self.burst(day, Op::Write, flush, &mut made);
            left -= flush;
        }
        while left > 0 {
            // The kind that is behind its share is next: the share holds for every length of bursts.
            let op =
                if (self.reads as f64) < read_share * (self.all + 1) as f64 { Op::Read } else { Op::Write };
            let length = match op {
                Op::Read => geometric(day.reads.mean_length, &mut self.rng) as u32,
                Op::Write => {
                    let (low, high) = (f64::from(day.writes.shortest), f64::from(day.writes.longest) + 1.0);
                    pareto_quantile(day.writes.shape, low, high, unit(&mut self.rng)) as u32
                }
            };
            let length = length.clamp(1, left);
            self.burst(day, op, length, &mut made);
            left -= length;
        }
        if cell.cap_per_s > 0 {
            self.spread(&mut made, cell.cap_per_s, full);
        }
        made.sort_by_key(|(at_ns, _)| *at_ns);
        made
    }

    /// Adds a burst within the cell.
    fn burst(&mut self, day: &ServerDay, op: Op, length: u32, made: &mut Vec<(i64, Op)>) {
        let rng = &mut self.rng;
        let gaps: Vec<f64> = (1..length)
            .map(|_| match op {
                Op::Read => {
                    let gap = day.reads.gap_ms + day.reads.gap_std_ms * normal(rng);
                    (gap * NS_PER_MS).max(SHORTEST_GAP_NS)
                }
                Op::Write if chance(day.writes.together, rng) => 0.0,
                Op::Write => exponential(day.writes.gap_ms * NS_PER_MS, rng),
            })
            .collect();
        let sum: f64 = gaps.iter().sum();
        let squeeze = (CELL_NS as f64 * 0.99 / sum).min(1.0);
        let mut at_ns = unit(rng) * (CELL_NS as f64 - sum * squeeze);
        made.push((at_ns as i64, op));
        for gap in gaps {
            at_ns += gap * squeeze;
            made.push((at_ns as i64, op));
        }
        self.all += u64::from(length);
        self.reads += if op == Op::Read { u64::from(length) } else { 0 };
    }

    /// Delays what exceeds the limit of a second to the next second that has room. `full` is already so.
    fn spread(&mut self, made: &mut [(i64, Op)], cap_per_s: u32, full: Option<i64>) {
        let seconds = CELL_S as usize;
        let mut counts = vec![0; seconds];
        let mut fixed = 0;
        if let Some(second) = full {
            // They are first, and nothing may displace them.
            fixed =
                made.iter().take(cap_per_s as usize).take_while(|(at, _)| at / NS_PER_S == second).count();
            counts[second as usize] = fixed as u32;
        }
        made[fixed..].sort_by_key(|(at_ns, _)| *at_ns);
        for (at_ns, _) in &mut made[fixed..] {
            let second = ((*at_ns / NS_PER_S) as usize).min(seconds - 1);
            let room = (0..seconds).map(|step| (second + step) % seconds).find(|s| counts[*s] < cap_per_s);
            let Some(room) = room else { break };
            counts[room] += 1;
            if room != second {
                *at_ns = room as i64 * NS_PER_S + below(NS_PER_S as u64, &mut self.rng) as i64;
            }
        }
    }

    /// Which bytes the next request of a disk moves.
    fn place(&mut self, day: &ServerDay, recipe: &ClassRecipe, op: Op, file_bytes: u64) -> (u64, u64) {
        let unit_bytes = recipe.workload.alignment_bytes;
        let rng = &mut self.rng;
        let size = recipe.sizes.as_ref().map_or(unit_bytes, |sizes| sizes.draw(rng));
        let size = align(size, unit_bytes).min(file_bytes);
        let share = if op == Op::Read { day.sequential.read } else { day.sequential.write };
        let start = if chance(share, rng) && self.end + size <= file_bytes {
            self.end
        } else {
            let places = (file_bytes - size) / unit_bytes + 1;
            let hot = ((places as f64 * day.hot.space) as u64).clamp(1, places);
            if hot == places || chance(day.hot.requests, rng) {
                below(hot, rng) * unit_bytes
            } else {
                (hot + below(places - hot, rng)) * unit_bytes
            }
        };
        self.end = start + size;
        (start, self.end)
    }
}
