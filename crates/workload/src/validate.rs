//! Validation of a workload specification, beyond its syntax.

use weir_specs::{Document, Problem, Problems};

use crate::limits::{
    ALIGNMENT_BYTES, LARGEST_FILE_BYTES, LARGEST_REQUEST_BYTES, MOST_BLOCKS_PER_REQUEST, MOST_CLOSED_SIZES,
    MOST_FILE_BYTES, MOST_FILES, MOST_FRAMES_PER_ROUND,
};
use crate::spec::{
    Access, AccessMix, Arrivals, Correlation, Deadline, Distribution, FrameSource, Marginal, MmppState,
    ParetoTime, Popularity, Sizes, Workload,
};
use crate::{recording, target, validate_server};

/// Smallest gap between a client's requests in a replay.
const HIGHEST_RATE_PER_S: f64 = 1e6;
/// Least mean number of requests in a busy period, which bounds the search for the next request.
const FEWEST_PER_PERIOD: f64 = 1e-3;
/// Frames of a movie that are kept in memory: four hours and a half at 60 a second.
const MOST_FRAMES: f64 = 1e6;
/// Tolerance of a sum of shares.
const ROUNDING: f64 = 1e-6;

/// Checks meaning; `prefix` is the path of the workload within the document.
pub(crate) fn check(workload: &Workload, document: &Document, prefix: &str) -> Problems {
    let mut check = Check { document, prefix, problems: Problems::default() };
    check.workload(workload);
    check.problems
}

struct Check<'a> {
    document: &'a Document,
    prefix: &'a str,
    problems: Problems,
}

