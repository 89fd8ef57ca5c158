//! Checks Parquet pages before they are decoded.
//!
//! The parquet crate (60.1) allocates the size that a page's header claims, which may be gigabytes in a damaged file,
//! and aborts the process if the allocation fails. The claims are therefore checked first: those of all page headers,
//! and of the few dictionary pages.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::basic::{Compression, Type};
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::ipc::MAX_RATIO;
use crate::memory;

/// Page type, uncompressed size and compressed size: each an `i32` of at most five bytes, after one byte for the field.
const HEADER_START: u64 = 18;
/// Compact Thrift: the next field, of type `i32`.
const NEXT_I32: u8 = 0x15;

/// Checks the pages of the columns in `mask`.
pub(super) fn check(input: File, metadata: &ParquetMetaData, mask: &ProjectionMask) -> Result<()> {
    let input = Arc::new(Watched { file: input, last: AtomicU64::new(0) });
    for group in metadata.row_groups() {
        let rows = usize::try_from(group.num_rows()).map_err(|_| wrong("a negative number of rows"))?;
        for (_, column) in group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf)) {
            check_column(&input, column, rows)?;
        }
    }
    Ok(())
}

fn check_column(input: &Arc<Watched>, column: &ColumnChunkMetaData, rows: usize) -> Result<()> {
    let mut pages = SerializedPageReader::new(input.clone(), column, rows, None)?;
    while let Some(page) = pages.peek_next_page()? {
        // The last read was that of the peeked header.
        let Sizes { unpacked, packed } = input.sizes()?.ok_or_else(|| wrong("a page without a size"))?;
        // The other codecs compress less, but for Brotli, of which one byte can stand for any number of zeros.
        let limited = !matches!(column.compression(), Compression::BROTLI(_));
        if limited && unpacked > packed.saturating_mul(MAX_RATIO as usize) {
            return Err(wrong("a page that claims to unpack to more than its bytes can hold"));
        }
        memory::check("a page", unpacked, "").map_err(|why| wrong(&why))?;
        if !page.is_dict {
            pages.skip_next_page()?;
        } else if let Some(Page::DictionaryPage { buf, num_values, .. }) = pages.get_next_page()? {
            let bits = least_bits(column).saturating_mul(num_values as usize);
            if bits > buf.len().saturating_mul(8) {
                return Err(wrong("a dictionary with fewer values than it claims"));
            }
        }
    }
    Ok(())
}

/// The minimum number of bits of a value in a dictionary.
fn least_bits(column: &ColumnChunkMetaData) -> usize {
    match column.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 32,
        Type::INT64 | Type::DOUBLE => 64,
        Type::INT96 => 96,
        Type::FIXED_LEN_BYTE_ARRAY => 8 * usize::try_from(column.column_descr().type_length()).unwrap_or(0).max(1),
    }
}

/// A file that remembers the position of the last read.
struct Watched {
    file: File,
    last: AtomicU64,
}

impl Watched {
    /// The sizes claimed by the page header that was read last.
    fn sizes(&self) -> Result<Option<Sizes>> {
        let mut header = Vec::new();
        self.file.get_read(self.last.load(Ordering::Relaxed))?.take(HEADER_START).read_to_end(&mut header)?;
        Ok(Sizes::read(&header))
    }
}

impl Length for Watched {
    fn len(&self) -> u64 {
        Length::len(&self.file)
    }
}

impl ChunkReader for Watched {
    type T = <File as ChunkReader>::T;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.last.store(start, Ordering::Relaxed);
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.saturating_add(length as u64) > Length::len(self) {
            return Err(wrong("a page extends past the end of the file"));
        }
        self.file.get_bytes(start, length)
    }
}

/// Sizes of a page without and with compression, as its header claims them.
#[derive(Debug, PartialEq)]
struct Sizes {
    unpacked: usize,
    packed: usize,
}

impl Sizes {
    /// Reads the start of a page header. The sizes are its second and third field: fields are in order, and both are
    /// required.
    fn read(header: &[u8]) -> Option<Sizes> {
        let (_, rest) = number(header.strip_prefix(&[NEXT_I32])?)?;
        let (unpacked, rest) = number(rest.strip_prefix(&[NEXT_I32])?)?;
        let (packed, _) = number(rest.strip_prefix(&[NEXT_I32])?)?;
        Some(Sizes { unpacked: usize::try_from(unpacked).ok()?, packed: usize::try_from(packed).ok()? })
    }
}

/// Reads a number in compact Thrift: seven bits per byte, lowest first, with the sign in the lowest bit.
fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let length = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
    let (number, rest) = bytes.split_at(length);
    let value = number.iter().rev().fold(0_u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
    Some(((value >> 1) as i64 ^ -((value & 1) as i64), rest))
}

fn wrong(why: &str) -> ParquetError {
    ParquetError::General(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_the_header_of_a_page() {
        let largest = [NEXT_I32, 0, NEXT_I32, 0xfe, 0xff, 0xff, 0xff, 0x0f, NEXT_I32, 2];
        assert_eq!(Sizes::read(&largest), Some(Sizes { unpacked: i32::MAX as usize, packed: 1 }));
        let sizes = Sizes { unpacked: 64, packed: 1 };
        assert_eq!(Sizes::read(&[NEXT_I32, 4, NEXT_I32, 0x80, 0x01, NEXT_I32, 2]), Some(sizes));
        assert_eq!(Sizes::read(&[NEXT_I32, 4, NEXT_I32, 1, NEXT_I32, 2]), None, "negative");
        for end in 0..10 {
            assert_eq!(Sizes::read(&largest[..end]), None, "{end}");
        }
    }
}
