//! The workload specification: `workloads/specs/NAME.yml`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A recipe for requests.
///
/// Each client of a class follows the recipe on its own; a class with ten clients has ten times the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name: the file's name without `.yml`.
    pub name: String,
    /// What it stands for, in a sentence.
    pub description: String,
    /// Where its parameters come from: paper and section, or trace.
    pub source: String,
    /// When a client asks.
    pub arrivals: Arrivals,
    /// The files that are asked for. On a raw device they lie one behind the other.
    pub files: Files,
    /// How much a request asks for.
    pub sizes: Sizes,
    /// Where in a file a request falls.
    pub access: Access,
    /// Share of requests that read; the rest write.
    #[serde(default = "all")]
    pub read_share: f64,
    /// When an answer is worthless; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// Requests are cut at multiples of this many bytes within a file, and widened to them;
    /// absent: one request however large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
}

fn all() -> f64 {
    1.0
}

/// When a client asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Arrivals {
    /// Open loop: exponential gaps.
    #[serde(rename = "poisson")]
    Poisson {
        /// Mean requests per second of one client.
        rate_per_s: f64,
    },
    /// Open loop: equal gaps, each client with its own phase.
    #[serde(rename = "periodic")]
    Periodic {
        /// Gap between requests, in ms.
        interval_ms: f64,
    },
    /// Open loop: in each round a client asks for the frames of the next, each client with its own phase.
    #[serde(rename = "rounds")]
    Rounds {
        /// Length of a round, in ms.
        round_ms: f64,
    },
    /// Closed loop: a client keeps `depth` requests outstanding.
    #[serde(rename = "closed")]
    Closed {
        /// Requests outstanding per client.
        depth: u32,
        /// Pause between a completion and the next request, in microseconds.
        #[serde(default)]
        think_us: u64,
    },
}

/// The files of a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Number of files.
    pub count: u32,
    /// Bytes per file, drawn once per run; rounded up to the alignment of direct I/O.
    pub size: Distribution,
    /// How often each is asked for.
    #[serde(default)]
    pub popularity: Popularity,
}

/// How often each file is asked for.
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
    /// Normal, redrawn until it falls within the limits.
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
    /// Lognormal, redrawn until it falls within the limits.
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
}

/// How much a request asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Sizes {
    /// The whole file.
    WholeFile,
    /// An amount drawn for each request; cut at the end of the file.
    Drawn(Distribution),
    /// The frames of a video that fall into a round.
    Frames(Frames),
}

/// A variable-bit-rate video.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// Frames per second.
    pub rate_hz: f64,
    /// Where frame sizes come from.
    pub source: FrameSource,
}

/// Where frame sizes come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum FrameSource {
    /// A recorded sequence: one whole number a line, in display order. Each client starts at a random
    /// frame and goes round.
    File {
        /// The file; relative to the workload's own folder.
        path: PathBuf,
        /// What the numbers count.
        unit: FrameUnit,
    },
    /// A stand-in calibrated to published figures.
    Synthetic(SyntheticFrames),
}

/// What the numbers of a frame-size file count.
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
/// The size of frame n is `mean_bytes * t(n) * s(n) * e(n)`: t is its type's share within the group of
/// pictures (unit mean over the group), s the scene's activity and e the frame's own, both lognormal with
/// unit mean. Scene lengths are geometric. The mean is exact in expectation; the coefficient of variation
/// follows from `(1 + c_t^2)(1 + scene_cov^2)(1 + frame_cov^2) = 1 + cov^2`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticFrames {
    /// Mean frame size.
    pub mean_bytes: f64,
    /// Group of pictures, such as `IBBPBBPBBPBB`.
    pub group: String,
    /// Sizes of I, P and B frames relative to each other.
    pub ratio_i_p_b: [f64; 3],
    /// Coefficient of variation of frames of one type within a scene.
    pub frame_cov: f64,
    /// Coefficient of variation between scenes.
    pub scene_cov: f64,
    /// Mean length of a scene, in seconds.
    pub scene_mean_s: f64,
}

/// Where in a file a request falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Anywhere, aligned.
    Random,
    /// Behind the client's last request in the same file, from a random start, going round.
    Sequential,
}

/// When an answer is worthless.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Deadline {
    /// At the end of the round in which it was asked.
    RoundEnd,
    /// This long after it was asked.
    After {
        /// In ms.
        ms: f64,
    },
}

impl Workload {
    /// Whether the next request waits for the last answer; such a workload is carried out by fio.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self.arrivals, Arrivals::Closed { .. })
    }
}
