//! Merge of rows from several threads in order of intended time.

use crate::outcome::Outcome;
use crate::worker::RowBatch;

/// Rows that wait for rows with earlier intended times.
pub(crate) struct Order {
    waiting: Vec<Outcome>,
    /// By thread: lower bound of the intended times of its later rows.
    settled_ns: Vec<i64>,
    /// Upper bound of the intended times of the rows returned so far.
    given_ns: i64,
    next_request: u64,
}

impl Order {
    pub fn new(threads: usize) -> Self {
        Order {
            waiting: Vec::new(),
            settled_ns: vec![i64::MIN; threads],
            given_ns: i64::MIN,
            next_request: 0,
        }
    }

    /// Takes rows and returns those that no later row can precede.
    pub fn add(&mut self, handed: RowBatch, give: impl FnMut(&Outcome)) {
        self.settled_ns[handed.thread] = handed.settled_ns;
        self.waiting.extend(handed.rows);
        let settled_ns = self.settled_ns.iter().copied().min().unwrap_or(i64::MAX);
        if settled_ns > self.given_ns {
            self.given_ns = settled_ns;
            self.give(settled_ns, give);
        }
    }

    /// Returns the remaining rows at the end.
    pub fn finish(&mut self, give: impl FnMut(&Outcome)) {
        self.give(i64::MAX, give);
    }

    fn give(&mut self, before_ns: i64, mut give: impl FnMut(&Outcome)) {
        // Nearly sorted already; the stable sort makes use of that.
        self.waiting.sort_by_key(|row| (row.intended_ns, row.class, row.client));
        let count = match before_ns {
            i64::MAX => self.waiting.len(),
            _ => self.waiting.partition_point(|row| row.intended_ns < before_ns),
        };
        for mut row in self.waiting.drain(..count) {
            row.request = self.next_request;
            self.next_request += 1;
            give(&row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Method;

    fn row(intended_ns: i64) -> Outcome {
        Outcome {
            request: 0,
            class: 0,
            client: 0,
            label: None,
            method: Method::Get,
            document: None,
            intended_ns,
            submitted_ns: None,
            completed_ns: None,
            deadline_ns: None,
            body_bytes: 0,
            http_status: 0,
            error: 0,
            warmup: false,
        }
    }

    #[test]
    fn rows_come_in_order_and_none_is_held_for_longer_than_needed() {
        let mut order = Order::new(2);
        let mut given = Vec::new();
        let mut add = |thread, times: &[i64], settled_ns| {
            let rows = times.iter().map(|time| row(*time)).collect();
            order
                .add(RowBatch { thread, rows, settled_ns }, |row| given.push((row.request, row.intended_ns)));
            given.len()
        };
        assert_eq!(add(0, &[5, 3, 9], 6), 0, "nothing is known of the other thread");
        assert_eq!(add(1, &[4], 7), 3);
        assert_eq!(add(1, &[8, 7], i64::MAX), 3);
        assert_eq!(add(0, &[6], i64::MAX), 7);
        order.finish(|_| unreachable!("all is given out"));
        assert_eq!(given, [(0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8), (6, 9)]);
    }
}
