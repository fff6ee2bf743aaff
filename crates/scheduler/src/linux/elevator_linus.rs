//! The elevator of Linux 2.4, `elevator_linus`.
//!
//! After the behaviour of `drivers/block/elevator.c` and `__make_request` in `drivers/block/ll_rw_blk.c`: version 2.4.20, and
//! 2.4.19, which counts differently. J. Axboe, "elevator seek accounting fixes", linux-kernel, 15 August 2002, describes both.
//!
//! One queue holds reads and writes, and the device takes its head. A new request is placed in sector order, searched from
//! the tail. Each request has a counter, `read_latency` or `write_latency` at first, that falls when later requests are placed
//! ahead of it or merged ahead of it. No request is placed ahead of one whose counter is used up. Nothing else limits
//! waiting times.
//!
//! A request of the kernel grows when an adjoining buffer is merged into it. Here the merged requests stay requests of their
//! own and are served one after the other: a `Run`. Left out: plugging, the limit on the number of requests, several
//! devices in one queue, and the merge of two requests of the queue when a buffer closes the gap between them. As in the
//! kernel, the request in service is not compared, and nothing is placed directly behind it while others wait.

use std::collections::VecDeque;

use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{Class, Op, Request};
use crate::settings::{SettingError, Settings};

const SECTOR_BYTES: u64 = 512;

pub(crate) const ENTRY: Entry = Entry {
    name: "linux-elevator-linus",
    label: "Linus elevator (2.4)",
    about: "model of the elevator of Linux 2.4 (elevator_linus): sorted insertion and merging in one queue, bounded by a counter \
            of each request",
    promises: "work conserving; at most read_latency / seek_cost later requests are placed ahead of a read, and \
               write_latency / seek_cost ahead of a write, besides merged ones; requests of one run are served one after \
               the other",
    settings: &[
        (
            "kernel",
            "counting. 2.4.20: a request placed ahead costs seek_cost, one merged ahead 1; 2.4.19: each search that passes \
             a request costs it 1, each merge ahead costs its sectors; default 2.4.20",
        ),
        ("read_latency", "initial counter of a read (elvtune -r); default 2048, with kernel=2.4.19 8192"),
        ("write_latency", "initial counter of a write (elvtune -w); default 8192, with kernel=2.4.19 16384"),
        (
            "seek_cost",
            "cost of a request placed ahead; with kernel=2.4.20 only (ELV_LINUS_SEEK_COST); default 16",
        ),
        (
            "max_sectors",
            "longest run of merged requests, in sectors of 512 bytes; default 255, as for IDE disks",
        ),
    ],
    build,
};

fn build(_: &[Class], settings: &Settings) -> Result<Box<dyn Policy>, SettingError> {
    let counting = match settings.word("kernel", &["2.4.20", "2.4.19"])? {
        "2.4.19" => Counting::Searches,
        _ => Counting::Seeks { cost: settings.count("seek_cost", 16, 1, 1_000_000)? as i64 },
    };
    if counting == Counting::Searches && settings.0.contains_key("seek_cost") {
        return Err(settings.refused("seek_cost", "no seek_cost with kernel=2.4.19".to_owned()));
    }
    let (read, write) = if counting == Counting::Searches { (8192, 16_384) } else { (2048, 8192) };
    Ok(Box::new(ElevatorLinus {
        counting,
        read_latency: settings.count("read_latency", read, 0, 1 << 30)? as i64,
        write_latency: settings.count("write_latency", write, 0, 1 << 30)? as i64,
        most_sectors: settings.count("max_sectors", 255, 1, 1 << 30)?,
        queue: VecDeque::new(),
        started: VecDeque::new(),
        waiting: 0,
    }))
}

/// What makes counters fall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counting {
    /// Requests placed or merged ahead (2.4.20).
    Seeks { cost: i64 },
    /// Searches that pass a request, and sectors merged ahead (2.4.19).
    Searches,
}

/// Requests merged with each other, a request of the kernel.
#[derive(Debug)]
struct Run {
    op: Op,
    /// In address order, without gaps.
    requests: VecDeque<Request>,
    sectors: u64,
    /// The rest of the counter (`elevator_sequence`).
    sequence: i64,
}

impl Run {
    fn begin_bytes(&self) -> u64 {
        self.requests.front().map_or(0, |first| first.offset_bytes)
    }

    fn end_bytes(&self) -> u64 {
        self.requests.back().map_or(0, Request::end_bytes)
    }
}

fn sectors(request: &Request) -> u64 {
    u64::from(request.size_bytes).div_ceil(SECTOR_BYTES)
}

/// Result of a search of the queue for the place of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// The request continues this run.
    Back(usize),
    /// This run continues the request.
    Front(usize),
    /// It goes directly behind this run.
    Behind(usize),
    /// It goes to the tail.
    Tail,
}

#[derive(Debug)]
struct ElevatorLinus {
    counting: Counting,
    read_latency: i64,
    write_latency: i64,
    most_sectors: u64,
    queue: VecDeque<Run>,
    /// Rest of the run of which a request was served last.
    started: VecDeque<Request>,
    waiting: usize,
}

