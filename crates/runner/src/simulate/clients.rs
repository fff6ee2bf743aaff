//! Clients of a class in virtual time: open loops and closed loops.

use std::path::Path;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use weir_simulator::Op;
use weir_simulator::server::{Ask, ClosedLoop, Source};
use weir_study::{Run, RunClass};
use weir_workload::{Access, Arrivals, Draw, FileSet, Stream, StreamOptions, Workload};

use crate::Error;

/// Open-loop clients: they send at intended times.
struct Open {
    stream: Stream,
    next: Option<Ask>,
}

impl Source for Open {
    fn next_ns(&self) -> Option<u64> {
        self.next.map(|ask| ask.intended_ns)
    }

    fn take(&mut self) -> Option<Ask> {
        let next = self.stream.draw().map(ask);
        std::mem::replace(&mut self.next, next)
    }
}

fn ask(draw: Draw) -> Ask {
    let ns = |at_ns: i64| u64::try_from(at_ns).unwrap_or(0);
    Ask {
        intended_ns: ns(draw.intended_ns),
        deadline_ns: draw.deadline_ns.map(ns),
        client: draw.client,
        file: draw.file,
        op: draw.op,
        offset_bytes: draw.offset_bytes,
        size_bytes: draw.size_bytes,
    }
}

/// The workload of a class.
///
/// # Errors
/// Its clients visit a site, which has no counterpart in virtual time.
pub(super) fn requests(class: &RunClass) -> Result<&Workload, Error> {
    class.recipe.requests().ok_or_else(|| {
        Error::Refused(format!(
            "class {}: sessions of a site cannot be simulated. Use testbed `device`",
            class.name
        ))
    })
}

/// Clients of a class.
///
/// # Errors
/// Its recording cannot be read, or its closed loop is of an unsupported kind.
pub(super) fn source(run: &Run, class: &RunClass, files: &FileSet) -> Result<Box<dyn Source>, Error> {
    let recipe = requests(class)?;
    if recipe.is_closed_loop() {
        return closed(run, class, files);
    }
    let options = StreamOptions {
        class: class.name.clone(),
        clients: class.clients,
        seed: run.seed,
        duration_ns: run.length_ns(),
        warmup_ns: run.warmup_ns(),
        // Paths of recordings are absolute in a plan.
        folder: Path::new("/").to_owned(),
    };
    let mut stream = Stream::new(recipe, options).map_err(Error::Refused)?;
    let next = stream.draw().map(ask);
    Ok(Box::new(Open { stream, next }))
}

/// Request sizes of a closed loop, by their shares in per cent.
struct DrawnSizes(Vec<(u64, u32)>);

impl DrawnSizes {
    fn smallest(&self) -> u64 {
        self.0.iter().map(|(bytes, _)| *bytes).min().unwrap_or(1).max(1)
    }

    /// A size of at most `most_bytes`, as fio draws it: again until it fits. The smallest always fits.
    fn draw(&self, most_bytes: u64, rng: &mut ChaCha8Rng) -> u64 {
        let fitting = || self.0.iter().filter(|(bytes, _)| *bytes <= most_bytes);
        let all: u32 = fitting().map(|(_, share)| share).sum();
        // One size needs no random number: the streams of such workloads stay as they are.
        let mut left = if self.0.len() > 1 && all > 0 { rng.random_range(0..all) } else { 0 };
        for (bytes, share) in fitting() {
            if left < *share {
                return *bytes;
            }
            left -= share;
        }
        self.smallest()
    }
}

/// Closed loops as in fio: requests of fixed sizes over all files of the class, one after the other.
fn closed(run: &Run, class: &RunClass, files: &FileSet) -> Result<Box<dyn Source>, Error> {
    let recipe = requests(class)?;
    let (Arrivals::Closed { depth, think_us, start_s, rate_per_s }, Some(sizes)) =
        (&recipe.arrivals, recipe.closed_loop_sizes().map(DrawnSizes))
    else {
        return Err(Error::Refused(format!(
            "class {}: only closed loops of fixed request sizes can be simulated",
            class.name
        )));
    };
    // Offsets are multiples of the smallest size, and a larger one is a multiple of it.
    let unit_bytes = sizes.smallest();
    let (depth, access, read_share) = (*depth, recipe.access, recipe.read_share);
    let sizes_bytes = files.sizes_bytes().to_vec();
    let places: Vec<u64> = sizes_bytes.iter().map(|size| size / unit_bytes).collect();
    let total: u64 = places.iter().sum();
    if total == 0 {
        return Err(Error::Refused(format!(
            "class {}: its files are smaller than one request of {unit_bytes} bytes",
            class.name
        )));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(run.seed);
    // A stream of random numbers for each class: FNV-1a of its name.
    rng.set_stream(class.name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    }));
    // Sequential clients begin at equally spaced offsets.
    let mut next: Vec<u64> = (0..u64::from(class.clients))
        .map(|client| client * total / u64::from(class.clients.max(1)))
        .collect();
    let draw = move |client: u32| {
        let mut place = match access {
            Access::Sequential => next[client as usize],
            Access::Random | Access::Recorded => rng.random_range(0..total),
        };
        let mut file = 0;
        while place >= places[file] {
            place -= places[file];
            file += 1;
        }
        let size_bytes = sizes.draw((places[file] - place) * unit_bytes, &mut rng);
        if access == Access::Sequential {
            let at = &mut next[client as usize];
            *at = (*at + size_bytes / unit_bytes) % total;
        }
        let op = if read_share >= 1.0 || rng.random::<f64>() < read_share { Op::Read } else { Op::Write };
        Ask {
            intended_ns: 0,
            deadline_ns: None,
            client,
            file: file as u32,
            op,
            offset_bytes: place * unit_bytes,
            size_bytes,
        }
    };
    let end_ns = u64::try_from(run.length_ns()).unwrap_or(0);
    let start_ns = (start_s * 1e9).round() as u64;
    let gap_ns = rate_per_s.map_or(0.0, |rate_per_s| 1e9 / rate_per_s);
    Ok(Box::new(
        ClosedLoop::new(class.clients, depth, think_us * 1000, end_ns, draw).starting(start_ns, gap_ns),
    ))
}
