//! File layout: striping over the heads of a volume.

use super::scatter::{Scatter, UnitPlace};
use super::server_run::ServerError;
use super::split_mix::SplitMix;

/// Heads of a striped volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Index of the first head among all heads of the server.
    pub first_head: u32,
    /// Number of heads, at least 1.
    pub heads: u32,
}

/// Placement of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// One behind the other, from a byte of each head on.
    Packed {
        /// That byte.
        from_bytes: u64,
    },
    /// Over the whole of each head, at equal distances and in random order; each begins on a random head. With too little
    /// space files overlap: virtual time has no data to lose.
    Spread {
        /// Of the random order.
        seed: u64,
    },
}

/// Position of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePlace {
    /// Its first byte in the volume's striped space.
    pub start_bytes: u64,
    /// Its size.
    pub size_bytes: u64,
}

/// The files of a class on a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassLayout {
    /// The heads.
    pub volume: Volume,
    /// Stripe unit n is on head n modulo the number of heads, unless `places` has another position.
    pub stripe_unit_bytes: u64,
    /// First byte of each head that belongs to the striped space.
    pub base_bytes: u64,
    /// Place of each stripe unit, if not round robin over the heads.
    pub places: Option<Vec<UnitPlace>>,
    /// The files.
    pub files: Vec<FilePlace>,
}

/// Contiguous part of a request on one head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) head: u32,
    pub(super) offset_bytes: u64,
    pub(super) size_bytes: u32,
}

/// Maximum size of a piece: pieces fit one request.
const LARGEST_PIECE_BYTES: u64 = 1 << 30;

impl ClassLayout {
    /// Lays out files of these sizes on heads of `head_bytes` each.
    ///
    /// # Errors
    /// The stripe unit is 0, there are no heads, or the files do not fit.
    pub fn new(
        volume: Volume,
        stripe_unit_bytes: u64,
        head_bytes: u64,
        sizes_bytes: &[u64],
        placement: Placement,
    ) -> Result<Self, ServerError> {
        if stripe_unit_bytes == 0 || volume.heads == 0 {
            return Err(ServerError::Layout(
                "a volume needs a head and a stripe unit of at least a byte".into(),
            ));
        }
        let mut layout =
            ClassLayout { volume, stripe_unit_bytes, base_bytes: 0, places: None, files: Vec::new() };
        layout.files = match placement {
            Placement::Packed { from_bytes } => {
                layout.base_bytes = from_bytes;
                packed(sizes_bytes)
            }
            Placement::Spread { seed } => spread(volume, stripe_unit_bytes, head_bytes, sizes_bytes, seed),
        };
        let needed = layout.base_bytes.saturating_add(layout.used_bytes());
        if needed > head_bytes {
            return Err(ServerError::Layout(format!(
                "files exceed the heads (found {needed} bytes of each head, expected at most {head_bytes}). Use larger or more \
                 heads, or fewer files"
            )));
        }
        Ok(layout)
    }

    /// Lays out files of these sizes at random free places. Each file begins with a row of stripe
    /// units: one on each head.
    ///
    /// # Errors
    /// Same as [`Scatter::take`].
    pub fn scattered(
        volume: Volume,
        stripe_unit_bytes: u64,
        sizes_bytes: &[u64],
        scatter: &mut Scatter,
    ) -> Result<Self, ServerError> {
        let row_bytes = stripe_unit_bytes.saturating_mul(u64::from(volume.heads)).max(1);
        let mut next = 0u64;
        let mut place = |size_bytes: &u64| {
            let start_bytes = next;
            next = next.saturating_add(size_bytes.div_ceil(row_bytes).saturating_mul(row_bytes));
            FilePlace { start_bytes, size_bytes: *size_bytes }
        };
        let files = sizes_bytes.iter().map(&mut place).collect();
        let units = next.checked_div(stripe_unit_bytes).unwrap_or(0);
        let places = Some(scatter.take(volume, stripe_unit_bytes, units)?);
        Ok(ClassLayout { volume, stripe_unit_bytes, base_bytes: 0, places, files })
    }

    /// Place of a stripe unit.
    fn unit(&self, number: u64) -> UnitPlace {
        let heads = u64::from(self.volume.heads);
        match &self.places {
            Some(places) => places[number as usize],
            None => UnitPlace {
                head: self.volume.first_head + (number % heads) as u32,
                offset_bytes: self.base_bytes + number / heads * self.stripe_unit_bytes,
            },
        }
    }

    /// Bytes of each head, behind the base, that files reach to.
    pub fn used_bytes(&self) -> u64 {
        let row_bytes = self.stripe_unit_bytes.saturating_mul(u64::from(self.volume.heads));
        let end = |file: &FilePlace| file.start_bytes.saturating_add(file.size_bytes);
        let rows = self.files.iter().map(|file| end(file).div_ceil(row_bytes)).max().unwrap_or(0);
        rows.saturating_mul(self.stripe_unit_bytes)
    }

