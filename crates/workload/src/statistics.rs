//! Statistics of a stream in one pass over its requests.

use weir_records::{Op, Request};

use crate::queue::Queues;
use crate::stream::Stream;
use crate::target::{Operation, Target};
use crate::zipf::likeliest_alpha;

const NS_PER_S: f64 = 1e9;

/// State of the statistic of one target.
pub(crate) struct Figure<'a> {
    target: &'a Target,
    from_ns: i64,
    to_ns: i64,
    sums: Sums,
    measure: Measure<'a>,
}

/// State of most statistics.
#[derive(Default)]
struct Sums {
    all: u64,
    requests: u64,
    bytes: u64,
    read_bytes: u64,
    accesses: u64,
    read_accesses: u64,
}

/// Further state of some statistics.
enum Measure<'a> {
    Nothing,
    Whole { sizes_bytes: &'a [u64], start: u64, bytes: u64, file: usize, whole: u64 },
    Windows { window_ns: i64, counts: Vec<(u64, u64)> },
    Clients(ClientWindows),
    Gaps { below_ns: i64, last_ns: Vec<Option<i64>>, gaps: u64, short: u64 },
    Sequential { ends: Vec<Option<u64>>, behind: u64 },
    Queues(Queues),
    Ranks { rank_of: Vec<u32>, log_sum: f64 },
}

/// Bytes of each client in the current window, and the results of the earlier windows.
struct ClientWindows {
    window_ns: i64,
    window: i64,
    bytes: Vec<u64>,
    active: f64,
    sum: f64,
    squares: f64,
    client_peak: u64,
    total_peak: u64,
}

impl<'a> Figure<'a> {
    /// Prepares a statistic of requests; `stream` is only used for its files.
    pub(crate) fn new(target: &'a Target, stream: &'a Stream, clients: u32, duration_s: f64) -> Self {
        let files = stream.files().sizes_bytes().len();
        let ns = |seconds: f64| (seconds * NS_PER_S) as i64;
        let from_ns = ns(target.from_s.unwrap_or(0.0));
        let to_ns = ns(target.to_s.unwrap_or(duration_s));
        let window_ns = ns(target.window_s.unwrap_or(1.0)).max(1);
        let measure = match target.statistic.as_str() {
            "whole_file_share" => Measure::Whole {
                sizes_bytes: stream.files().sizes_bytes(),
                start: u64::MAX,
                bytes: 0,
                file: 0,
                whole: 0,
            },
            "peak_requests" | "peak_to_mean_bytes" => {
                // A last window that is cut short could not be compared.
                let windows = ((to_ns - from_ns) / window_ns).max(1) as usize;
                Measure::Windows { window_ns, counts: vec![(0, 0); windows] }
            }
            "active_client_mean_bytes_per_s"
            | "active_client_std_bytes_per_s"
            | "client_peak_bytes_per_s"
            | "total_peak_bytes_per_s" => Measure::Clients(ClientWindows::new(window_ns, clients)),
            "gap_share" => Measure::Gaps {
                below_ns: (target.below_ms.unwrap_or(0.0) * 1e6) as i64,
                last_ns: vec![None; files],
                gaps: 0,
                short: 0,
            },
            "sequential_share" => Measure::Sequential { ends: vec![None; files], behind: 0 },
            "queue_mean" | "queue_std" | "queue_max" | "response_ms" => {
                Measure::Queues(Queues::new(files, (target.service_ms.unwrap_or(0.0) * 1e6) as i64))
            }
            "zipf_alpha" => match stream.recipe().picker.rank_of_file() {
                Some(rank_of) => Measure::Ranks { rank_of, log_sum: 0.0 },
                None => Measure::Nothing,
            },
            _ => Measure::Nothing,
        };
        Figure { target, from_ns, to_ns, sums: Sums::default(), measure }
    }

