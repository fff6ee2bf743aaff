//! The workload specification: `workloads/NAME.yml`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{ALIGNMENT_BYTES, MOST_CLOSED_SIZES};
use crate::recording::Recording;
use crate::server::ServerDay;
use crate::target::Targets;

/// A recipe for requests.
///
/// Each client of a class follows the recipe on its own; a class with ten clients has ten times the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name: the file's name without `.yml`.
    pub name: String,
    /// Description in one sentence.
    pub description: String,
    /// Source of its parameters: paper and section, or trace.
    pub source: String,
    /// Arrivals: when a client sends requests.
    pub arrivals: Arrivals,
    /// Multiplies all times of the arrivals (Shenoy's S): below 1 the same requests come sooner.
    #[serde(default = "one")]
    pub time_scale: f64,
    /// The requested files. On a raw device they are consecutive.
    pub files: Files,
    /// Sizes of requests.
    pub sizes: Sizes,
    /// Where in a file a request falls.
    pub access: Access,
    /// Share of requests that read; the rest write.
    #[serde(default = "one")]
    pub read_share: f64,
    /// When an answer is worthless; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// Requests are cut at multiples of this many bytes within a file, and widened to them;
    /// absent: one request however large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Requests begin and end at multiples of this many bytes: 512, or a multiple of 4096. With 512, a disk of larger
    /// sectors widens them.
    #[serde(default = "page")]
    pub alignment_bytes: u64,
    /// Target statistics of the requests; `weir workload calibrate` checks them. Not part of a run: a class in a study
    /// may override the fields that they depend on.
    #[serde(default, skip_serializing)]
    pub targets: Option<Targets>,
}

fn one() -> f64 {
    1.0
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(given: &bool) -> bool {
    !*given
}

fn page() -> u64 {
    ALIGNMENT_BYTES
}

/// Arrivals: when a client sends requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Arrivals {
    /// Open loop: exponential gaps.
    #[serde(rename = "poisson")]
    Poisson {
        /// Mean requests per second of one client.
        rate_per_s: f64,
    },
    /// Open loop: equal gaps.
    #[serde(rename = "periodic")]
    Periodic {
        /// Gap between requests, in ms.
        interval_ms: f64,
        /// Whether all clients begin together; otherwise each has its own phase.
        #[serde(default, skip_serializing_if = "is_false")]
        in_step: bool,
    },
    /// Open loop: in each round a client requests the frames of the next round.
    #[serde(rename = "rounds")]
    Rounds {
        /// Length of a round, in ms.
        round_ms: f64,
        /// Whether the rounds of all clients begin together, as in a server with rounds; otherwise each client has its
        /// own phase.
        #[serde(default)]
        in_step: bool,
    },
    /// Open loop: periods of exponential gaps and of silence, both of bounded Pareto length. Many such clients
    /// together are self-similar (Willinger et al., IEEE/ACM ToN 5(1), 1997).
    #[serde(rename = "on_off")]
    OnOff {
        /// Mean requests per second within a period.
        rate_per_s: f64,
        /// Length of a period of requests.
        on: ParetoTime,
        /// Length of a silence.
        off: ParetoTime,
    },
    /// Open loop: a Markov-modulated Poisson process. It stays in a state for an exponential time and leaves it
    /// for one of the others in proportion to their weights.
    #[serde(rename = "mmpp")]
    Mmpp {
        /// The states, at least two.
        states: Vec<MmppState>,
    },
    /// Open loop: the disks of a server over the day; each file is a disk and each client a server.
    #[serde(rename = "server_day")]
    ServerDay(Box<ServerDay>),
    /// Open loop: when the requests of a trace came. Sizes and access are `recorded` as well.
    #[serde(rename = "recorded")]
    Recorded(Box<Recording>),
    /// Closed loop: a client keeps `depth` requests outstanding.
    #[serde(rename = "closed")]
    Closed {
        /// Requests outstanding per client.
        depth: u32,
        /// Pause between a completion and the next request, in microseconds.
        #[serde(default)]
        think_us: u64,
        /// When the clients begin, in seconds after the run does.
        #[serde(default, skip_serializing_if = "is_zero")]
        start_s: f64,
        /// Maximum requests per second of one client: the n-th is not sent before n / `rate_per_s` after the first; a
        /// late one is sent as soon as an answer permits it. Absent: no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate_per_s: Option<f64>,
    },
}

