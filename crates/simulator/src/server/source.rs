//! Clients of a simulated server.

use std::collections::VecDeque;

use crate::device::Op;

/// A request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Arrival time.
    pub intended_ns: u64,
    /// Deadline; `None` if there is none.
    pub deadline_ns: Option<u64>,
    /// Client of the class.
    pub client: u32,
    /// File of the class.
    pub file: u32,
    /// Read or write.
    pub op: Op,
    /// First byte in the file.
    pub offset_bytes: u64,
    /// Bytes, at least 1.
    pub size_bytes: u64,
}

/// The clients of a class.
pub trait Source: Send {
    /// Time of the next request; `None` if it depends on an answer.
    fn next_ns(&self) -> Option<u64>;

    /// Next request, if any.
    fn take(&mut self) -> Option<Ask>;

    /// Reports an answer to this client; returns whether the time of the next request can be another because of it.
    fn answered(&mut self, now_ns: u64, client: u32) -> bool {
        let _ = (now_ns, client);
        false
    }
}

/// Closed-loop clients: a number of outstanding requests and a think time each.
pub struct ClosedLoop<F> {
    /// Next request times of clients, in order.
    due: VecDeque<(u64, u32)>,
    think_ns: u64,
    end_ns: u64,
    pace: Option<Pace>,
    draw: F,
}

/// Rate limit of clients.
struct Pace {
    gap_ns: f64,
    start_ns: u64,
    /// Requests that were due so far, by client.
    asked: Vec<u64>,
}

impl Pace {
    /// When the next request of a client may come; counts it.
    fn next_ns(&mut self, client: u32) -> u64 {
        let Some(asked) = self.asked.get_mut(client as usize) else { return 0 };
        let at_ns = self.start_ns.saturating_add((*asked as f64 * self.gap_ns).round() as u64);
        *asked += 1;
        at_ns
    }
}

impl<F: FnMut(u32) -> Ask + Send> ClosedLoop<F> {
    /// `clients` clients that each keep `depth` requests outstanding until `end_ns`. `draw` makes a client's next request;
    /// its time and client are set here.
    pub fn new(clients: u32, depth: u32, think_ns: u64, end_ns: u64, draw: F) -> Self {
        let due = (0..depth).flat_map(|_| (0..clients).map(|client| (0, client))).collect();
        ClosedLoop { due, think_ns, end_ns, pace: None, draw }
    }

    /// The same clients, which begin at `start_ns`. `gap_ns` is the time between requests of one client that it does not fall
    /// below, counted from the start; 0 for none.
    #[must_use]
    pub fn starting(mut self, start_ns: u64, gap_ns: f64) -> Self {
        let clients = self.due.iter().map(|(_, client)| *client as usize + 1).max().unwrap_or(0);
        self.pace = (gap_ns > 0.0).then(|| Pace { gap_ns, start_ns, asked: vec![0; clients] });
        let first: Vec<u32> = self.due.drain(..).map(|(_, client)| client).collect();
        if start_ns < self.end_ns {
            first.into_iter().for_each(|client| self.ask(start_ns, client));
        }
        self
    }

    fn ask(&mut self, at_ns: u64, client: u32) {
        let paced_ns = self.pace.as_mut().map_or(0, |pace| pace.next_ns(client));
        let at_ns = at_ns.max(paced_ns);
        if at_ns < self.end_ns {
            let place = self.due.partition_point(|(due_ns, _)| *due_ns <= at_ns);
            self.due.insert(place, (at_ns, client));
        }
    }
}

impl<F: FnMut(u32) -> Ask + Send> Source for ClosedLoop<F> {
    fn next_ns(&self) -> Option<u64> {
        self.due.front().map(|(at_ns, _)| *at_ns)
    }

    fn take(&mut self) -> Option<Ask> {
        let (at_ns, client) = self.due.pop_front()?;
        Some(Ask { intended_ns: at_ns, client, ..(self.draw)(client) })
    }

    fn answered(&mut self, now_ns: u64, client: u32) -> bool {
        self.ask(now_ns.saturating_add(self.think_ns), client);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(clients: u32, depth: u32, end_ns: u64) -> ClosedLoop<impl FnMut(u32) -> Ask + Send> {
        ClosedLoop::new(clients, depth, 0, end_ns, |client| Ask {
            intended_ns: 0,
            deadline_ns: None,
            client,
            file: 0,
            op: Op::Read,
            offset_bytes: 0,
            size_bytes: 1,
        })
    }

    /// Times of all requests if each is answered `service_ns` after it was sent.
    fn times(mut source: ClosedLoop<impl FnMut(u32) -> Ask + Send>, service_ns: u64) -> Vec<(u64, u32)> {
        let mut asked = Vec::new();
        while let Some(ask) = source.take() {
            asked.push((ask.intended_ns, ask.client));
            source.answered(ask.intended_ns + service_ns, ask.client);
        }
        asked
    }

    #[test]
    fn clients_begin_when_they_are_told() {
        assert_eq!(times(clients(1, 1, 100).starting(40, 0.0), 30), [(40, 0), (70, 0)]);
        assert_eq!(times(clients(1, 1, 100).starting(100, 0.0), 30), []);
        assert_eq!(clients(2, 1, 100).starting(7, 0.0).next_ns(), Some(7));
    }

    #[test]
    fn a_pace_is_kept_and_caught_up_with() {
        // Answered in time: at the pace. Not: as soon as answered.
        assert_eq!(
            times(clients(1, 1, 50).starting(5, 10.0), 3),
            [(5, 0), (15, 0), (25, 0), (35, 0), (45, 0)]
        );
        assert_eq!(times(clients(1, 1, 50).starting(5, 10.0), 20), [(5, 0), (25, 0), (45, 0)]);
        let mut source = clients(1, 1, 1000).starting(0, 10.0);
        let mut ask = |answered_ns: u64| {
            let at_ns = source.take().map(|ask| ask.intended_ns);
            source.answered(answered_ns, 0);
            at_ns
        };
        // The second, third and fourth are late after a slow answer; the fifth is in time again.
        assert_eq!([33, 34, 35, 36, 41, 51].map(&mut ask), [0, 33, 34, 35, 40, 50].map(Some));
    }

    #[test]
    fn requests_ahead_and_clients_have_paces_of_their_own() {
        let found = times(clients(2, 2, 25).starting(0, 10.0), 1);
        assert_eq!(found, [(0, 0), (0, 1), (10, 0), (10, 1), (20, 0), (20, 1)]);
    }
}
