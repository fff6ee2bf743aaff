//! Facts that validity rules judge.

use weir_blockserver::Stats;
use weir_replayer::Fidelity;

use crate::daemon::site::Findings;
use crate::load::access::Accessed;
use crate::load::fio::Report;
use crate::validity::transit::Transit;

/// Facts that the rules judge. A part of a run of several hosts has only some of them.
#[derive(Default)]
pub(crate) struct Facts<'a> {
    /// Fidelity of the replay of open-loop classes.
    pub(crate) fidelity: Option<&'a Fidelity>,
    /// fio's reports of closed-loop classes.
    pub(crate) fio: &'a [Report],
    /// Time by which clients of closed loops may begin late, in ns: the warm-up, or a tenth of the measured interval.
    pub(crate) late_start_limit_ns: i64,
    /// Report of the browsers of classes behind a web server.
    pub(crate) web: Option<&'a weir_web_client::Report>,
    /// Report of the file access benchmark.
    pub(crate) access: Option<&'a Accessed>,
    /// Requests whose status is not 0.
    pub(crate) failed: u64,
    /// Text of the first failure.
    pub(crate) first_failure: Option<String>,
    /// Requests in `requests.parquet`.
    pub(crate) rows: u64,
    /// Share of block requests lost, with a text; `Err` says why nothing was captured.
    pub(crate) loss: Option<Result<(f64, String), String>>,
    /// Share of block requests that may be lost.
    pub(crate) allowed_loss: f64,
    /// Whether a capture is required.
    pub(crate) capture_required: bool,
    /// Bytes read by the application, and from the devices; absent without a device.
    pub(crate) read_bytes: Option<(u64, u64)>,
    /// Why caches may have answered reads; absent if the devices must have.
    pub(crate) cached_by_right: Option<&'static str>,
    /// Bytes written to a network file system, and bytes that left the client's host in the same interval.
    pub(crate) written: Option<(u64, u64)>,
    /// Findings at each site after the run.
    pub(crate) sites: Vec<Findings>,
    /// Step of the wall clock against the monotonic clock, in ns.
    pub(crate) clock_step_ns: f64,
    /// Mounts, queues and limits that differ from the study at the end, a line each.
    pub(crate) state: Vec<String>,
    /// Control groups of classes: a text if each was as set and had its class's requests, or what is wrong; absent without groups.
    pub(crate) controls: Option<Result<String, String>>,
    /// Statistics of modelled devices, by name.
    pub(crate) models: Vec<(String, Stats)>,
    /// Devices with one of weir's schedulers: the active scheduler, or how it differs from the run's.
    pub(crate) schedulers: Vec<(String, Result<String, String>)>,
    /// Transit of the requests of classes under one of weir's schedulers.
    pub(crate) transits: Vec<(String, Transit)>,
    /// Whether files are ranges of the device: then only the device's limits can split a request.
    pub(crate) is_raw: bool,
    /// CPU steal as a share of the wanted CPU time.
    pub(crate) cpu_steal: f64,
}
