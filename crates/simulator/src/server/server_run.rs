//! Event loop of a simulated server.

use weir_cache::NumberedLru;
use weir_scheduler::{ClassId, Request};

use super::calendar::{Calendar, NEVER};
use super::head::{Head, HeadReport, Machine};
use super::layout::{ClassLayout, Piece};
use super::source::{Ask, Source};
use crate::device::Op;
use crate::machine::Model;

/// A class of clients, its files, and its share of the buffer cache.
pub struct ServerClass {
    /// Source of requests.
    pub source: Box<dyn Source>,
    /// Layout of its files.
    pub layout: ClassLayout,
    /// Size of its buffer cache, which is LRU over stripe units; 0 for none.
    pub cache_bytes: u64,
    /// Response time of a cache hit.
    pub cache_hit_ns: u64,
}

/// Limits of a run. Without a limit a run ends when all requests are answered and no client sends more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// End of the run; requests without an answer stay unanswered.
    pub end_ns: u64,
    /// Number of outstanding requests above which the server counts as saturated.
    pub most_outstanding: usize,
}

/// An answered request, or an unanswered one at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Class.
    pub class: ClassId,
    /// Request.
    pub ask: Ask,
    /// Start of service of the last completed piece; the arrival for a cache hit.
    pub served_ns: Option<u64>,
    /// Completion of all pieces; `None` if unanswered.
    pub completed_ns: Option<u64>,
    /// Disk accesses: completed pieces. None for a cache hit.
    pub accesses: u32,
    /// Total queueing delay of these accesses: from the arrival of the request to the start of each.
    pub access_queueing_ns: u64,
    /// Total service time of these accesses.
    pub busy_ns: u64,
}

/// Saturation: requests arrive faster than they are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saturation {
    /// The head with the longest queue, among all of the server.
    pub head: u32,
    /// Last time without waiting requests there.
    pub since_ns: u64,
    /// Time at which the run was stopped.
    pub at_ns: u64,
}

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Requests of clients.
    pub asked: u64,
    /// Number of answered requests.
    pub answered: u64,
    /// Stripe units read from the cache.
    pub cache_hits: u64,
    /// Stripe units missed by the cache.
    pub cache_misses: u64,
    /// Report of each head.
    pub heads: Vec<HeadReport>,
    /// Time of the last event.
    pub now_ns: u64,
    /// Saturated head, if the run was stopped for it.
    pub saturation: Option<Saturation>,
}

/// Error of a simulated server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// Invalid layout of files on heads.
    #[error("{0}")]
    Layout(String),
    /// A request outside its file.
    #[error("class {class}: a request for {size_bytes} bytes from {offset_bytes} of file {file}: {problem}")]
    Ask {
        /// Number of the class.
        class: ClassId,
        /// The file.
        file: u32,
        /// First byte.
        offset_bytes: u64,
        /// Bytes.
        size_bytes: u64,
        /// Problem.
        problem: String,
    },
}

/// A request with outstanding pieces.
#[derive(Debug, Clone, Copy)]
struct Pending {
    ask: Ask,
    class: ClassId,
    left: u32,
    served_ns: u64,
    accesses: u32,
    access_queueing_ns: u64,
    busy_ns: u64,
}

impl Pending {
    /// What is reported of it.
    fn served(&self, completed_ns: Option<u64>) -> Served {
        let Pending { ask, class, accesses, access_queueing_ns, busy_ns, .. } = *self;
        let served_ns = completed_ns.map(|_| self.served_ns);
        Served { class, ask, served_ns, completed_ns, accesses, access_queueing_ns, busy_ns }
    }
}

/// Buffer cache of a class.
struct UnitCache {
    units: NumberedLru,
    /// By file, as [`ClassLayout::numbering`].
    gaps: Vec<u64>,
}