    /// Numbers the stripe units of files without gaps: by file, what the number of a unit in the striped space is above that
    /// number; and how many there are. Units that files share have one number.
    pub(super) fn numbering(&self) -> (Vec<u64>, u64) {
        let unit = self.stripe_unit_bytes;
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        order.sort_by_key(|file| self.files[*file].start_bytes);
        let mut gaps = vec![0; self.files.len()];
        let (mut end, mut gap) = (0u64, 0u64);
        for file in order {
            let FilePlace { start_bytes, size_bytes } = self.files[file];
            let first = start_bytes / unit;
            gap += first.saturating_sub(end);
            gaps[file] = gap;
            end = end.max(first).max(start_bytes.saturating_add(size_bytes).div_ceil(unit));
        }
        (gaps, end - gap)
    }

    /// Appends the pieces of bytes `from..to` of the striped space. What follows on the piece before on its head is one
    /// with it.
    pub(super) fn pieces(&self, from: u64, to: u64, pieces: &mut Vec<Piece>) {
        let (unit, heads) = (self.stripe_unit_bytes, u64::from(self.volume.heads));
        let (mut number, mut within) = (from / unit, from % unit);
        // The first units of a request are on different heads: no piece is before them.
        let apart = match (&self.places, pieces.is_empty()) {
            (_, false) => number,
            (None, true) => number + heads,
            (Some(_), true) => number + heads - number % heads,
        };
        let mut at = from;
        while at < to {
            let end = (at + unit - within).min(to);
            let UnitPlace { head, offset_bytes } = self.unit(number);
            let offset_bytes = offset_bytes + within;
            let size = end - at;
            // Each row of units is on every head, so the last piece of this head is less than two rows back.
            let back =
                if number < apart { pieces.len() } else { pieces.len().saturating_sub(2 * heads as usize) };
            let last = pieces[back..].iter_mut().rev().find(|piece| piece.head == head);
            match last {
                Some(piece)
                    if piece.offset_bytes + u64::from(piece.size_bytes) == offset_bytes
                        && u64::from(piece.size_bytes) + size <= LARGEST_PIECE_BYTES =>
                {
                    piece.size_bytes += size as u32;
                }
                _ => {
                    let mut cut = at;
                    while cut < end {
                        let size = (end - cut).min(LARGEST_PIECE_BYTES);
                        let offset_bytes = offset_bytes + (cut - at);
                        pieces.push(Piece { head, offset_bytes, size_bytes: size as u32 });
                        cut += size;
                    }
                }
            }
            at = end;
            (number, within) = (number + 1, 0);
        }
    }
}

fn packed(sizes_bytes: &[u64]) -> Vec<FilePlace> {
    let mut next = 0u64;
    sizes_bytes
        .iter()
        .map(|size_bytes| {
            let start_bytes = next;
            next = next.saturating_add(*size_bytes);
            FilePlace { start_bytes, size_bytes: *size_bytes }
        })
        .collect()
}