impl ElevatorLinus {
    /// Searches from the tail, as `elevator_linus_merge`. Counters of passed requests fall with kernel 2.4.19.
    fn search(&mut self, request: &Request) -> Found {
        let count = sectors(request);
        let mut found = Found::Tail;
        for place in (0..self.queue.len()).rev() {
            let is_between = found == Found::Tail && self.is_between(place, request.offset_bytes);
            let run = &mut self.queue[place];
            if run.sequence <= 0 {
                run.sequence -= i64::from(self.counting == Counting::Searches);
                return found;
            }
            if self.counting == Counting::Searches {
                run.sequence -= 1;
            }
            if is_between {
                found = Found::Behind(place);
            }
            if run.op != request.op || run.sectors + count > self.most_sectors {
                continue;
            }
            if self.counting == Counting::Searches && run.sequence < count as i64 {
                return found;
            }
            if run.end_bytes() == request.offset_bytes {
                return Found::Back(place);
            }
            if request.end_bytes() == run.begin_bytes() {
                return Found::Front(place);
            }
        }
        found
    }

    /// Whether an address is between a run and the next one (`bh_rq_in_between`): in order, or where the sweep begins again.
    fn is_between(&self, place: usize, offset_bytes: u64) -> bool {
        let Some(next) = self.queue.get(place + 1) else { return false };
        let (this_bytes, next_bytes) = (self.queue[place].begin_bytes(), next.begin_bytes());
        match next_bytes > this_bytes {
            true => this_bytes < offset_bytes && offset_bytes < next_bytes,
            false => offset_bytes > this_bytes || offset_bytes < next_bytes,
        }
    }

    /// Lowers the counters of all behind a place.
    fn charge_behind(&mut self, place: usize, cost: i64) {
        for run in self.queue.iter_mut().skip(place + 1) {
            run.sequence -= cost;
        }
    }

    fn insert(&mut self, place: usize, request: Request) {
        let sequence = if request.op == Op::Read { self.read_latency } else { self.write_latency };
        let run = Run { op: request.op, sectors: sectors(&request), requests: [request].into(), sequence };
        self.queue.insert(place, run);
    }
}

