//! Figures by page, from the outcomes of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use weir_web_client::Outcome;

/// Figures of a page in the measured interval. Times count from the intended instant of its requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageReport {
    /// Its name.
    pub page: String,
    /// Number of requests answered.
    pub answered: u64,
    /// Number of requests that failed or were refused.
    pub failed: u64,
    /// Its share of all answered requests.
    pub share: f64,
    /// Mean response time, ms.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile, which TPC-W limits.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

/// Adds up outcomes by page.
#[derive(Debug, Default)]
pub struct Pages {
    response_ns: BTreeMap<Arc<str>, Vec<i64>>,
    failed: BTreeMap<Arc<str>, u64>,
}

impl Pages {
    /// Adds an outcome; outcomes of the warm-up are ignored.
    pub fn add(&mut self, outcome: &Outcome) {
        let Some(page) = outcome.label.as_ref().filter(|_| !outcome.warmup) else { return };
        match outcome.completed_ns {
            Some(completed_ns) if outcome.error == 0 => {
                self.response_ns
                    .entry(Arc::clone(page))
                    .or_default()
                    .push(completed_ns - outcome.intended_ns);
            }
            _ => *self.failed.entry(Arc::clone(page)).or_default() += 1,
        }
    }

    /// The figures, by name of the page.
    pub fn finish(mut self) -> Vec<PageReport> {
        let all: usize = self.response_ns.values().map(Vec::len).sum();
        for page in self.failed.keys() {
            self.response_ns.entry(Arc::clone(page)).or_default();
        }
        let report = |(page, mut times): (Arc<str>, Vec<i64>)| {
            times.sort_unstable();
            let ms = |ns: i64| ns as f64 / 1e6;
            // Nearest rank.
            let at = |share: f64| {
                let rank = (share * times.len() as f64).ceil().max(1.0) as usize;
                times.get(rank - 1).map_or(0.0, |ns| ms(*ns))
            };
            PageReport {
                answered: times.len() as u64,
                failed: self.failed.get(&page).copied().unwrap_or(0),
                share: times.len() as f64 / all.max(1) as f64,
                mean_ms: times.iter().map(|ns| ms(*ns)).sum::<f64>() / times.len().max(1) as f64,
                p50_ms: at(0.5),
                p90_ms: at(0.9),
                p99_ms: at(0.99),
                max_ms: at(1.0),
                page: page.to_string(),
            }
        };
        self.response_ns.into_iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_web_client::Method;

    #[test]
    fn ranks_and_shares() {
        let outcome = |page: &str, ms: i64, error| Outcome {
            request: 0,
            class: 0,
            client: 0,
            label: Some(page.into()),
            method: Method::Get,
            document: None,
            intended_ns: 1_000_000,
            submitted_ns: Some(1_000_000),
            completed_ns: Some((1 + ms) * 1_000_000),
            deadline_ns: None,
            body_bytes: 0,
            http_status: 200,
            error,
            warmup: false,
        };
        let mut pages = Pages::default();
        (1..=10).for_each(|ms| pages.add(&outcome("A", ms, 0)));
        pages.add(&outcome("A", 500, 5));
        pages.add(&outcome("B", 500, 5));
        pages.add(&Outcome { warmup: true, ..outcome("C", 1, 0) });
        let found = pages.finish();
        assert_eq!((found.len(), found[0].answered, found[0].failed, found[1].failed), (2, 10, 1, 1));
        assert_eq!((found[0].p50_ms, found[0].p90_ms, found[0].max_ms), (5.0, 9.0, 10.0));
        assert_eq!((found[0].mean_ms, found[0].share, found[1].share), (5.5, 1.0, 0.0));
    }
}
