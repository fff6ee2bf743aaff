//! Facts that the validity rules look at.

use weir_blockserver::Stats;
use weir_replayer::Fidelity;

use crate::daemon::site::Findings;
use crate::load::access::Accessed;
use crate::load::fio::Report;
use crate::validity::transit::Transit;

/// What the rules look at; of a part of a run, the rest is absent.
#[derive(Default)]
pub(crate) struct Facts<'a> {
    /// Of the open-loop classes.
    pub(crate) fidelity: Option<&'a Fidelity>,
    /// Of the closed-loop classes.
    pub(crate) fio: &'a [Report],
    /// Of the classes that go through a web server.
    pub(crate) web: Option<&'a weir_web_client::Report>,
    /// Of opening and reading files.
    pub(crate) access: Option<&'a Accessed>,
    /// Requests whose status is not 0.
    pub(crate) failed: u64,
    /// The first such status, in words.
    pub(crate) first_failure: Option<String>,
    /// Requests in `requests.parquet`.
    pub(crate) rows: u64,
    /// Share of block requests lost, and the words for it; `Err` says why nothing was captured.
    pub(crate) loss: Option<Result<(f64, String), String>>,
    /// Share that may be lost.
    pub(crate) allowed_loss: f64,
    /// Whether a capture is required.
    pub(crate) capture_required: bool,
    /// Bytes that the application read, and that the devices did; absent where there is no device.
    pub(crate) read_bytes: Option<(u64, u64)>,
    /// Why reads need not have reached the devices; absent if they must.
    pub(crate) cached_by_right: Option<&'static str>,
    /// Of a network file system: bytes that were written to it, and that left the client's host meanwhile.
    pub(crate) written: Option<(u64, u64)>,
    /// What was found at each site afterwards.
    pub(crate) sites: Vec<Findings>,
    /// How far the wall clock moved against the monotonic one, in ns.
    pub(crate) clock_step_ns: f64,
    /// Mounts and queues that are not as they should be at the end.
    pub(crate) state: Vec<String>,
    /// Control groups of classes: as set and with their class's requests, or what is wrong; absent where there are none.
    pub(crate) controls: Option<Result<String, String>>,
    /// Of modelled devices, by name.
    pub(crate) models: Vec<(String, Stats)>,
    /// Devices with one of weir's schedulers: the scheduler in force, or how it differs from the run's.
    pub(crate) schedulers: Vec<(String, Result<String, String>)>,
    /// Classes under these schedulers: transit of their requests.
    pub(crate) transits: Vec<(String, Transit)>,
    /// Whether files are ranges of the device, so that only its limits can cut a request.
    pub(crate) is_raw: bool,
    /// CPU steal as a share of the processor time wanted.
    pub(crate) cpu_steal: f64,
}