    /// Takes in the next request; `opens` if it is not a further block of the access before it.
    pub(crate) fn see(&mut self, request: &Request, opens: bool) {
        let file = request.file.unwrap_or(0) as usize;
        let at_ns = request.intended_ns;
        let counted = (self.from_ns..self.to_ns).contains(&at_ns)
            && self.target.file.is_none_or(|only| Some(only) == request.file)
            && self.target.op.is_none_or(|only| (only == Operation::Read) == (request.op == Op::Read));
        self.sums.all += 1;
        match &mut self.measure {
            // Requests that are not counted are in the queue, too, and delay the next request.
            Measure::Queues(queues) => queues.arrive(file, at_ns, counted),
            Measure::Sequential { ends, behind } => {
                *behind += u64::from(counted && ends[file] == Some(request.offset));
                ends[file] = Some(request.offset + request.size_bytes);
            }
            _ => {}
        }
        if !counted {
            return;
        }
        let is_read = request.op == Op::Read;
        self.sums.requests += 1;
        self.sums.bytes += request.size_bytes;
        self.sums.read_bytes += if is_read { request.size_bytes } else { 0 };
        self.sums.accesses += u64::from(opens);
        self.sums.read_accesses += u64::from(opens && is_read);
        match &mut self.measure {
            Measure::Whole { sizes_bytes, start, bytes, file: of, whole } => {
                if opens {
                    *whole += u64::from(*start == 0 && *bytes == sizes_bytes[*of]);
                    (*start, *bytes, *of) = (request.offset, 0, file);
                }
                *bytes += request.size_bytes;
            }
            Measure::Windows { window_ns, counts } => {
                if let Some(window) = counts.get_mut(((at_ns - self.from_ns) / *window_ns) as usize) {
                    window.0 += 1;
                    window.1 += request.size_bytes;
                }
            }
            Measure::Clients(clients) => clients.see(at_ns - self.from_ns, request),
            Measure::Gaps { below_ns, last_ns, gaps, short } => {
                if let Some(last_ns) = last_ns[file].replace(at_ns) {
                    *gaps += 1;
                    *short += u64::from(at_ns - last_ns < *below_ns);
                }
            }
            Measure::Ranks { rank_of, log_sum } if opens => {
                *log_sum += libm::log(f64::from(rank_of[file]) + 1.0);
            }
            _ => {}
        }
    }

    /// Value of the statistic; `None` without data.
    pub(crate) fn value(mut self) -> Option<f64> {
        let span_s = (self.to_ns - self.from_ns) as f64 / NS_PER_S;
        let sums = &self.sums;
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        match (self.target.statistic.as_str(), &mut self.measure) {
            ("requests", _) => Some(sums.requests as f64),
            ("requests_per_s", _) => Some(sums.requests as f64 / span_s),
            ("bytes_per_s", _) => Some(sums.bytes as f64 / span_s),
            ("accesses_per_s", _) => Some(sums.accesses as f64 / span_s),
            ("mean_size_bytes", _) => share(sums.bytes, sums.requests),
            ("share_of_requests", _) => share(sums.requests, sums.all),
            ("read_share", _) => share(sums.read_accesses, sums.accesses),
            ("read_byte_share", _) => share(sums.read_bytes, sums.bytes),
            (_, Measure::Whole { sizes_bytes, start, bytes, file, whole }) => {
                let last = *start == 0 && *bytes == sizes_bytes[*file];
                share(*whole + u64::from(last), sums.accesses)
            }
            ("peak_requests", Measure::Windows { counts, .. }) => {
                counts.iter().map(|(requests, _)| *requests as f64).reduce(f64::max)
            }
            (_, Measure::Windows { counts, .. }) => {
                let bytes: u64 = counts.iter().map(|(_, bytes)| bytes).sum();
                let peak = counts.iter().map(|(_, bytes)| *bytes).max()?;
                (bytes > 0).then(|| peak as f64 * counts.len() as f64 / bytes as f64)
            }
            (name, Measure::Clients(clients)) => clients.value(name),
            (_, Measure::Gaps { gaps, short, .. }) => share(*short, *gaps),
            (_, Measure::Sequential { behind, .. }) => share(*behind, sums.requests),
            ("queue_mean", Measure::Queues(queues)) => queues.mean(),
            ("queue_std", Measure::Queues(queues)) => queues.std(),
            ("queue_max", Measure::Queues(queues)) => queues.longest(),
            (_, Measure::Queues(queues)) => queues.response_ms(),
            (_, Measure::Ranks { rank_of, log_sum }) if sums.accesses > 0 => {
                likeliest_alpha(rank_of.len() as u32, *log_sum / sums.accesses as f64)
            }
            _ => None,
        }
    }
}

