//! Target statistics of a workload: the `targets` of its specification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_specs::one_of;

use crate::limits::MOST_WINDOWS;
use crate::spec::{Sizes, Workload};

/// Default tolerance of published figures.
const TOLERANCE: f64 = 0.15;

/// Target statistics of a workload's requests, and the setting in which they hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Targets {
    /// Number of clients.
    #[serde(default = "one")]
    pub clients: u32,
    /// Length of the stream, in seconds.
    pub duration_s: f64,
    /// The figures.
    pub figures: Vec<Target>,
}

fn one() -> u32 {
    1
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name of the statistic.
    pub statistic: String,
    /// Value in the source.
    pub value: f64,
    /// Tolerance of the mean over seeds, relative to the value; 0.15 without this and a band.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Lowest and highest acceptable mean over seeds, in place of a tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<[f64; 2]>,
    /// Source of the value.
    pub source: String,
    /// Only requests to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<u32>,
    /// Only requests of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<Operation>,
    /// Only requests intended from this time on, in seconds since the stream's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_s: Option<f64>,
    /// Only requests intended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_s: Option<f64>,
    /// Length of the windows over which requests or frames are added up, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// A limit in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_ms: Option<f64>,
    /// Service time of every request, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ms: Option<f64>,
    /// Size of a buffer that frames fill, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
}

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// A figure that can be worked out of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistic {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The field of a target that it needs, if any.
    pub needs: Option<&'static str>,
    /// Description.
    pub meaning: &'static str,
}

const fn row(
    name: &'static str,
    unit: &'static str,
    needs: Option<&'static str>,
    meaning: &'static str,
) -> Statistic {
    Statistic { name, unit, needs, meaning }
}

/// All statistics. An access is all that a client requests at one instant: one request, or several blocks.
#[rustfmt::skip]
pub const STATISTICS: &[Statistic] = &[
    row("requests", "", None, "number of requests"),
    row("requests_per_s", "1/s", None, "requests per second of the time looked at"),
    row("bytes_per_s", "B/s", None, "bytes per second of the time looked at"),
    row("mean_size_bytes", "B", None, "mean size of a request"),
    row("share_of_requests", "", None, "requests looked at, of all requests"),
    row("accesses_per_s", "1/s", None, "accesses per second of the time looked at"),
    row("read_share", "", None, "accesses that read, of all accesses"),
    row("read_byte_share", "", None, "bytes read, of all bytes"),
    row("whole_file_share", "", None, "accesses of a file from end to end, of all accesses"),
    row("sequential_share", "", None, "requests that begin where the one before them in the same file ended"),
    row("gap_share", "", Some("below_ms"), "gaps between requests to the same file that are shorter than below_ms"),
    row("peak_requests", "", Some("window_s"), "requests in the busiest window"),
    row("peak_to_mean_bytes", "", Some("window_s"), "bytes in the busiest window over those of the mean window"),
    row("active_client_mean_bytes_per_s", "B/s", Some("window_s"), "mean rate of a client in the windows in which it asks"),
    row("active_client_std_bytes_per_s", "B/s", Some("window_s"), "standard deviation of that rate"),
    row("client_peak_bytes_per_s", "B/s", Some("window_s"), "highest rate of any client in a window"),
    row("total_peak_bytes_per_s", "B/s", Some("window_s"), "highest rate of all clients together in a window"),
    row("queue_mean", "", Some("service_ms"), "requests to a file that an arrival finds unserved, itself included; served in turn, service_ms each"),
    row("queue_std", "", Some("service_ms"), "standard deviation of that number"),
    row("queue_max", "", Some("service_ms"), "the highest such number"),
    row("response_ms", "ms", Some("service_ms"), "mean time from arrival to end of service of the same queue"),
    row("working_set_bytes", "B", None, "size of all files"),
    row("smallest_file_bytes", "B", None, "size of the smallest file"),
    row("largest_file_bytes", "B", None, "size of the largest file"),
    row("zipf_alpha", "", None, "likeliest exponent of the popularity of files, from the ranks of the accesses"),
    row("frames", "", None, "frames of the movie"),
    row("frame_mean_bytes", "B", None, "mean size of a frame"),
    row("frame_std_bytes", "B", None, "standard deviation of a frame's size"),
    row("frame_window_mean_bytes_per_s", "B/s", Some("window_s"), "mean rate of the frames of a window"),
    row("frame_window_std_bytes_per_s", "B/s", Some("window_s"), "standard deviation of that rate"),
    row("early_buffer_share", "", Some("buffer_bytes"), "buffers that frames fill more than 10 % faster than on average"),
];

impl Statistic {
    /// The figure of a name.
    pub(crate) fn find(name: &str) -> Option<&'static Statistic> {
        STATISTICS.iter().find(|statistic| statistic.name == name)
    }

    /// Whether it is a figure of the frames of a video.
    pub(crate) fn is_of_frames(&self) -> bool {
        self.name.starts_with("frame") || self.name == "early_buffer_share"
    }

    /// Whether it is a statistic of the files, independent of requests.
    pub(crate) fn is_of_files(&self) -> bool {
        self.name.ends_with("_file_bytes") || self.name == "working_set_bytes"
    }
}

impl Target {
    /// Lowest and highest acceptable mean over seeds.
    pub fn band(&self) -> [f64; 2] {
        self.band.unwrap_or_else(|| {
            let slack = (self.value * self.tolerance.unwrap_or(TOLERANCE)).abs();
            [self.value - slack, self.value + slack]
        })
    }

