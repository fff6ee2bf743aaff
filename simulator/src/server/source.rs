//! Who asks: clients as the server sees them.

use std::collections::VecDeque;

use crate::device::Op;

/// What a client asks the server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// When the client wanted it.
    pub intended_ns: u64,
    /// When the answer becomes worthless; `None` if never.
    pub deadline_ns: Option<u64>,
    /// Which client of the class.
    pub client: u32,
    /// Which file of the class.
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
    /// When the next request comes; `None` if none does before one is answered.
    fn next_ns(&self) -> Option<u64>;

    /// The request that comes next, if one does.
    fn take(&mut self) -> Option<Ask>;

    /// Is told that a request of this client was answered.
    fn answered(&mut self, now_ns: u64, client: u32) {
        let _ = (now_ns, client);
    }
}

/// Clients that each keep some requests outstanding, and think after each answer.
pub struct ClosedLoop<F> {
    /// When clients ask next, in order of time: all think alike.
    due: VecDeque<(u64, u32)>,
    think_ns: u64,
    end_ns: u64,
    draw: F,
}

impl<F: FnMut(u32) -> Ask + Send> ClosedLoop<F> {
    /// `clients` clients that each keep `depth` requests outstanding until `end_ns`. `draw` makes a client's next request;
    /// its time and client are set here.
    pub fn new(clients: u32, depth: u32, think_ns: u64, end_ns: u64, draw: F) -> Self {
        let due = (0..depth).flat_map(|_| (0..clients).map(|client| (0, client))).collect();
        ClosedLoop { due, think_ns, end_ns, draw }
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

    fn answered(&mut self, now_ns: u64, client: u32) {
        let at_ns = now_ns.saturating_add(self.think_ns);
        if at_ns < self.end_ns {
            self.due.push_back((at_ns, client));
        }
    }
}