impl Check<'_> {
    fn problem(&mut self, field: &str, message: impl Into<String>) {
        let field =
            if self.prefix.is_empty() { field.to_owned() } else { format!("{}.{field}", self.prefix) };
        let problem: Problem = self.document.problem(field, message);
        self.problems.0.push(problem);
    }

    fn within(&mut self, field: &str, value: f64, low: f64, high: f64) {
        if !(low..=high).contains(&value) {
            self.problem(field, format!("is {value}; it must be from {low} to {high}"));
        }
    }

    fn workload(&mut self, workload: &Workload) {
        self.arrivals(workload);
        if workload.files.count == 0 {
            self.problem("files.count", "is 0; a workload needs at least one file");
        }
        self.limits(workload);
        self.distribution("files.size", &workload.files.size);
        if let Popularity::Zipf { alpha } = workload.files.popularity {
            self.within("files.popularity.zipf.alpha", alpha, 0.0, 10.0);
        }
        let alignment = workload.alignment_bytes;
        if alignment != 512
            && (alignment == 0
                || !alignment.is_multiple_of(ALIGNMENT_BYTES)
                || alignment > LARGEST_REQUEST_BYTES)
        {
            self.problem(
                "alignment_bytes",
                format!(
                    "is {alignment}; it must be 512, or a multiple of {ALIGNMENT_BYTES} and at most {LARGEST_REQUEST_BYTES}"
                ),
            );
        }
        match &workload.sizes {
            Sizes::WholeFile => {
                if workload.access == Access::Random && workload.block_bytes.is_none() {
                    self.largest_request("files.size", workload.files.size.largest());
                }
            }
            Sizes::Drawn(sizes) => {
                self.distribution("sizes.drawn", sizes);
                if workload.block_bytes.is_none() {
                    self.largest_request("sizes.drawn", sizes.largest());
                }
            }
            Sizes::Accesses { read, write, piece } => {
                self.mix("sizes.accesses.read", read);
                self.mix("sizes.accesses.write", write);
                self.distribution("sizes.accesses.piece", piece);
                if workload.block_bytes.is_none() {
                    self.largest_request("files.size", workload.files.size.largest());
                }
                if workload.access != Access::Random {
                    self.problem(
                        "access",
                        "is sequential, but accesses say themselves where they fall: use random",
                    );
                }
            }
            Sizes::Recorded => {
                if recording::of(workload).is_none() {
                    self.problem(
                        "sizes",
                        "is recorded, but the arrivals are not: use arrivals: {recorded: ...}",
                    );
                }
            }
            Sizes::Frames(frames) => {
                self.within("sizes.frames.rate_hz", frames.rate_hz, 0.001, 1e4);
                let source = "sizes.frames.source";
                match &frames.source {
                    FrameSource::Synthetic(model) => self.synthetic(&format!("{source}.synthetic"), model),
                    FrameSource::Movies(movies) => {
                        if movies.is_empty() {
                            self.problem(
                                &format!("{source}.movies"),
                                "is empty; it needs at least one movie",
                            );
                        }
                        for (index, movie) in movies.iter().enumerate() {
                            self.synthetic(&format!("{source}.movies[{index}]"), movie);
                        }
                    }
                    FrameSource::File { .. } => {}
                }
                if workload.access != Access::Sequential {
                    self.problem(
                        "access",
                        "is random; the frames of a video are read in sequence: use sequential",
                    );
                }
                if workload.block_bytes.is_none() {
                    self.problem(
                        "block_bytes",
                        "is missing; frames are fetched in blocks: give their size, such as 65536",
                    );
                }
            }
        }
        if workload.access == Access::Recorded && recording::of(workload).is_none() {
            self.problem("access", "is recorded, but the arrivals are not: use arrivals: {recorded: ...}");
        }
        self.within("read_share", workload.read_share, 0.0, 1.0);
        match workload.deadline {
            Some(Deadline::RoundEnd) if !matches!(workload.arrivals, Arrivals::Rounds { .. }) => {
                self.problem("deadline", "is round_end, but arrivals are not rounds: use after: {ms: ...}");
            }
            Some(Deadline::After { ms }) => self.within("deadline.after.ms", ms, 0.001, 1e9),
            _ => {}
        }
        if let Some(block) = workload.block_bytes
            && (block == 0 || block % ALIGNMENT_BYTES != 0 || block > LARGEST_REQUEST_BYTES)
        {
            self.problem(
                "block_bytes",
                format!("is {block}; it must be a multiple of {ALIGNMENT_BYTES} and at most {LARGEST_REQUEST_BYTES}"),
            );
        }
        if workload.is_closed_loop() {
            self.closed_loop(workload);
        }
        if let Some(targets) = &workload.targets {
            for (field, message) in target::check(workload, targets) {
                self.problem(&field, message);
            }
        }
    }

    /// Files and requests whose bookkeeping would not fit into memory.
    fn limits(&mut self, workload: &Workload) {
        let files = &workload.files;
        if files.count > MOST_FILES {
            let message =
                format!("is {}; a class has at most {MOST_FILES} files: use fewer, larger ones", files.count);
            self.problem("files.count", message);
        }
        self.no_larger("files.size", files.size.largest(), LARGEST_FILE_BYTES);
        let whole_bytes = f64::from(files.count) * files.size.largest() as f64;
        if whole_bytes > MOST_FILE_BYTES {
            let message = format!(
                "and files.count allow {whole_bytes:.3e} bytes in all; a class has at most {MOST_FILE_BYTES:.3e}: \
                 use fewer or smaller files"
            );
            self.problem("files.size", message);
        }
        match &workload.sizes {
            Sizes::Drawn(sizes) => self.no_larger("sizes.drawn", sizes.largest(), LARGEST_FILE_BYTES),
            Sizes::Accesses { piece, .. } => {
                self.no_larger("sizes.accesses.piece", piece.largest(), LARGEST_FILE_BYTES);
            }
            Sizes::WholeFile | Sizes::Frames(_) | Sizes::Recorded => {}
        }
        self.blocks(workload);
        if let (Sizes::Frames(frames), Arrivals::Rounds { round_ms, .. }) =
            (&workload.sizes, &workload.arrivals)
            && frames.rate_hz * round_ms / 1e3 > MOST_FRAMES_PER_ROUND
        {
            let message = format!(
                "is {round_ms}, in which {:.3e} frames fall; a round has at most {MOST_FRAMES_PER_ROUND:.0e}: \
                 use a shorter round or a lower rate_hz",
                frames.rate_hz * round_ms / 1e3
            );
            self.problem("arrivals.rounds.round_ms", message);
        }
    }

    /// A request is at most its file, and each of its blocks is a row.
    fn blocks(&mut self, workload: &Workload) {
        let Some(block_bytes) = workload.block_bytes.filter(|bytes| *bytes > 0) else { return };
        let largest = workload.largest_request_bytes();
        if largest / block_bytes > MOST_BLOCKS_PER_REQUEST {
            let message = format!(
                "is {block_bytes}, in which a request of {largest} bytes is cut into {}; at most \
                 {MOST_BLOCKS_PER_REQUEST} are made: use larger blocks or smaller files",
                largest / block_bytes
            );
            self.problem("block_bytes", message);
        }
    }

    fn no_larger(&mut self, field: &str, found: u64, limit: u64) {
        if found > limit {
            self.problem(
                field,
                format!("allows {found} bytes; at most {limit} are allowed: lower its largest"),
            );
        }
    }

    fn time_scale(&mut self, workload: &Workload) {
        self.within("time_scale", workload.time_scale, 1e-6, 1e6);
        let has_its_own = matches!(
            workload.arrivals,
            Arrivals::Rounds { .. }
                | Arrivals::ServerDay(_)
                | Arrivals::Recorded(_)
                | Arrivals::Closed { .. }
        );
        if workload.time_scale != 1.0 && has_its_own {
            self.problem(
                "time_scale",
                "is for poisson, periodic, on_off and mmpp: a recording has a time_scale of its own, rounds and closed loops a length",
            );
        }
    }

    fn arrivals(&mut self, workload: &Workload) {
        self.time_scale(workload);
        match &workload.arrivals {
            Arrivals::Poisson { rate_per_s } => {
                self.within("arrivals.poisson.rate_per_s", *rate_per_s, 1e-6, HIGHEST_RATE_PER_S);
            }
            Arrivals::Periodic { interval_ms, .. } => {
                self.within("arrivals.periodic.interval_ms", *interval_ms, 0.001, 1e9);
            }
            Arrivals::Rounds { round_ms, .. } => self.within("arrivals.rounds.round_ms", *round_ms, 1.0, 1e9),
            Arrivals::OnOff { rate_per_s, on, off } => {
                self.within("arrivals.on_off.rate_per_s", *rate_per_s, 1e-6, HIGHEST_RATE_PER_S);
                self.pareto_time("arrivals.on_off.on", on);
                self.pareto_time("arrivals.on_off.off", off);
                if rate_per_s * on.mean_s() < FEWEST_PER_PERIOD {
                    let message = format!(
                        "brings {} requests in a mean period; it must bring {FEWEST_PER_PERIOD} at least",
                        rate_per_s * on.mean_s()
                    );
                    self.problem("arrivals.on_off.rate_per_s", message);
                }
            }
            Arrivals::Mmpp { states } => self.mmpp(states),
            Arrivals::ServerDay(day) => {
                for (field, message) in validate_server::check(workload, day) {
                    self.problem(&field, message);
                }
            }
            Arrivals::Recorded(recorded) => {
                for (field, message) in recording::check(workload, recorded) {
                    self.problem(&field, message);
                }
            }
            Arrivals::Closed { depth, start_s, rate_per_s, .. } => {
                self.within("arrivals.closed.depth", f64::from(*depth), 1.0, 4096.0);
                self.within("arrivals.closed.start_s", *start_s, 0.0, 86_400.0);
                if let Some(rate_per_s) = rate_per_s {
                    self.within("arrivals.closed.rate_per_s", *rate_per_s, 1e-3, HIGHEST_RATE_PER_S);
                }
            }
        }
    }

    fn pareto_time(&mut self, field: &str, time: &ParetoTime) {
        self.within(&format!("{field}.shape"), time.shape, 0.0, 10.0);
        self.within(&format!("{field}.min_s"), time.min_s, 1e-6, 1e6);
        self.within(&format!("{field}.max_s"), time.max_s, time.min_s, 1e6);
    }

    fn mmpp(&mut self, states: &[MmppState]) {
        let field = "arrivals.mmpp.states";
        if states.len() < 2 {
            self.problem(field, format!("has {}; there must be two at least, or use poisson", states.len()));
        }
        for (at, state) in states.iter().enumerate() {
            self.within(&format!("{field}.{at}.rate_per_s"), state.rate_per_s, 0.0, HIGHEST_RATE_PER_S);
            self.within(&format!("{field}.{at}.stay_s"), state.stay_s, 1e-6, 1e6);
            self.within(&format!("{field}.{at}.weight"), state.weight, 1e-3, 1e3);
        }
        if states.iter().all(|state| state.rate_per_s * state.stay_s < FEWEST_PER_PERIOD) {
            self.problem(
                field,
                format!("bring less than {FEWEST_PER_PERIOD} requests a stay; one of them must bring that at least"),
            );
        }
    }

    fn mix(&mut self, field: &str, mix: &AccessMix) {
        let shares = [("whole_file", mix.whole_file), ("part", mix.part), ("piece", mix.piece)];
        shares.iter().for_each(|(name, share)| self.within(&format!("{field}.{name}"), *share, 0.0, 1.0));
        self.sum_of_shares(field, shares.iter().map(|(_, share)| share).sum());
    }

    fn sum_of_shares(&mut self, field: &str, sum: f64) {
        if (sum - 1.0).abs() > ROUNDING {
            self.problem(field, format!("has shares that add up to {sum}; they must add up to 1"));
        }
    }

    fn distribution(&mut self, field: &str, sizes: &Distribution) {
        let (min, max) = match sizes {
            Distribution::Mixture(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    self.within(&format!("{field}.mixture.{at}.share"), part.share, 0.0, 1.0);
                    self.distribution(&format!("{field}.mixture.{at}.of"), &part.of);
                }
                return self
                    .sum_of_shares(&format!("{field}.mixture"), parts.iter().map(|part| part.share).sum());
            }
            Distribution::Pareto { shape, min_bytes, max_bytes } => {
                self.within(&format!("{field}.pareto.shape"), *shape, 0.0, 10.0);
                (*min_bytes, *max_bytes)
            }
            Distribution::Fixed { bytes } => {
                if *bytes == 0 {
                    self.problem(&format!("{field}.fixed.bytes"), "is 0; it must be at least 1");
                }
                return;
            }
            Distribution::Uniform { min_bytes, max_bytes } => (*min_bytes, *max_bytes),
            Distribution::Normal { mean_bytes, std_bytes, min_bytes, max_bytes } => {
                self.within(
                    &format!("{field}.normal.mean_bytes"),
                    *mean_bytes,
                    *min_bytes as f64,
                    *max_bytes as f64,
                );
                self.within(&format!("{field}.normal.std_bytes"), *std_bytes, 0.0, 1e15);
                (*min_bytes, *max_bytes)
            }
            Distribution::Lognormal { median_bytes, sigma, min_bytes, max_bytes } => {
                self.within(
                    &format!("{field}.lognormal.median_bytes"),
                    *median_bytes,
                    (*min_bytes).max(1) as f64,
                    *max_bytes as f64,
                );
                self.within(&format!("{field}.lognormal.sigma"), *sigma, 0.0, 10.0);
                (*min_bytes, *max_bytes)
            }
        };
        if min == 0 || min > max {
            self.problem(field, format!("has limits {min} to {max}; they must be at least 1 and in order"));
        }
    }

    fn largest_request(&mut self, field: &str, bytes: u64) {
        if bytes > LARGEST_REQUEST_BYTES {
            self.problem(
                field,
                format!(
                    "allows requests of {bytes} bytes, more than {LARGEST_REQUEST_BYTES} in one piece: \
                     lower the limit or give block_bytes"
                ),
            );
        }
    }

    fn synthetic(&mut self, field: &str, model: &crate::spec::SyntheticFrames) {
        self.within(&format!("{field}.mean_bytes"), model.mean_bytes, 1.0, 1e9);
        self.within(&format!("{field}.frame_cov"), model.frame_cov, 0.0, 10.0);
        self.within(&format!("{field}.scene_cov"), model.scene_cov, 0.0, 10.0);
        self.within(&format!("{field}.scene_mean_s"), model.scene_mean_s, 0.001, 1e6);
        self.within(&format!("{field}.bytes_per_unit"), model.bytes_per_unit, 1e-6, 1e6);
        if let Some(length) = model.length_frames {
            self.within(&format!("{field}.length_frames"), f64::from(length), 1.0, MOST_FRAMES);
        }
        if model.marginal == Marginal::Gamma && model.correlation == Correlation::Autoregressive {
            self.problem(
                &format!("{field}.marginal"),
                "is gamma; an autoregressive activity is lognormal: use lognormal, or correlation: scenes",
            );
        }
        if model.group.is_empty() || !model.group.chars().all(|kind| "IPB".contains(kind)) {
            self.problem(
                &format!("{field}.group"),
                format!(
                    "is {:?}; it must be a group of pictures of the letters I, P and B, such as IBBPBBPBBPBB",
                    model.group
                ),
            );
        }
        if !model.ratio_i_p_b.iter().all(|ratio| *ratio > 0.0 && ratio.is_finite()) {
            self.problem(&format!("{field}.ratio_i_p_b"), "must be three numbers above 0");
        }
    }

    fn closed_loop(&mut self, workload: &Workload) {
        match workload.closed_loop_sizes() {
            None => self.problem(
                "sizes",
                format!(
                    "a closed loop is carried out by fio: use drawn: {{fixed: ...}}, or drawn: {{mixture: [...]}} of at most \
                     {MOST_CLOSED_SIZES} fixed sizes whose shares are whole per cents"
                ),
            ),
            Some(sizes) => {
                let smallest = sizes.iter().map(|(bytes, _)| *bytes).min().unwrap_or(1).max(1);
                if let Some((bytes, _)) = sizes.iter().find(|(bytes, _)| bytes % smallest != 0) {
                    self.problem(
                        "sizes.drawn.mixture",
                        format!(
                            "has requests of {bytes} bytes, no multiple of the smallest, {smallest}; fio aligns offsets to it: \
                             use multiples"
                        ),
                    );
                }
            }
        }
        if workload.files.count != 1 {
            self.problem("files.count", "a closed loop works within one file: use 1");
        }
        if workload.block_bytes.is_some() {
            self.problem("block_bytes", "does not apply to a closed loop: remove it");
        }
        if workload.deadline == Some(Deadline::RoundEnd) {
            self.problem("deadline", "a closed loop has no rounds: use after: {ms: ...}");
        }
    }
}