    /// The statistic with its settings, such as `peak_requests(window_s 60, file 0)`.
    pub fn label(&self) -> String {
        let mut settings: Vec<String> = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            settings.extend(value.map(|value| format!("{name} {value}")));
        };
        add("window_s", self.window_s.map(|value| value.to_string()));
        add("below_ms", self.below_ms.map(|value| value.to_string()));
        add("service_ms", self.service_ms.map(|value| value.to_string()));
        add("buffer_bytes", self.buffer_bytes.map(|value| value.to_string()));
        add("file", self.file.map(|value| value.to_string()));
        add("op", self.op.map(|op| if op == Operation::Read { "read".into() } else { "write".into() }));
        add("from_s", self.from_s.map(|value| value.to_string()));
        add("to_s", self.to_s.map(|value| value.to_string()));
        if settings.is_empty() {
            self.statistic.clone()
        } else {
            format!("{}({})", self.statistic, settings.join(", "))
        }
    }

    /// Settings that select or measure, by name.
    fn settings(&self) -> [(&'static str, bool); 8] {
        [
            ("window_s", self.window_s.is_some()),
            ("below_ms", self.below_ms.is_some()),
            ("service_ms", self.service_ms.is_some()),
            ("buffer_bytes", self.buffer_bytes.is_some()),
            ("file", self.file.is_some()),
            ("op", self.op.is_some()),
            ("from_s", self.from_s.is_some()),
            ("to_s", self.to_s.is_some()),
        ]
    }
}

/// Longest window, limit or service time of a target, in seconds.
const LONGEST_S: f64 = 1e7;

/// Problems of the targets, as fields and messages.
pub(crate) fn check(workload: &Workload, targets: &Targets) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut problem = |field: String, message: String| found.push((format!("targets.{field}"), message));
    if workload.is_closed_loop() {
        problem("figures".into(), "a closed loop has no stream to work figures out of: remove them".into());
    }
    if targets.clients == 0 {
        problem("clients".into(), "is 0; it must be at least 1".into());
    }
    if !(0.001..=1e7).contains(&targets.duration_s) {
        problem("duration_s".into(), format!("is {}; it must be from 0.001 to 1e7", targets.duration_s));
    }
    if let Some(beyond) = workload.demand(targets.clients, targets.duration_s).beyond() {
        let message = format!("makes, in duration_s, {beyond}: use fewer clients or a shorter duration_s");
        problem("clients".into(), message);
    }
    for (at, target) in targets.figures.iter().enumerate() {
        let here = format!("figures.{at}");
        let Some(statistic) = Statistic::find(&target.statistic) else {
            let names = STATISTICS.iter().map(|statistic| statistic.name);
            problem(format!("{here}.statistic"), one_of("statistic", &target.statistic, names));
            continue;
        };
        let of_stream = !statistic.is_of_frames() && !statistic.is_of_files();
        for (name, given) in target.settings() {
            let selects = ["file", "op", "from_s", "to_s"].contains(&name);
            if !given && statistic.needs == Some(name) {
                problem(format!("{here}.{name}"), format!("is missing; {} needs it", statistic.name));
            } else if given && statistic.needs != Some(name) && !(selects && of_stream) {
                problem(format!("{here}.{name}"), format!("does not apply to {}: remove it", statistic.name));
            }
        }
        let positive = [target.window_s, target.below_ms, target.service_ms];
        if positive.iter().flatten().any(|value| !(value.is_finite() && *value > 0.0))
            || target.buffer_bytes == Some(0)
        {
            problem(here.clone(), "has a window, limit, service time or buffer that is not above 0".into());
        }
        let times_s = [
            ("window_s", target.window_s),
            ("below_ms", target.below_ms.map(|ms| ms / 1e3)),
            ("service_ms", target.service_ms.map(|ms| ms / 1e3)),
        ];
        for (name, time_s) in times_s {
            if time_s.is_some_and(|time_s| time_s > LONGEST_S) {
                problem(
                    format!("{here}.{name}"),
                    format!("is longer than {LONGEST_S:.0e} s: make it shorter"),
                );
            }
        }
        if let Some(window_s) = target.window_s
            && targets.duration_s / window_s > MOST_WINDOWS
        {
            let message = format!(
                "is {window_s}, of which duration_s has more than {MOST_WINDOWS:.0e}: make it longer"
            );
            problem(format!("{here}.window_s"), message);
        }
        let (from_s, to_s) = (target.from_s.unwrap_or(0.0), target.to_s.unwrap_or(targets.duration_s));
        if !(0.0 <= from_s && from_s < to_s && to_s <= targets.duration_s) {
            let message =
                format!("looks from {from_s} s to {to_s} s of a stream of {} s", targets.duration_s);
            problem(here.clone(), message);
        }
        if target.file.is_some_and(|file| file >= workload.files.count) {
            problem(format!("{here}.file"), format!("must be below files.count, {}", workload.files.count));
        }
        let [low, high] = target.band();
        if !(low <= target.value && target.value <= high) {
            problem(here.clone(), format!("has a band from {low} to {high} that does not hold its value"));
        }
        if statistic.is_of_frames() && !matches!(workload.sizes, Sizes::Frames(_)) {
            problem(
                format!("{here}.statistic"),
                format!("is {}, but the sizes are not frames", statistic.name),
            );
        }
    }
    found
}
