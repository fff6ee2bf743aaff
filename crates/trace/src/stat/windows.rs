//! Peak-to-mean ratio of requests and bytes in windows of one length.

use serde::Serialize;

/// Counts in windows of one length.
#[derive(Debug)]
pub struct Windows {
    length_ns: i64,
    window: i64,
    requests: u64,
    bytes: u128,
    total_requests: u64,
    total_bytes: u128,
    most_requests: u64,
    most_bytes: u128,
}

/// The busiest window by the mean of all whole ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peak {
    /// Length of a window.
    pub window_ns: i64,
    /// Whole windows from the first arrival to the last.
    pub windows: u64,
    /// Mean requests in a window.
    pub mean_requests: f64,
    /// Most requests in a window.
    pub peak_requests: u64,
    /// Most requests by the mean.
    pub peak_to_mean_requests: f64,
    /// Maximum bytes in a window divided by the mean; absent if no bytes were requested.
    pub peak_to_mean_bytes: Option<f64>,
}

impl Windows {
    /// Windows of this length, from the first arrival on.
    pub fn new(length_ns: i64) -> Self {
        Windows {
            length_ns,
            window: 0,
            requests: 0,
            bytes: 0,
            total_requests: 0,
            total_bytes: 0,
            most_requests: 0,
            most_bytes: 0,
        }
    }

    /// Counts a request, in ns since the first; not earlier than any before.
    pub fn add(&mut self, since_first_ns: i64, bytes: u64) {
        let window = since_first_ns / self.length_ns;
        if window != self.window {
            self.total_requests += self.requests;
            self.total_bytes += self.bytes;
            self.most_requests = self.most_requests.max(self.requests);
            self.most_bytes = self.most_bytes.max(self.bytes);
            (self.window, self.requests, self.bytes) = (window, 0, 0);
        }
        self.requests += 1;
        self.bytes += u128::from(bytes);
    }

    /// The result; absent if the trace is not longer than a window.
    pub fn finish(&self) -> Option<Peak> {
        let windows = u64::try_from(self.window).ok().filter(|windows| *windows > 0)?;
        let mean_requests = self.total_requests as f64 / windows as f64;
        let mean_bytes = self.total_bytes as f64 / windows as f64;
        Some(Peak {
            window_ns: self.length_ns,
            windows,
            mean_requests,
            peak_requests: self.most_requests,
            peak_to_mean_requests: self.most_requests as f64 / mean_requests,
            peak_to_mean_bytes: (mean_bytes > 0.0).then(|| self.most_bytes as f64 / mean_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_by_mean_with_empty_windows() {
        let mut windows = Windows::new(10);
        for (time, bytes) in [(0, 1), (1, 1), (2, 4), (35, 6), (40, 100)] {
            windows.add(time, bytes);
        }
        // Four whole windows with 3, 0, 0 and 1 requests, 6, 0, 0 and 6 bytes; the fifth is cut off.
        let peak = windows.finish().unwrap();
        assert_eq!((peak.windows, peak.mean_requests, peak.peak_requests), (4, 1.0, 3));
        assert_eq!((peak.peak_to_mean_requests, peak.peak_to_mean_bytes), (3.0, Some(2.0)));
        assert!(Windows::new(10).finish().is_none());
    }
}
