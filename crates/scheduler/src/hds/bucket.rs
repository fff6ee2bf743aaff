//! Token bucket in integer arithmetic.

/// Parts of a token: unit of levels (10^-6 token/s times 1 ns).
const PARTS: i128 = 1_000_000_000_000_000;
/// Unit of rates: 10^-6 token/s.
const MILLIONTHS: u64 = 1_000_000;
/// Bytes per token: 1 KB (section 3.4).
const TOKEN_BYTES: u64 = 1024;

/// Whole tokens of a request of this size.
pub fn tokens_of(size_bytes: u32) -> u64 {
    u64::from(size_bytes).div_ceil(TOKEN_BYTES)
}

/// Rate in tokens per second, in steps of 10^-6.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// Rate of whole tokens per second; 1 token is 1 KB.
    pub fn per_s(tokens: u64) -> Rate {
        Rate(tokens.saturating_mul(MILLIONTHS))
    }

    /// Rate in 10^-6 token/s.
    pub fn millionths_per_s(self) -> u64 {
        self.0
    }

    /// `part / whole` of the rate, rounded down; 0 if `whole` is 0.
    pub(super) fn part(self, part: u64, whole: u64) -> Rate {
        let share = u128::from(self.0) * u128::from(part) / u128::from(whole.max(1));
        Rate(u64::try_from(share).unwrap_or(u64::MAX))
    }

    pub(super) fn minus(self, other: Rate) -> Rate {
        Rate(self.0.saturating_sub(other.0))
    }

    pub(super) fn plus(self, other: Rate) -> Rate {
        Rate(self.0.saturating_add(other.0))
    }

    /// Rate from parts of a token and a time in ns.
    pub(super) fn of(parts: i128, ns: u64) -> Rate {
        Rate(u64::try_from(parts / i128::from(ns.max(1))).unwrap_or(0))
    }

    pub(super) fn times(self, count: u64) -> Rate {
        Rate(self.0.saturating_mul(count))
    }

    /// Parts of a token that arrive in a time.
    pub(super) fn parts_in(self, ns: u64) -> i128 {
        i128::from(self.0) * i128::from(ns)
    }
}

/// A token bucket: filled at a rate up to its capacity. It can be in debt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bucket {
    rate: Rate,
    depth_tokens: u64,
    level_parts: i128,
    /// Time of the last fill.
    at_ns: u64,
}

impl Bucket {
    /// An empty bucket, filled from `now_ns` on.
    pub(super) fn new(now_ns: u64) -> Self {
        Bucket { at_ns: now_ns, ..Bucket::default() }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    pub(super) fn depth_tokens(&self) -> u64 {
        self.depth_tokens
    }

    /// Whole tokens at the time of the last fill; negative in debt.
    pub(super) fn tokens(&self) -> i128 {
        self.level_parts.div_euclid(PARTS)
    }

    /// Fills the bucket up to now; earlier times change nothing.
    pub(super) fn fill(&mut self, now_ns: u64) {
        let earned = self.rate.parts_in(now_ns.saturating_sub(self.at_ns));
        // The minimum: the paper's Fig. 2 has `max` here.
        self.level_parts = (self.level_parts + earned).min(self.depth_parts());
        self.at_ns = self.at_ns.max(now_ns);
    }

    /// Changes rate and capacity from the time of the last fill on.
    pub(super) fn set(&mut self, rate: Rate, depth_tokens: u64) {
        self.rate = rate;
        self.depth_tokens = depth_tokens;
        self.level_parts = self.level_parts.min(self.depth_parts());
    }

    /// Removes tokens, into debt if necessary.
    pub(super) fn take(&mut self, tokens: u64) {
        self.level_parts -= i128::from(tokens) * PARTS;
    }

    /// Empties the bucket; a debt stays.
    pub(super) fn forfeit(&mut self) {
        self.level_parts = self.level_parts.min(0);
    }

    /// Whether the bucket can supply a request: it has enough tokens, or is full and smaller than the request.
    pub(super) fn can_supply(&self, tokens: u64) -> bool {
        self.level_parts >= self.needed_parts(tokens)
    }

    /// Earliest time at which it can supply a request, without other use; `u64::MAX` if never.
    pub(super) fn ready_ns(&self, tokens: u64) -> u64 {
        self.reaches_ns(self.needed_parts(tokens))
    }

    /// Time at which it leaves debt.
    pub(super) fn debt_end_ns(&self) -> u64 {
        self.reaches_ns(0)
    }

    fn reaches_ns(&self, parts: i128) -> u64 {
        let missing = parts - self.level_parts;
        if missing <= 0 {
            return self.at_ns;
        }
        if self.rate.0 == 0 {
            return u64::MAX;
        }
        let rate = i128::from(self.rate.0);
        let wait_ns = u64::try_from((missing + rate - 1) / rate).unwrap_or(u64::MAX);
        self.at_ns.saturating_add(wait_ns)
    }

    fn needed_parts(&self, tokens: u64) -> i128 {
        i128::from(tokens.min(self.depth_tokens)) * PARTS
    }

    fn depth_parts(&self) -> i128 {
        i128::from(self.depth_tokens) * PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(per_s: u64, depth_tokens: u64) -> Bucket {
        let mut bucket = Bucket::new(0);
        bucket.set(Rate::per_s(per_s), depth_tokens);
        bucket
    }

    #[test]
    fn a_request_takes_whole_tokens_of_a_kilobyte() {
        assert_eq!([1, 1024, 1025, 16 * 1024].map(tokens_of), [1, 1, 2, 16]);
    }

    #[test]
    fn it_is_filled_to_its_depth_and_no_further() {
        let mut bucket = bucket(100, 30);
        bucket.fill(100_000_000);
        assert_eq!(bucket.tokens(), 10);
        bucket.fill(50_000_000);
        assert_eq!(bucket.tokens(), 10);
        bucket.fill(10_000_000_000);
        assert_eq!(bucket.tokens(), 30);
        bucket.set(Rate::per_s(100), 20);
        assert_eq!(bucket.tokens(), 20);
    }

    #[test]
    fn it_is_ready_to_the_nanosecond() {
        let mut bucket = bucket(3, 30);
        let ready_ns = bucket.ready_ns(10);
        assert_eq!(ready_ns, 3_333_333_334);
        bucket.fill(ready_ns - 1);
        assert!(!bucket.can_supply(10));
        bucket.fill(ready_ns);
        assert!(bucket.can_supply(10));
    }

    #[test]
    fn more_than_it_holds_is_supplied_when_it_is_full_and_paid_back_later() {
        let mut bucket = bucket(10, 5);
        assert_eq!(bucket.ready_ns(20), 500_000_000);
        bucket.fill(500_000_000);
        bucket.take(20);
        assert_eq!(bucket.tokens(), -15);
        assert_eq!(bucket.debt_end_ns(), 2_000_000_000);
        assert_eq!(bucket.ready_ns(20), 2_500_000_000);
    }

    #[test]
    fn one_that_is_not_filled_never_supplies() {
        let bucket = bucket(0, 1);
        assert!(!bucket.can_supply(1));
        assert_eq!(bucket.ready_ns(1), u64::MAX);
    }
}