impl ClientWindows {
    fn new(window_ns: i64, clients: u32) -> Self {
        ClientWindows {
            window_ns,
            window: 0,
            bytes: vec![0; clients as usize],
            active: 0.0,
            sum: 0.0,
            squares: 0.0,
            client_peak: 0,
            total_peak: 0,
        }
    }

    fn see(&mut self, since_ns: i64, request: &Request) {
        let window = since_ns / self.window_ns;
        if window != self.window {
            self.close();
            self.window = window;
        }
        if let Some(bytes) = self.bytes.get_mut(request.client as usize) {
            *bytes += request.size_bytes;
        }
    }

    fn close(&mut self) {
        self.total_peak = self.total_peak.max(self.bytes.iter().sum());
        for bytes in self.bytes.iter_mut().filter(|bytes| **bytes > 0) {
            self.client_peak = self.client_peak.max(*bytes);
            self.active += 1.0;
            self.sum += *bytes as f64;
            self.squares += *bytes as f64 * *bytes as f64;
            *bytes = 0;
        }
    }

    fn value(&mut self, name: &str) -> Option<f64> {
        self.close();
        if self.active == 0.0 {
            return None;
        }
        let mean = self.sum / self.active;
        let bytes = match name {
            "active_client_mean_bytes_per_s" => mean,
            "active_client_std_bytes_per_s" => (self.squares / self.active - mean * mean).max(0.0).sqrt(),
            "client_peak_bytes_per_s" => self.client_peak as f64,
            _ => self.total_peak as f64,
        };
        Some(bytes * NS_PER_S / self.window_ns as f64)
    }
}

/// A figure of the files.
pub(crate) fn of_files(name: &str, stream: &Stream) -> Option<f64> {
    let sizes = stream.files().sizes_bytes();
    match name {
        "smallest_file_bytes" => sizes.iter().min().map(|bytes| *bytes as f64),
        "largest_file_bytes" => sizes.iter().max().map(|bytes| *bytes as f64),
        _ => Some(stream.files().total_bytes() as f64),
    }
}

/// A figure of frames, in bytes, at this many a second.
pub(crate) fn of_frames(target: &Target, frames: &[u64], rate_hz: f64) -> Option<f64> {
    let mean_and_std = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance =
            values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64;
        (mean, variance.sqrt())
    };
    let sizes: Vec<f64> = frames.iter().map(|size| *size as f64).collect();
    let window = (target.window_s.unwrap_or(1.0) * rate_hz).round().max(1.0) as usize;
    let rates = || -> Vec<f64> {
        sizes.chunks_exact(window).map(|chunk| chunk.iter().sum::<f64>() * rate_hz / window as f64).collect()
    };
    let value = match target.statistic.as_str() {
        "frames" => frames.len() as f64,
        "frame_mean_bytes" => mean_and_std(&sizes).0,
        "frame_std_bytes" => mean_and_std(&sizes).1,
        "frame_window_mean_bytes_per_s" => mean_and_std(&rates()).0,
        "frame_window_std_bytes_per_s" => mean_and_std(&rates()).1,
        _ => early_buffers(frames, target.buffer_bytes.unwrap_or(1))?,
    };
    value.is_finite().then_some(value)
}

/// Share of the buffers that are full in less than 1/1.1 of the mean time. Frames come whole, one at each tick.
fn early_buffers(frames: &[u64], buffer_bytes: u64) -> Option<f64> {
    let (mut held, mut last) = (0, 0);
    let mut delays: Vec<usize> = Vec::new();
    for (tick, size) in (1..).zip(frames) {
        held += size;
        while held >= buffer_bytes {
            held -= buffer_bytes;
            delays.push(tick - last);
            last = tick;
        }
    }
    let mean = delays.iter().sum::<usize>() as f64 / delays.len() as f64;
    let early = delays.iter().filter(|delay| (**delay as f64) < mean / 1.1).count();
    (!delays.is_empty()).then(|| early as f64 / delays.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_even_frames_are_never_early() {
        assert_eq!(early_buffers(&[100; 50], 1000), Some(0.0));
        // Delays 1, 1, 4, 4: the mean is 2.5, and two are shorter than 2.27.
        assert_eq!(early_buffers(&[10, 10, 0, 0, 0, 10, 0, 0, 0, 10], 10), Some(0.5));
        assert_eq!(early_buffers(&[1], 10), None);
    }
}