impl Policy for ElevatorLinus {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        self.waiting += 1;
        let count = sectors(&request);
        let (merge_cost, seek_cost) = match self.counting {
            Counting::Seeks { cost } => (1, cost),
            Counting::Searches => (count as i64, 0),
        };
        match self.search(&request) {
            Found::Tail => self.insert(self.queue.len(), request),
            Found::Behind(place) => {
                self.charge_behind(place, seek_cost);
                self.insert(place + 1, request);
            }
            Found::Back(place) => {
                self.charge_behind(place, merge_cost);
                self.queue[place].requests.push_back(request);
                self.queue[place].sectors += count;
            }
            Found::Front(place) => {
                self.charge_behind(place, merge_cost);
                let run = &mut self.queue[place];
                run.sequence -= merge_cost;
                run.requests.push_front(request);
                run.sectors += count;
            }
        }
    }

    fn next(&mut self, _: u64, _: &dyn ServiceModel) -> Decision {
        if self.started.is_empty()
            && let Some(run) = self.queue.pop_front()
        {
            self.started = run.requests;
        }
        let Some(request) = self.started.pop_front() else { return Decision::Idle };
        self.waiting -= 1;
        Decision::Serve(request)
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{at, device, offsets, policy, read, settings, tags, weighted, write};
    use crate::policy::{Decision, Policy};
    use crate::registry::build;
    use crate::request::Request;

    const NAME: &str = "linux-elevator-linus";

    /// A read of whole sectors whose tag is its first sector.
    fn sectors(first: u64, count: u32) -> Request {
        Request { tag: first, offset_bytes: first * 512, size_bytes: count * 512, ..read(first) }
    }

    fn next(policy: &mut dyn Policy) -> u64 {
        match policy.next(0, &device(0)) {
            Decision::Serve(request) => request.tag,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_are_placed_in_sector_order() {
        // 50; 50 90; 50 90 10, as 10 is between none; 70 is between 50 and 90; 30 is behind the last one that is lower, 10.
        let order = offsets(&mut *policy(NAME, &[]), &at(&[50, 90, 10, 70, 30]), 0);
        assert_eq!(order, [50, 70, 90, 10, 30]);
        // 95 is above 90 and 5 is below 10: both go where the sweep begins again.
        let order = offsets(&mut *policy(NAME, &[]), &at(&[50, 90, 10, 95, 5]), 0);
        assert_eq!(order, [50, 90, 95, 5, 10]);
    }

    #[test]
    fn nothing_is_placed_directly_behind_the_request_in_service() {
        let mut policy = policy(NAME, &[]);
        for offset in [10, 50] {
            policy.arrive(0, read(offset), &device(0));
        }
        assert_eq!(next(&mut *policy), 10);
        // 30 is between 10, in service, and 50, but only waiting requests are compared.
        policy.arrive(0, read(30), &device(0));
        assert_eq!([next(&mut *policy), next(&mut *policy)], [50, 30]);
    }

    #[test]
    fn a_request_whose_counter_is_used_up_is_a_barrier() {
        // 90 has 32: 20 and 30, placed ahead of it, cost it 16 each. 40 and 50 go behind it.
        let pairs = [("read_latency", "32"), ("write_latency", "64")];
        let order = offsets(&mut *policy(NAME, &pairs), &at(&[10, 90, 20, 30, 40, 50]), 0);
        assert_eq!(order, [10, 20, 30, 90, 40, 50]);
        let mut queue = vec![read(10), write(90)];
        queue.extend(at(&[20, 30, 40, 50, 60, 70]));
        // A write has 64: four requests are placed ahead of it.
        assert_eq!(offsets(&mut *policy(NAME, &pairs), &queue, 0), [10, 20, 30, 40, 50, 90, 60, 70]);
        let cheap = [("read_latency", "32"), ("seek_cost", "8")];
        let order = offsets(&mut *policy(NAME, &cheap), &at(&[10, 90, 20, 30, 40, 50, 60]), 0);
        assert_eq!(order, [10, 20, 30, 40, 50, 90, 60]);
    }

    #[test]
    fn requests_that_continue_others_are_merged_with_them() {
        // 100..108, 500..508, then 108..116 behind the first, 92..100 before it, and a write that is not merged.
        let adjoining_write = Request { tag: 116, offset_bytes: 116 * 512, ..write(0) };
        let queue = [sectors(100, 8), sectors(500, 8), sectors(108, 8), sectors(92, 8), adjoining_write];
        assert_eq!(tags(&mut *policy(NAME, &[]), &queue), [92, 100, 108, 116, 500]);
        // A run of 16 sectors at most is full with two of eight: the third is placed like any other, behind its predecessor.
        let queue = [sectors(100, 8), sectors(500, 8), sectors(108, 8), sectors(116, 8)];
        assert_eq!(tags(&mut *policy(NAME, &[("max_sectors", "16")]), &queue), [100, 108, 116, 500]);
    }

    #[test]
    fn a_run_is_served_without_a_break() {
        let mut policy = policy(NAME, &[]);
        for request in [sectors(100, 8), sectors(500, 8), sectors(108, 8)] {
            policy.arrive(0, request, &device(0));
        }
        assert_eq!(next(&mut *policy), 100);
        // It is at the device: nothing is merged with it any more, and the tail is the only place left.
        policy.arrive(0, sectors(116, 8), &device(0));
        assert_eq!([next(&mut *policy), next(&mut *policy), next(&mut *policy)], [108, 500, 116]);
    }

    #[test]
    fn merges_ahead_cost_one_and_placed_requests_sixteen() {
        // 500 has 18: one request placed ahead and two merged ahead use it up.
        let queue = [sectors(0, 8), sectors(500, 8), sectors(100, 8), sectors(108, 8), sectors(116, 8)];
        let order = |last: u64| {
            let queue = [&queue[..], &[sectors(last, 8)]].concat();
            tags(&mut *policy(NAME, &[("read_latency", "18")]), &queue)
        };
        assert_eq!(order(200), [0, 100, 108, 116, 500, 200]);
        // No merge beyond the barrier either.
        assert_eq!(order(124), [0, 100, 108, 116, 500, 124]);
    }

    #[test]
    fn kernel_2_4_19_counts_searches_and_merged_sectors() {
        let pairs = [("kernel", "2.4.19"), ("read_latency", "3")];
        // 90 has 3, and the searches for 20, 30 and 40 pass it. The search for 40 ends there: the rest, 0, is less than its
        // sector.
        let order = offsets(&mut *policy(NAME, &pairs), &at(&[10, 90, 20, 30, 40, 50]), 0);
        assert_eq!(order, [10, 20, 30, 90, 40, 50]);
        // 500 has 30, less 1 and 8 for each merge of eight sectors ahead of it, less 1 for each later search.
        let queue = [
            sectors(100, 8),
            sectors(500, 8),
            sectors(108, 8),
            sectors(116, 8),
            sectors(200, 8),
            sectors(300, 8),
        ];
        let order =
            |latency| tags(&mut *policy(NAME, &[("kernel", "2.4.19"), ("read_latency", latency)]), &queue);
        assert_eq!(order("30"), [100, 108, 116, 200, 300, 500]);
        // With 20, 1 is left when 200 comes: less than its eight sectors.
        assert_eq!(order("20"), [100, 108, 116, 500, 200, 300]);
    }

    #[test]
    fn a_seek_cost_that_the_kernel_did_not_have_is_refused() {
        let pairs = settings(&[("kernel", "2.4.19"), ("seek_cost", "1")]);
        let error = build(NAME, &weighted(&[1.0]), &pairs).err().unwrap().to_string();
        assert!(error.contains("no seek_cost with kernel=2.4.19"), "{error}");
    }
}
