//! Weir's own trace format: compact, checked, read from the start or at any place.
//!
//! A file is [`MARK`], chunks of requests, a chunk of none that ends them, an index, and a footer. Numbers are little endian.
//!
//! * A chunk: its number of requests, bytes of names, bytes of columns, and the CRC-32 of these three and of all that follows
//!   (u32 each). Names of devices that appear first in it: number (u32), length (u32), bytes. For each of 11 columns a head:
//!   base (u64), bytes of a stored value (u8: 0, 1, 2, 4 or 8), shift (u8). Then the columns. A value is
//!   `base + (stored << shift)`: frame of reference (Goldstein, Ramakrishnan, Shaft, "Compressing relations and indexes",
//!   ICDE 1998), so that a column with one value takes no space. The columns are those of [`chunk::Chunk`]. All chunks but the
//!   last have the same number of requests, at most [`MOST_REQUESTS`].
//! * The chunk that ends them: no requests; in place of columns the number of all requests (u64).
//! * The index: for each chunk its offset (u64), its earliest and its latest arrival (i64 each); for each device the end of
//!   its last byte (u64), the length of its name (u32), the name.
//! * The footer: numbers of requests, chunks and devices and the offset of the index (u64 each), requests of a chunk (u32),
//!   whether requests are in order of arrival (u32: 0 or 1), the CRC-32 of index and footer so far (u32), [`END_MARK`].

mod chunk;
mod encoder;
mod file;
mod index;
mod spool;

pub use chunk::Chunk;
pub(crate) use chunk::{HEAD_BYTES, Head, Names, decode_end};
pub(crate) use encoder::Encoder;
pub use file::{IntoRows, PackedFile, Rows};
pub use index::Index;
pub use spool::Spool;

/// The first bytes of a file; the last is the version.
pub const MARK: [u8; 8] = *b"weirtrc1";
/// The last bytes of a file.
pub const END_MARK: [u8; 8] = *b"weirend1";
/// Most requests in a chunk.
pub const MOST_REQUESTS: usize = 4096;