impl UnitCache {
    /// The cache of a class, if it has one.
    fn of(class: &ServerClass) -> Result<Option<Self>, ServerError> {
        if class.cache_bytes == 0 {
            return Ok(None);
        }
        let (gaps, units) = class.layout.numbering();
        let number = u32::try_from(units).ok().filter(|units| *units <= MOST_UNITS);
        let Some(number) = number else {
            let text = format!(
                "too many stripe units of files behind a cache (found {units}, expected at most {MOST_UNITS}). Use a larger \
                 stripe unit, or fewer files"
            );
            return Err(ServerError::Layout(text));
        };
        let most = class.cache_bytes / class.layout.stripe_unit_bytes;
        Ok(Some(UnitCache { units: NumberedLru::new(most, number), gaps }))
    }
}

/// Maximum number of stripe units of a class with a cache: 4 bytes each.
const MOST_UNITS: u32 = 1 << 30;
/// Classes that an answer can wake, one bit each.
const MOST_CLASSES: usize = 64;
/// Bits of a tag that number the pieces of a request.
const PIECE_BITS: u32 = 24;

/// A storage server.
pub struct Server<M> {
    heads: Vec<Head<M>>,
    classes: Vec<ServerClass>,
    caches: Vec<Option<UnitCache>>,
    calendar: Calendar,
    /// Requests by number; the numbers of answered ones are used again.
    pending: Vec<Pending>,
    unused: Vec<u32>,
    pieces: Vec<Piece>,
    /// Heads with new requests since the last decision.
    unfed: Vec<u32>,
    outcome: Outcome,
}

impl<M: Machine> Server<M> {
    /// A server of these heads and classes; the policies of the heads were made for the classes in this order.
    ///
    /// # Errors
    /// A class has a volume of unknown heads or too many stripe units behind a cache, or there are more than 64 classes.
    pub fn new(heads: Vec<Head<M>>, classes: Vec<ServerClass>) -> Result<Self, ServerError> {
        if classes.len() > MOST_CLASSES {
            let text = format!("too many classes (found {}, expected at most {MOST_CLASSES})", classes.len());
            return Err(ServerError::Layout(text));
        }
        for (number, class) in classes.iter().enumerate() {
            let volume = class.layout.volume;
            if volume.first_head as usize + volume.heads as usize > heads.len() {
                return Err(ServerError::Layout(format!(
                    "class {number} has unknown heads (found {} to {}, expected below {})",
                    volume.first_head,
                    volume.first_head + volume.heads.saturating_sub(1),
                    heads.len()
                )));
            }
        }
        let mut server = Server {
            caches: classes.iter().map(UnitCache::of).collect::<Result<_, _>>()?,
            calendar: Calendar::new(heads.len() + classes.len()),
            pending: Vec::new(),
            unused: Vec::new(),
            pieces: Vec::new(),
            unfed: Vec::new(),
            outcome: Outcome {
                asked: 0,
                answered: 0,
                cache_hits: 0,
                cache_misses: 0,
                heads: Vec::new(),
                now_ns: 0,
                saturation: None,
            },
            heads,
            classes,
        };
        for class in 0..server.classes.len() {
            server.set_source(class);
        }
        Ok(server)
    }

    /// Runs until all requests are answered and no client sends more, or a limit is reached. `record` is called with
    /// every request in the order of completion, and at the end with those that were not completed. The server is
    /// saturated if there are more outstanding requests than the limit, or if some wait at the end although no client has
    /// further requests.
    ///
    /// # Errors
    /// A client sends a request outside its file.
    pub fn run(mut self, limits: Limits, record: &mut dyn FnMut(&Served)) -> Result<Outcome, ServerError> {
        loop {
            // Classes precede heads: all requests of one instant arrive before a policy chooses.
            let (actor, now_ns) = self.calendar.first();
            let head = actor.checked_sub(self.classes.len());
            if !self.unfed.is_empty() && (head.is_some() || now_ns > self.outcome.now_ns) {
                self.feed_all()?;
                continue;
            }
            if now_ns == NEVER {
                break;
            }
            if now_ns > limits.end_ns {
                let all_asked = self.classes.iter().all(|class| class.source.next_ns().is_none());
                if all_asked && self.heads.iter().any(|head| head.waiting() > 0) {
                    self.outcome.saturation = self.saturation(limits.end_ns);
                }
                break;
            }
            self.outcome.now_ns = now_ns;
            match head {
                Some(head) => self.head_event(head, now_ns, record)?,
                None => {
                    self.source_event(actor, now_ns, record)?;
                    if self.outstanding() > limits.most_outstanding {
                        self.outcome.saturation = self.saturation(now_ns);
                        break;
                    }
                }
            }
        }
        self.leave_the_rest(record);
        self.outcome.heads = self.heads.iter().map(|head| head.report(self.outcome.now_ns)).collect();
        Ok(self.outcome)
    }

