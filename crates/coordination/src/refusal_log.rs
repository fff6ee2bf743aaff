//! Log of refused connections on standard error, limited in rate: unauthenticated connections cannot fill it.

use std::net::IpAddr;
use std::time::{Duration, Instant};

const MOST_LINES: u32 = 20;
const PERIOD: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct RefusalLog {
    began: Instant,
    said: u32,
    left_out: u64,
}

impl RefusalLog {
    pub(crate) fn new(now: Instant) -> Self {
        RefusalLog { began: now, said: 0, left_out: 0 }
    }

    pub(crate) fn note(&mut self, now: Instant, from: IpAddr, reason: &str) {
        if let Some(line) = self.line(now, from, reason) {
            eprintln!("{line}");
        }
    }

    fn line(&mut self, now: Instant, from: IpAddr, reason: &str) -> Option<String> {
        let mut before = String::new();
        if now.saturating_duration_since(self.began) >= PERIOD {
            before = self.rest().map_or(String::new(), |rest| rest + "\n");
            *self = RefusalLog::new(now);
        }
        if self.said == MOST_LINES {
            self.left_out += 1;
            return None;
        }
        self.said += 1;
        Some(format!("{before}{from} was refused: {reason}"))
    }

    fn rest(&self) -> Option<String> {
        (self.left_out > 0).then(|| format!("{} more connections were refused", self.left_out))
    }
}

impl Drop for RefusalLog {
    fn drop(&mut self) {
        if let Some(rest) = self.rest() {
            eprintln!("{rest}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_refusals_are_counted_and_not_written() {
        let now = Instant::now();
        let mut log = RefusalLog::new(now);
        let from = IpAddr::from([127, 0, 0, 1]);
        let lines: Vec<_> = (0..300).filter_map(|_| log.line(now, from, "why")).collect();
        assert_eq!(lines.len(), 20);
        assert_eq!(lines[0], "127.0.0.1 was refused: why");
        let later = log.line(now + PERIOD, from, "why").unwrap();
        assert_eq!(later, "280 more connections were refused\n127.0.0.1 was refused: why");
        assert!(log.rest().is_none());
    }
}