/// A bounded Pareto distribution of times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParetoTime {
    /// The exponent; between 1 and 2 for self-similar traffic. 0 is uniform in the logarithm.
    pub shape: f64,
    /// Shortest, in seconds.
    pub min_s: f64,
    /// Longest, in seconds.
    pub max_s: f64,
}

/// A state of a Markov-modulated Poisson process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MmppState {
    /// Mean requests per second of one client; 0 for silence.
    pub rate_per_s: f64,
    /// Mean stay, in seconds.
    pub stay_s: f64,
    /// How often it is entered, relative to the others.
    #[serde(default = "one")]
    pub weight: f64,
}

/// The files of a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Number of files.
    pub count: u32,
    /// Bytes per file, drawn once per run; rounded up to the alignment of direct I/O.
    pub size: Distribution,
    /// Sizes are one draw from each of `count` equal slices of the distribution: even few files have its mean and its
    /// largest values. Otherwise draws are independent.
    #[serde(default)]
    pub stratified: bool,
    /// Popularity of the files.
    #[serde(default)]
    pub popularity: Popularity,
}

/// Popularity of the files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Popularity {
    /// Each equally often.
    #[default]
    Uniform,
    /// The k-th most popular with probability proportional to k^-alpha; ranks are dealt to files at random.
    Zipf {
        /// The exponent; 0 is uniform.
        alpha: f64,
    },
    /// Each file once, in random order, before any is repeated: cached files are not requested. The files are divided
    /// among the clients.
    InTurn,
}

/// A distribution of sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Distribution {
    /// Always the same.
    Fixed {
        /// The size.
        bytes: u64,
    },
    /// Each size from the smallest to the largest equally often.
    Uniform {
        /// Smallest.
        min_bytes: u64,
        /// Largest.
        max_bytes: u64,
    },
    /// Normal within the limits.
    Normal {
        /// Mean before the limits.
        mean_bytes: f64,
        /// Standard deviation before the limits.
        std_bytes: f64,
        /// Smallest.
        min_bytes: u64,
        /// Largest.
        max_bytes: u64,
    },
    /// Lognormal within the limits.
    Lognormal {
        /// Median before the limits.
        median_bytes: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// Smallest.
        min_bytes: u64,
        /// Largest.
        max_bytes: u64,
    },
    /// Pareto between the limits.
    Pareto {
        /// The exponent. 0 is uniform in the logarithm.
        shape: f64,
        /// Smallest.
        min_bytes: u64,
        /// Largest.
        max_bytes: u64,
    },
    /// One of several.
    Mixture(Vec<Part>),
}

/// One distribution of a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// How often it is drawn from; all shares add up to 1.
    pub share: f64,
    /// The distribution.
    pub of: Distribution,
}

/// Sizes of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Sizes {
    /// The whole file.
    WholeFile,
    /// An amount drawn for each request; cut at the end of the file.
    Drawn(Distribution),
    /// Files as programs access them: whole, in part from one place on, or a piece of them.
    Accesses {
        /// How they are read.
        read: AccessMix,
        /// How they are written.
        write: AccessMix,
        /// Size of a piece; cut at the end of the file.
        piece: Distribution,
    },
    /// The frames of a video that fall into a round.
    Frames(Frames),
    /// As the trace of the arrivals has it.
    Recorded,
}

/// How files are accessed: shares of the accesses, which add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessMix {
    /// From end to end.
    pub whole_file: f64,
    /// From one place to another, both anywhere.
    pub part: f64,
    /// A piece, anywhere.
    pub piece: f64,
}

/// A variable-bit-rate video.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// Frames per second.
    pub rate_hz: f64,
    /// Source of frame sizes.
    pub source: FrameSource,
}

/// Source of frame sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum FrameSource {
    /// A recorded sequence: one whole number a line, in display order. Each client starts at a random frame and repeats
    /// the sequence.
    File {
        /// The file; relative to the workload's own folder.
        path: PathBuf,
        /// Unit of the numbers.
        unit: FrameUnit,
    },
    /// A synthetic sequence, calibrated to published figures.
    Synthetic(SyntheticFrames),
    /// Several of them: each client watches one, all equally likely.
    Movies(Vec<SyntheticFrames>),
}