    fn outstanding(&self) -> usize {
        self.pending.len() - self.unused.len()
    }

    fn set_source(&mut self, class: usize) {
        let next_ns = self.classes[class].source.next_ns().unwrap_or(NEVER);
        self.calendar.set(class, next_ns);
    }

    fn head_event(
        &mut self,
        number: usize,
        now_ns: u64,
        record: &mut dyn FnMut(&Served),
    ) -> Result<(), ServerError> {
        let Server { heads, classes, pending, unused, outcome, .. } = self;
        let mut changed = 0u64;
        heads[number].advance(now_ns, |request, begun_ns| {
            let index = (request.tag >> PIECE_BITS) as u32;
            let entry = &mut pending[index as usize];
            entry.left -= 1;
            entry.served_ns = begun_ns;
            entry.accesses += 1;
            entry.access_queueing_ns += begun_ns.saturating_sub(request.arrived_ns);
            entry.busy_ns += now_ns.saturating_sub(begun_ns);
            if entry.left == 0 {
                let Pending { ask, class, .. } = *entry;
                unused.push(index);
                outcome.answered += 1;
                record(&entry.served(Some(now_ns)));
                let sends_more = classes[usize::from(class)].source.answered(now_ns, ask.client);
                changed |= u64::from(sends_more) << class;
            }
        });
        self.feed(number, now_ns)?;
        while changed != 0 {
            let class = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            self.set_source(class);
        }
        Ok(())
    }

    fn feed(&mut self, number: usize, now_ns: u64) -> Result<(), ServerError> {
        let fed = self.heads[number].feed(now_ns);
        fed.map_err(|(tag, problem)| {
            let Pending { ask, class, .. } = self.pending[(tag >> PIECE_BITS) as usize];
            refused(class, &ask, problem)
        })?;
        self.calendar.set(self.classes.len() + number, self.heads[number].next_ns());
        Ok(())
    }

    /// Polls the policies of all heads with new requests. Polling one twice is harmless.
    fn feed_all(&mut self) -> Result<(), ServerError> {
        for at in 0..self.unfed.len() {
            self.feed(self.unfed[at] as usize, self.outcome.now_ns)?;
        }
        self.unfed.clear();
        Ok(())
    }

    fn source_event(
        &mut self,
        number: usize,
        now_ns: u64,
        record: &mut dyn FnMut(&Served),
    ) -> Result<(), ServerError> {
        let Some(ask) = self.classes[number].source.take() else {
            self.set_source(number);
            return Ok(());
        };
        self.outcome.asked += 1;
        let class = number as ClassId;
        self.divide(number, &ask).map_err(|problem| refused(class, &ask, problem))?;
        let left = self.pieces.len() as u32;
        let entry =
            Pending { ask, class, left, served_ns: now_ns, accesses: 0, access_queueing_ns: 0, busy_ns: 0 };
        if self.pieces.is_empty() {
            self.outcome.answered += 1;
            let done_ns = now_ns.saturating_add(self.classes[number].cache_hit_ns);
            record(&entry.served(Some(done_ns)));
            self.classes[number].source.answered(done_ns, ask.client);
            self.set_source(number);
            return Ok(());
        }
        let index = match self.unused.pop() {
            Some(index) => {
                self.pending[index as usize] = entry;
                index
            }
            None => {
                self.pending.push(entry);
                self.pending.len() as u32 - 1
            }
        };
        for (piece, at) in self.pieces.iter().zip(0u64..) {
            let request = Request {
                tag: u64::from(index) << PIECE_BITS | at,
                class,
                stream: ask.client,
                op: if ask.op == Op::Read { weir_scheduler::Op::Read } else { weir_scheduler::Op::Write },
                offset_bytes: piece.offset_bytes,
                size_bytes: piece.size_bytes,
                arrived_ns: now_ns,
                deadline_ns: ask.deadline_ns,
            };
            let head = &mut self.heads[piece.head as usize];
            head.arrive(now_ns, request);
            // A full device takes no request before its next event.
            if !head.is_full() {
                self.unfed.push(piece.head);
            }
        }
        self.set_source(number);
        Ok(())
    }

