//! Changes of a stream before it is sent: repeated, and with pauses.

use weir_records::Request;

/// A stream that is sent several times, one mean gap after its last request.
pub struct Looped<F, I> {
    open: F,
    round: Option<I>,
    number: u64,
    /// Whether the round under way had a request.
    had_one: bool,
    repeat: Repeat,
}

/// How a stream is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// Rounds; `None` for as many as begin before `until_ns`.
    pub rounds: Option<u64>,
    /// Requests intended at this time or later are left out.
    pub until_ns: Option<i64>,
    /// From the first request of a round to the first of the next, ns: above 0.
    pub round_ns: i64,
    /// Requests of a round.
    pub requests: u64,
    /// Added to all addresses in each round, bytes. Behind the end of the target they go on at its beginning.
    pub shift_bytes: u64,
}

impl<F, I> Looped<F, I>
where
    F: FnMut() -> I,
    I: Iterator<Item = Request>,
{
    /// Repeats what `open` returns.
    pub fn new(open: F, repeat: Repeat) -> Self {
        Looped { open, round: None, number: 0, had_one: false, repeat }
    }
}

impl<F, I> Iterator for Looped<F, I>
where
    F: FnMut() -> I,
    I: Iterator<Item = Request>,
{
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        loop {
            if self.round.is_none() {
                if self.repeat.rounds.is_some_and(|rounds| self.number >= rounds) {
                    return None;
                }
                self.round = Some((self.open)());
                self.had_one = false;
            }
            let Some(mut request) = self.round.as_mut().and_then(Iterator::next) else {
                self.round = None;
                self.number += 1;
                if !self.had_one {
                    // It cannot be read, or is empty: so are all other rounds.
                    self.repeat.rounds = Some(0);
                    return None;
                }
                continue;
            };
            self.had_one = true;
            let by_ns = i64::try_from(self.number).unwrap_or(i64::MAX).saturating_mul(self.repeat.round_ns);
            delay(&mut request, by_ns);
            request.request =
                request.request.saturating_add(self.number.saturating_mul(self.repeat.requests));
            if self.repeat.until_ns.is_some_and(|until_ns| request.intended_ns >= until_ns) {
                // All others of the round are later, and so are those of the next rounds.
                self.repeat.rounds = Some(0);
                self.round = None;
                return None;
            }
            return Some(request);
        }
    }
}

impl<F, I> Looped<F, I> {
    /// How far the addresses of the round under way are shifted, bytes.
    pub fn shift_bytes(&self) -> u64 {
        self.number.saturating_mul(self.repeat.shift_bytes)
    }
}

/// The place of a request whose addresses are shifted within a target of `limit_bytes`: behind the end it goes on at the
/// beginning, in whole units of `unit_bytes`.
pub fn shifted(offset: u64, size_bytes: u64, by_bytes: u64, limit_bytes: u64, unit_bytes: u64) -> u64 {
    let unit_bytes = unit_bytes.max(1);
    let places = limit_bytes.saturating_sub(size_bytes) / unit_bytes + 1;
    let within = offset % unit_bytes;
    let place = (u128::from(offset / unit_bytes) + u128::from(by_bytes / unit_bytes)) % u128::from(places);
    (place as u64 * unit_bytes + within).min(limit_bytes.saturating_sub(size_bytes))
}

/// A pause of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause {
    /// Time in the stream, from which on requests wait.
    pub at_ns: i64,
    /// How long.
    pub for_ns: i64,
}

/// A stream, in order of intended time, with pauses.
pub struct Paused<I> {
    source: I,
    pauses: Vec<Pause>,
    passed: usize,
    by_ns: i64,
}

impl<I: Iterator<Item = Request>> Paused<I> {
    /// Pauses `source`.
    pub fn new(source: I, mut pauses: Vec<Pause>) -> Self {
        pauses.sort_unstable();
        Paused { source, pauses, passed: 0, by_ns: 0 }
    }
}

impl<I: Iterator<Item = Request>> Iterator for Paused<I> {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let mut request = self.source.next()?;
        while let Some(pause) = self.pauses.get(self.passed)
            && pause.at_ns <= request.intended_ns
        {
            self.by_ns = self.by_ns.saturating_add(pause.for_ns);
            self.passed += 1;
        }
        delay(&mut request, self.by_ns);
        Some(request)
    }
}

/// Moves all times of a request.
fn delay(request: &mut Request, by_ns: i64) {
    request.intended_ns = request.intended_ns.saturating_add(by_ns);
    for time in [
        &mut request.submitted_ns,
        &mut request.completed_ns,
        &mut request.deadline_ns,
        &mut request.served_ns,
    ] {
        *time = time.map(|time| time.saturating_add(by_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn request(number: u64, intended_ns: i64) -> Request {
        Request { completed_ns: Some(intended_ns + 5), ..testing::request(number, intended_ns) }
    }

    fn two() -> impl Iterator<Item = Request> {
        (0..2).map(|number| request(number, number as i64 * 10))
    }

    const REPEAT: Repeat =
        Repeat { rounds: Some(2), until_ns: None, round_ns: 20, requests: 2, shift_bytes: 4096 };

    #[test]
    fn rounds_follow_one_another() {
        let found: Vec<_> = Looped::new(two, REPEAT)
            .map(|request| (request.request, request.intended_ns, request.completed_ns))
            .collect();
        assert_eq!(found, [(0, 0, Some(5)), (1, 10, Some(15)), (2, 20, Some(25)), (3, 30, Some(35))]);
        let for_a_time = Repeat { rounds: None, until_ns: Some(45), ..REPEAT };
        assert_eq!(Looped::new(two, for_a_time).count(), 5);
        let empty = Repeat { requests: 0, rounds: None, ..REPEAT };
        assert_eq!(Looped::new(std::iter::empty, empty).count(), 0);
        let mut looped = Looped::new(two, REPEAT);
        let shifts: Vec<_> = std::iter::from_fn(|| looped.next().map(|_| looped.shift_bytes())).collect();
        assert_eq!(shifts, [0, 0, 4096, 4096]);
    }

    #[test]
    fn shifted_addresses_stay_within_the_target() {
        assert_eq!(shifted(0, 512, 4096, 1 << 20, 512), 4096);
        assert_eq!(shifted((1 << 20) - 512, 512, 512, 1 << 20, 512), 0);
        assert_eq!(shifted(700, 512, 1024, 1 << 20, 512), 1724);
        for by in 0..5000 {
            let at = shifted(8192, 4096, by * 512, 65_536, 512);
            assert!(at + 4096 <= 65_536, "{by}: {at}");
        }
    }

    #[test]
    fn requests_wait_from_a_pause_on() {
        let pauses = vec![Pause { at_ns: 20, for_ns: 100 }, Pause { at_ns: 10, for_ns: 1 }];
        let found: Vec<_> = Paused::new((0..4).map(|number| request(number, number as i64 * 10)), pauses)
            .map(|request| request.intended_ns)
            .collect();
        assert_eq!(found, [0, 11, 121, 131]);
    }
}
