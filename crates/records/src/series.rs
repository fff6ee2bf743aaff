//! `series.parquet`: responses over time, as histograms that add up.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::{Error, Request, TableWriter};

crate::record! {
    /// Number of requests of one class, one interval of intended times and one bucket of response times. Rows add up over
    /// intervals, classes and runs. An interval may have several rows for a bucket.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SeriesRow, SeriesColumns {
        /// The application class.
        pub class: Arc<str>,
        /// When the interval of intended times begins.
        /// Unit: ns.
        pub start_ns: i64,
        /// The shortest response time of the bucket, from the intended time to the completion. The bucket is 1/64 of a power of
        /// two wide, below 64 ns 1 ns.
        /// Null: failed, or never completed.
        /// Unit: ns.
        pub response_ns: Option<i64>,
        /// Number of these requests.
        pub requests: u64,
        /// Their bytes.
        /// Unit: bytes.
        pub size_bytes: u64,
        /// Those that missed their deadline.
        pub late: u64,
    }
    where check
}

/// Refuses a row that no request can be in.
fn check(row: &SeriesRow) -> Result<(), String> {
    if row.response_ns.is_some_and(|response_ns| response_ns < 0) {
        return Err(format!("response_ns is {}, expected 0 or more", row.response_ns.unwrap_or(0)));
    }
    if row.late > row.requests {
        return Err(format!("late is {}, expected at most requests, {}", row.late, row.requests));
    }
    Ok(())
}

/// Classes of a power of two, as a number of bits.
const SUB_BITS: u32 = 6;
/// Rows that are kept before the earliest half of them is written.
const MOST_OPEN: usize = 200_000;

/// The bucket of a response time: its shortest one.
///
/// ```
/// use weir_records::series::bucket_ns;
/// assert_eq!([0, 63, 64, 129, 1_000_000].map(bucket_ns), [0, 63, 64, 128, 999_424]);
/// ```
pub fn bucket_ns(response_ns: u64) -> u64 {
    let bits = u64::BITS - response_ns.leading_zeros();
    let shift = bits.saturating_sub(SUB_BITS + 1);
    response_ns >> shift << shift
}

/// Writer of `series.parquet`, in bounded memory.
pub struct SeriesWriter {
    table: TableWriter<SeriesRow>,
    interval_ns: i64,
    classes: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
    open: HashMap<Key, Counts>,
}

/// Begin of the interval, class, and bucket.
type Key = (i64, u32, Option<u64>);

#[derive(Default)]
struct Counts {
    requests: u64,
    size_bytes: u64,
    late: u64,
}