    /// Puts the pieces of a request into `self.pieces`, without those in the cache.
    fn divide(&mut self, number: usize, ask: &Ask) -> Result<(), String> {
        self.pieces.clear();
        let layout = &self.classes[number].layout;
        let Some(file) = layout.files.get(ask.file as usize) else {
            return Err(format!("unknown file (expected below {})", layout.files.len()));
        };
        let end = ask.offset_bytes.checked_add(ask.size_bytes).filter(|end| *end <= file.size_bytes);
        let Some(end) = end.filter(|end| *end > ask.offset_bytes) else {
            return Err(format!(
                "the file has {} bytes, expected a request of at least 1 of them",
                file.size_bytes
            ));
        };
        let (from, to) = (file.start_bytes + ask.offset_bytes, file.start_bytes + end);
        match &mut self.caches[number] {
            None => layout.pieces(from, to, &mut self.pieces),
            Some(cache) => {
                let unit = layout.stripe_unit_bytes;
                let gap = cache.gaps[ask.file as usize];
                let mut at = from;
                while at < to {
                    let next = ((at / unit + 1) * unit).min(to);
                    let held = cache.units.request((at / unit - gap) as u32);
                    if ask.op == Op::Write {
                        layout.pieces(at, next, &mut self.pieces);
                    } else if held {
                        self.outcome.cache_hits += 1;
                    } else {
                        self.outcome.cache_misses += 1;
                        layout.pieces(at, next, &mut self.pieces);
                    }
                    at = next;
                }
            }
        }
        if self.pieces.len() >= 1 << PIECE_BITS {
            return Err("too many stripe units in one request".to_owned());
        }
        Ok(())
    }

    fn saturation(&self, now_ns: u64) -> Option<Saturation> {
        let (head, longest) = self
            .heads
            .iter()
            .zip(0..)
            .map(|(head, number)| (number, head))
            .max_by_key(|(number, head)| (head.waiting(), std::cmp::Reverse(*number)))?;
        Some(Saturation { head, since_ns: longest.clear_ns(), at_ns: now_ns })
    }

    /// Reports unanswered requests in the order of their numbers.
    fn leave_the_rest(&mut self, record: &mut dyn FnMut(&Served)) {
        let mut answered = vec![false; self.pending.len()];
        for index in &self.unused {
            answered[*index as usize] = true;
        }
        for (entry, answered) in self.pending.iter().zip(answered) {
            if !answered {
                record(&entry.served(None));
            }
        }
    }
}

impl Server<Model> {
    /// As [`run`](Self::run). It is compiled here, where the compiler sees the devices too: callers of `run` compile it without
    /// their bodies.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    #[inline(never)]
    pub fn simulate(self, limits: Limits, record: &mut dyn FnMut(&Served)) -> Result<Outcome, ServerError> {
        self.run(limits, record)
    }
}

fn refused(class: ClassId, ask: &Ask, problem: String) -> ServerError {
    let Ask { file, offset_bytes, size_bytes, .. } = *ask;
    ServerError::Ask { class, file, offset_bytes, size_bytes, problem }
}
