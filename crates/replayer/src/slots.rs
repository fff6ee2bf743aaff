//! Slots: a table whose entries keep their number.

/// Entries by number; numbers are reused.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    entries: Vec<Option<T>>,
    vacant: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { entries: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Reserves a free number for the caller.
    pub fn vacancy(&mut self) -> usize {
        self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        })
    }

    /// Puts an entry under a number from [`Slots::vacancy`].
    pub fn fill(&mut self, slot: usize, entry: T) {
        self.entries[slot] = Some(entry);
    }

    pub fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.entries.get_mut(slot)?.as_mut()
    }

    /// Takes an entry out; its number is free again.
    pub fn take(&mut self, slot: usize) -> Option<T> {
        let entry = self.entries.get_mut(slot)?.take()?;
        self.vacant.push(slot);
        Some(entry)
    }

    /// Number of entries, including reserved numbers.
    pub fn occupied(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.vacant.clear();
        self.entries.drain(..).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stable_and_used_again() {
        let mut slots = Slots::default();
        for name in ["a", "b", "c"] {
            let slot = slots.vacancy();
            slots.fill(slot, name);
        }
        assert_eq!((slots.take(1), slots.take(1), slots.take(9)), (Some("b"), None, None));
        assert_eq!((slots.occupied(), slots.get_mut(2)), (2, Some(&mut "c")));
        assert_eq!(slots.vacancy(), 1);
        slots.fill(1, "d");
        assert_eq!(slots.drain().collect::<Vec<_>>(), ["a", "d", "c"]);
        assert_eq!(slots.occupied(), 0);
    }
}
