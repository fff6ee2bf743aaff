//! Checksums in the page headers of a column.
//!
//! The Parquet library reads page checksums but writes none. The header that it makes is completed here.

use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

/// Writes pages with checksums to memory, for a column of a row group.
pub(crate) struct ChecksummedPages<'a> {
    /// Written bytes.
    pub(crate) chunk: &'a mut Vec<u8>,
}

impl PageWriter for ChecksummedPages<'_> {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        let checksum = crc32fast::hash(page.data());
        let data_bytes = page.data().len();
        let mut plain = TrackedWrite::new(Vec::new());
        let mut spec = SerializedPageWriter::new(&mut plain).write_page(page)?;
        let plain = plain.into_inner()?;
        let (header, data) = plain.split_at(plain.len() - data_bytes);
        let complete = with_checksum(header, checksum)
            .ok_or_else(|| ParquetError::General("the library writes other page headers".to_owned()))?;
        spec.offset = self.chunk.len() as u64;
        self.chunk.extend_from_slice(&complete);
        self.chunk.extend_from_slice(data);
        let more = complete.len() - header.len();
        spec.uncompressed_size += more;
        spec.compressed_size += more;
        spec.bytes_written = (complete.len() + data.len()) as u64;
        Ok(spec)
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Thrift's compact protocol: a field of type `i32` whose number is one more than that of the field before.
const NEXT_FIELD_I32: u8 = 0x15;

/// A page header with field 4, `crc`, behind the first three (`parquet.thrift`, struct `PageHeader`: type and two sizes); `None`
/// if it does not begin with these or has that field.
fn with_checksum(header: &[u8], checksum: u32) -> Option<Vec<u8>> {
    let mut at = 0;
    for _ in 0..3 {
        if *header.get(at)? != NEXT_FIELD_I32 {
            return None;
        }
        at += 1;
        while header.get(at)? & 0x80 != 0 {
            at += 1;
        }
        at += 1;
    }
    // The upper half has the difference of the next field's number from 3; it now counts from 4.
    let next = *header.get(at)?;
    if next >> 4 < 2 {
        return None;
    }
    let mut complete = header[..at].to_vec();
    complete.push(NEXT_FIELD_I32);
    let signed = checksum as i32;
    let mut rest = ((signed << 1) ^ (signed >> 31)) as u32;
    while rest >= 0x80 {
        complete.push((rest as u8) | 0x80);
        rest >>= 7;
    }
    complete.push(rest as u8);
    complete.push(next - 0x10);
    complete.extend_from_slice(&header[at + 1..]);
    Some(complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_comes_between_the_sizes_and_what_follows() {
        // Type 0, sizes 300 and 5, then field 5.
        let header = [0x15, 0x00, 0x15, 0xd8, 0x04, 0x15, 0x0a, 0x2c, 0x77, 0x00];
        let complete = with_checksum(&header, 1).unwrap();
        assert_eq!(complete, [0x15, 0x00, 0x15, 0xd8, 0x04, 0x15, 0x0a, 0x15, 0x02, 0x1c, 0x77, 0x00]);
        assert_eq!(with_checksum(&header, u32::MAX).unwrap()[7..9], [0x15, 0x01]);
        // It has one already; it is something else; it is cut short.
        assert_eq!(with_checksum(&complete, 1), None);
        assert_eq!(with_checksum(&header[1..], 1), None);
        assert_eq!(with_checksum(&header[..5], 1), None);
    }
}