/// Unit of the numbers in a frame-size file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrameUnit {
    /// Bits per frame.
    Bits,
    /// Bytes per frame.
    Bytes,
}

/// A synthetic frame-size sequence.
///
/// The size of frame n is `mean_bytes * t(n) * s(n) * e(n)`: t is its type's share within the group of pictures (unit
/// mean over the group), s the scene's activity and e the frame's own, both with unit mean. The mean is exact in
/// expectation, and exact for each movie with `length_frames`; the coefficient of variation follows from `(1 + c_t^2)(1 +
/// scene_cov^2)(1 + frame_cov^2) = 1 + cov^2`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticFrames {
    /// Mean frame size, in units of `bytes_per_unit`.
    pub mean_bytes: f64,
    /// Bytes in a unit of `mean_bytes`: 0.125 if it counts bits.
    #[serde(default = "one")]
    pub bytes_per_unit: f64,
    /// Group of pictures, such as `IBBPBBPBBPBB`.
    pub group: String,
    /// Sizes of I, P and B frames relative to each other.
    pub ratio_i_p_b: [f64; 3],
    /// Coefficient of variation of frames of one type within a scene.
    pub frame_cov: f64,
    /// Coefficient of variation between scenes.
    pub scene_cov: f64,
    /// Mean length of a scene, in seconds; under `autoregressive` the time over which correlation falls to 1/e.
    pub scene_mean_s: f64,
    /// Distribution of the scenes' and the frames' own factors.
    #[serde(default)]
    pub marginal: Marginal,
    /// How activity moves from frame to frame.
    #[serde(default)]
    pub correlation: Correlation,
    /// Frames of the movie, generated once for each run with an exact mean; clients start at a random frame and repeat
    /// it. Absent: each client has its own endless sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_frames: Option<u32>,
}

/// Distribution of a factor with unit mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Marginal {
    /// Lognormal.
    #[default]
    Lognormal,
    /// Gamma.
    Gamma,
}

/// How a video's activity moves from frame to frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Correlation {
    /// A Markov chain: scenes of geometric length, each with its own activity.
    #[default]
    Scenes,
    /// The logarithm of the activity is a first-order autoregressive process; it has no cuts.
    Autoregressive,
}

/// Where in a file a request falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Anywhere, aligned.
    Random,
    /// Behind the client's last request in the same file, from a random start, going round.
    Sequential,
    /// As the trace of the arrivals has it.
    Recorded,
}

/// When an answer is worthless.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Deadline {
    /// At the end of the round of the request.
    RoundEnd,
    /// This time after the request.
    After {
        /// In ms.
        ms: f64,
    },
}

impl Workload {
    /// Closed loop: whether the next request waits for the last answer; fio executes such a workload.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self.arrivals, Arrivals::Closed { .. })
    }

    /// Request sizes of a closed loop and the share of each in per cent, as fio's `bssplit` has them; none of other
    /// distributions.
    pub fn closed_loop_sizes(&self) -> Option<Vec<(u64, u32)>> {
        let fixed = |of: &Distribution| match of {
            Distribution::Fixed { bytes } => Some(*bytes),
            _ => None,
        };
        let Sizes::Drawn(drawn) = &self.sizes else { return None };
        let Distribution::Mixture(parts) = drawn else { return Some(vec![(fixed(drawn)?, 100)]) };
        let part = |part: &Part| {
            let per_cent = (part.share * 100.0).round();
            let is_whole = (1.0..=100.0).contains(&per_cent) && (part.share * 100.0 - per_cent).abs() < 1e-6;
            Some((fixed(&part.of)?, per_cent as u32)).filter(|_| is_whole)
        };
        let sizes = parts.iter().map(part).collect::<Option<Vec<_>>>()?;
        (sizes.len() <= MOST_CLOSED_SIZES).then_some(sizes)
    }

    /// Whether its requests may write.
    pub fn may_write(&self) -> bool {
        self.read_share < 1.0 || matches!(self.arrivals, Arrivals::Recorded(_))
    }
}