fn spread(volume: Volume, unit: u64, head_bytes: u64, sizes_bytes: &[u64], seed: u64) -> Vec<FilePlace> {
    let heads = u64::from(volume.heads);
    let count = sizes_bytes.len() as u64;
    let mut random = SplitMix(seed);
    let mut slots: Vec<u64> = (0..count).collect();
    random.shuffle(&mut slots);
    let rows = head_bytes / unit;
    slots
        .iter()
        .zip(sizes_bytes)
        .map(|(slot, size_bytes)| {
            let first_head = random.below(heads);
            // A row more where the file does not begin on the first head.
            let needed = (size_bytes.div_ceil(unit) + first_head).div_ceil(heads);
            let room = rows.saturating_sub(needed);
            let row = (u128::from(room) * u128::from(*slot) / u128::from(count.max(2) - 1)) as u64;
            FilePlace { start_bytes: (row * heads + first_head) * unit, size_bytes: *size_bytes }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn layout(
        heads: u32,
        unit: u64,
        sizes: &[u64],
        placement: Placement,
    ) -> Result<ClassLayout, ServerError> {
        ClassLayout::new(Volume { first_head: 3, heads }, unit, 64 * MIB, sizes, placement)
    }

    #[test]
    fn units_go_round_the_heads_and_rows_are_contiguous() {
        let layout = layout(2, 4096, &[MIB], Placement::Packed { from_bytes: 8192 }).unwrap();
        let mut pieces = Vec::new();
        layout.pieces(1000, 3 * 4096 + 10, &mut pieces);
        let piece = |head, offset_bytes, size_bytes| Piece { head, offset_bytes, size_bytes };
        assert_eq!(pieces, [piece(3, 8192 + 1000, 3096 + 4096), piece(4, 8192, 4096 + 10)]);
    }

    #[test]
    fn units_are_numbered_without_gaps_and_shared_ones_once() {
        let mut layout = layout(2, 4096, &[1], Placement::Packed { from_bytes: 0 }).unwrap();
        let place = |start_bytes, size_bytes| FilePlace { start_bytes, size_bytes };
        // Units 10 to 12, 12 to 14 and 14, then 20, and 2 of two small files.
        layout.files = vec![
            place(10 * 4096, 3 * 4096),
            place(12 * 4096 + 100, 2 * 4096),
            place(14 * 4096 + 200, 300),
            place(20 * 4096, 1),
            place(2 * 4096, 10),
            place(2 * 4096 + 10, 10),
        ];
        assert_eq!(layout.numbering(), (vec![9, 9, 9, 14, 2, 2], 7));
        layout.files.clear();
        assert_eq!(layout.numbering(), (vec![], 0));
    }

    #[test]
    fn files_that_do_not_fit_are_refused() {
        let error = layout(1, 4096, &[65 * MIB], Placement::Packed { from_bytes: 0 }).unwrap_err();
        assert!(error.to_string().contains("68157440 bytes of each head"), "{error}");
        assert!(layout(0, 4096, &[1], Placement::Spread { seed: 1 }).is_err());
    }

    #[test]
    fn spread_files_reach_from_the_first_to_the_last_cylinder() {
        let layout = layout(4, 65536, &[MIB; 20], Placement::Spread { seed: 9 }).unwrap();
        let row = |file: &FilePlace| file.start_bytes / (4 * 65536);
        let rows: Vec<u64> = layout.files.iter().map(row).collect();
        assert_eq!(rows.iter().min(), Some(&0));
        assert!(*rows.iter().max().unwrap() >= 1024 - 5, "{rows:?}");
        assert_ne!(rows, {
            let mut sorted = rows.clone();
            sorted.sort_unstable();
            sorted
        });
    }

    proptest! {
        /// Against a table of all bytes.
        #[test]
        fn scattered_pieces_are_where_their_units_are(
            seed: u64, heads in 1u32..5, sizes in prop::collection::vec(1u64..300, 1..6), at in 0u64..300, size in 1u64..300,
        ) {
            let mut scatter = Scatter::new(8, 6400, 64, seed).unwrap();
            let volume = Volume { first_head: 2, heads };
            let layout = ClassLayout::scattered(volume, 16, &sizes, &mut scatter).unwrap();
            let places = layout.places.clone().unwrap();
            let mut owners = std::collections::BTreeMap::new();
            for (file, number) in layout.files.iter().zip(0..) {
                prop_assert_eq!(file.start_bytes % (16 * u64::from(heads)), 0);
                for byte in 0..file.size_bytes {
                    let place = places[((file.start_bytes + byte) / 16) as usize];
                    let on = (place.head, place.offset_bytes + byte % 16);
                    prop_assert_eq!(owners.insert(on, (number, byte)), None);
                }
            }
            let file = layout.files[0];
            let (from, to) = (at % file.size_bytes, (at % file.size_bytes + size).min(file.size_bytes));
            let mut pieces = Vec::new();
            layout.pieces(file.start_bytes + from, file.start_bytes + to, &mut pieces);
            let mut read: Vec<u64> = pieces
                .iter()
                .flat_map(|p| (0..u64::from(p.size_bytes)).map(|at| (p.head, p.offset_bytes + at)))
                .map(|on| owners[&on])
                .map(|(number, byte)| if number == 0 { byte } else { u64::MAX })
                .collect();
            read.sort_unstable();
            prop_assert_eq!(read, (from..to).collect::<Vec<_>>());
        }

        #[test]
        fn pieces_cover_every_byte_once(
            heads in 1u32..6, unit in 1u64..40, from in 0u64..500, size in 1u64..400,
        ) {
            let layout = layout(heads, unit, &[1000], Placement::Packed { from_bytes: 7 }).unwrap();
            let mut pieces = Vec::new();
            layout.pieces(from, from + size, &mut pieces);
            // Behind a cache the units of a request come one by one.
            let mut one_by_one = Vec::new();
            let mut at = from;
            while at < from + size {
                let next = ((at / unit + 1) * unit).min(from + size);
                layout.pieces(at, next, &mut one_by_one);
                at = next;
            }
            prop_assert_eq!(&one_by_one, &pieces);
            let mut seen: Vec<(u32, u64)> = pieces
                .iter()
                .flat_map(|piece| (0..u64::from(piece.size_bytes)).map(|at| (piece.head, piece.offset_bytes + at)))
                .collect();
            let mut wanted: Vec<(u32, u64)> = (from..from + size)
                .map(|at| {
                    let number = at / unit;
                    let offset = 7 + number / u64::from(heads) * unit + at % unit;
                    (3 + (number % u64::from(heads)) as u32, offset)
                })
                .collect();
            seen.sort_unstable();
            wanted.sort_unstable();
            prop_assert_eq!(seen, wanted);
            prop_assert!(pieces.len() <= heads as usize);
        }
    }
}