impl SeriesWriter {
    /// Creates the table, for intervals of so many ns, at least 1.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, epoch_ns: i64, interval_ns: i64) -> Result<Self, Error> {
        Ok(SeriesWriter {
            table: TableWriter::create(path, epoch_ns)?,
            interval_ns: interval_ns.max(1),
            classes: HashMap::new(),
            names: Vec::new(),
            open: HashMap::new(),
        })
    }

    /// Adds a request, in any order; those of about the same time should come together.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, request: &Request) -> Result<(), Error> {
        let class = match self.classes.get(&request.class) {
            Some(class) => *class,
            None => {
                let class = self.names.len() as u32;
                self.names.push(Arc::clone(&request.class));
                self.classes.insert(Arc::clone(&request.class), class);
                class
            }
        };
        let start_ns = request.intended_ns.div_euclid(self.interval_ns).saturating_mul(self.interval_ns);
        let completed_ns = request.completed_ns.filter(|_| request.status == 0);
        let response_ns =
            completed_ns.and_then(|completed_ns| u64::try_from(completed_ns - request.intended_ns).ok());
        let counts = self.open.entry((start_ns, class, response_ns.map(bucket_ns))).or_default();
        counts.requests += 1;
        counts.size_bytes += request.size_bytes;
        let is_late = |deadline_ns: i64| completed_ns.is_none_or(|completed_ns| completed_ns > deadline_ns);
        counts.late += u64::from(request.deadline_ns.is_some_and(is_late));
        if self.open.len() > MOST_OPEN { self.write(MOST_OPEN / 2) } else { Ok(()) }
    }

    /// Writes all rows but the last `kept`, in order of time.
    fn write(&mut self, kept: usize) -> Result<(), Error> {
        let mut keys: Vec<Key> = self.open.keys().copied().collect();
        keys.sort_unstable();
        keys.truncate(keys.len().saturating_sub(kept));
        for key in keys {
            let Some(counts) = self.open.remove(&key) else { continue };
            let (start_ns, class, bucket) = key;
            self.table.write(&SeriesRow {
                class: Arc::clone(&self.names[class as usize]),
                start_ns,
                response_ns: bucket.map(|response_ns| i64::try_from(response_ns).unwrap_or(i64::MAX)),
                requests: counts.requests,
                size_bytes: counts.size_bytes,
                late: counts.late,
            })?;
        }
        Ok(())
    }

    /// Writes what is left, and names the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn close(mut self) -> Result<(), Error> {
        self.write(0)?;
        self.table.close().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, read_all};

    fn request(class: &str, intended_ns: i64, response_ns: Option<i64>) -> Request {
        Request {
            request: 0,
            class: class.into(),
            client: 0,
            device: None,
            file: None,
            op: Op::Read,
            offset: 0,
            size_bytes: 512,
            intended_ns,
            submitted_ns: Some(intended_ns),
            completed_ns: response_ns.map(|response_ns| intended_ns + response_ns),
            deadline_ns: Some(intended_ns + 1000),
            served_ns: None,
            status: 0,
            warmup: false,
        }
    }

    fn written(requests: &[Request], interval_ns: i64) -> Vec<SeriesRow> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("series.parquet");
        let mut writer = SeriesWriter::create(&path, 42, interval_ns).unwrap();
        requests.iter().for_each(|request| writer.add(request).unwrap());
        writer.close().unwrap();
        read_all(&path).unwrap()
    }

    #[test]
    fn requests_are_counted_by_interval_and_bucket() {
        let failed = Request { status: 5, ..request("a", 150, Some(20)) };
        let rows = written(
            &[request("a", 0, Some(900)), request("a", 99, Some(903)), request("b", 10, Some(5000)), failed],
            100,
        );
        let row = |class: &str, start_ns, response_ns, requests: u64, late| SeriesRow {
            class: class.into(),
            start_ns,
            response_ns,
            requests,
            size_bytes: 512 * requests,
            late,
        };
        // 900 to 903 are in the bucket from 896 to 911.
        assert_eq!(
            rows,
            [row("a", 0, Some(896), 2, 0), row("b", 0, Some(4992), 1, 1), row("a", 100, None, 1, 1)]
        );
    }

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for response_ns in (0..5000).chain((13..63).map(|bit| (1 << bit) + 12_345)) {
            let bucket = bucket_ns(response_ns);
            assert!(bucket <= response_ns && bucket >= last, "{response_ns}");
            assert!(response_ns - bucket <= response_ns / 64, "{response_ns}: {bucket}");
            assert_eq!(bucket_ns(bucket), bucket);
            last = bucket;
        }
    }

    #[test]
    fn long_runs_are_written_as_they_go_and_add_up() {
        // Each request is a row, and comes later than some that follow.
        let requests: Vec<_> = (0..MOST_OPEN as i64 + 50_000)
            .map(|number| request("a", (number ^ 7) * 1000, Some(number % 60)))
            .collect();
        let rows = written(&requests, 1000);
        assert_eq!(rows.iter().map(|row| row.requests).sum::<u64>(), requests.len() as u64);
        let mut keys: Vec<_> = rows.iter().map(|row| (row.start_ns, row.response_ns)).collect();
        keys.dedup();
        assert_eq!(keys.len(), rows.len());
    }
}
