//! Random rotational latency, for models that do not track the platter.

/// Draws angles from 0 to a revolution, each as likely: SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub(crate) struct RandomPhase {
    state: u64,
}

impl RandomPhase {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// An angle in `0..revolution_ns`.
    pub fn draw_ns(&mut self, revolution_ns: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * u128::from(revolution_ns)) >> 64) as u64
    }
}
