//! Random rotational latency, for models that do not track the platter, and random deviations of seeks.

/// Draws times from 0 to a limit, each as likely: SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub(crate) struct RandomPhase {
    state: u64,
}

impl RandomPhase {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A time in `0..limit_ns`, such as an angle of a revolution.
    pub fn draw_ns(&mut self, limit_ns: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * u128::from(limit_ns)) >> 64) as u64
    }
}
