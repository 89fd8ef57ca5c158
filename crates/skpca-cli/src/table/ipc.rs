//! Checks the messages of an Arrow stream before they are decoded.
//!
//! ```text
//! stream: schema, batch, batch, …, end marker          message: FFFFFFFF, length, metadata, body
//! file:   ARROW1, stream, index, its length, ARROW1    end marker: FFFFFFFF 00000000
//! ```
//!
//! Files are read as streams too: messages are in order anyway, and the stream reader (arrow-ipc 60.1), unlike the one
//! that uses the index, does not trust sizes larger than the file. However, it accepts a stream that was cut between
//! two messages, and allocates whatever size a compressed buffer claims, which aborts the process if memory runs out.
//! Both are checked first.

use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

use arrow_ipc::{Message, RecordBatch, root_as_message};

use crate::memory;

const MAGIC: &[u8] = b"ARROW1";
/// The magic word is padded with zeros to 8 bytes (C++) or 64 (Rust).
const PADDING: usize = 64;
/// Maximum compression ratio: in zstd a block of 128 kB takes at least four bytes; in LZ4 the ratio is at most 255.
pub(super) const MAX_RATIO: i64 = 1 << 15;
const FEATHER_V1_MAGIC: &[u8] = b"FEA1";
/// Precedes the length of a message; old versions lack it.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes of a file after its index: four bytes of length, and the magic word.
const TRAILER: u64 = 4 + MAGIC.len() as u64;

/// The range of the messages in a file.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub start: u64,
    /// The latest possible end.
    end: u64,
}

impl Stream {
    pub fn find(input: &mut (impl Read + Seek)) -> io::Result<Stream> {
        let mut head = Vec::new();
        input.take(PADDING as u64).read_to_end(&mut head)?;
        let end = input.seek(SeekFrom::End(0))?;
        if head.starts_with(FEATHER_V1_MAGIC) {
            return Err(io::Error::other("it is Feather version 1, expected version 2"));
        }
        let Some(padding) = head.strip_prefix(MAGIC) else {
            return Ok(Stream { start: 0, end });
        };
        let mut tail = [0; TRAILER as usize];
        input.seek(SeekFrom::Start(end.saturating_sub(TRAILER)))?;
        // Without this a file cut between two batches would read as a shorter table.
        if input.read_exact(&mut tail).is_err() || !tail.ends_with(MAGIC) {
            return Err(io::Error::other("it does not end with ARROW1"));
        }
        let index = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        let zeros = padding.iter().take_while(|&&byte| byte == 0).count();
        // Messages begin at multiples of 8. Round down, since an old message may begin with a zero byte.
        let start = (MAGIC.len() + zeros) as u64 / 8 * 8;
        Ok(Stream { start, end: end.saturating_sub(TRAILER + index) })
    }
}

/// Checks all messages without reading their bodies.
pub(super) fn check<R: Read + Seek>(input: &mut BufReader<R>, stream: Stream) -> io::Result<()> {
    let mut at = input.seek(SeekFrom::Start(stream.start))?;
    while let Some((metadata, body)) = next(input, &mut at, stream.end)? {
        check_message(input, &metadata, body)?;
        at = input.seek(SeekFrom::Start(at))?;
    }
    // Padding may follow, but no further rows.
    match stream.end.saturating_sub(at) {
        0..8 => Ok(()),
        more => Err(io::Error::other(format!("{more} bytes come after the end of its first table"))),
    }
}

/// Returns the metadata of the next message and the position of its body, and advances `at` past it; `None` at the end
/// marker.
fn next<R: Read + Seek>(input: &mut BufReader<R>, at: &mut u64, end: u64) -> io::Result<Option<(Vec<u8>, u64)>> {
    let mut length = read_four(input, at)?;
    if length == CONTINUATION {
        length = read_four(input, at)?;
    }
    let length = u64::from(u32::from_le_bytes(length));
    if length == 0 {
        return Ok(None);
    }
    memory::check("a message", usize::try_from(length).unwrap_or(usize::MAX), "").map_err(io::Error::other)?;
    let mut metadata = Vec::new();
    if length > end.saturating_sub(*at) || input.take(length).read_to_end(&mut metadata)? as u64 != length {
        return Err(cut_short("a message extends past the end"));
    }
    let message = parse(&metadata)?;
    let body = u64::try_from(message.bodyLength()).map_err(|_| io::Error::other("a message of negative length"))?;
    let begins = *at + length;
    if body > end.saturating_sub(begins) {
        return Err(cut_short("a message extends past the end"));
    }
    *at = begins + body;
    Ok(Some((metadata, begins)))
}

fn parse(metadata: &[u8]) -> io::Result<Message<'_>> {
    root_as_message(metadata).map_err(|error| io::Error::other(format!("a message is damaged: {error}")))
}

fn read_four(input: &mut impl Read, at: &mut u64) -> io::Result<[u8; 4]> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => cut_short("it has no end marker"),
        _ => error,
    })?;
    *at += 4;
    Ok(bytes)
}

/// Rejects a message whose body and decompressed buffers need more memory than is free.
fn check_message<R: Read + Seek>(input: &mut BufReader<R>, metadata: &[u8], body: u64) -> io::Result<()> {
    let message = parse(metadata)?;
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let mut needed = usize::try_from(message.bodyLength()).unwrap_or(usize::MAX);
    if let Some(batch) = message.header_as_record_batch().or(dictionary) {
        needed = needed.saturating_add(unpacked(input, batch, body)?);
    }
    memory::check("a message", needed, "").map_err(io::Error::other)
}

/// The total decompressed size of a batch's buffers, which each buffer states in its first eight bytes.
fn unpacked<R: Read + Seek>(input: &mut BufReader<R>, batch: RecordBatch, body: u64) -> io::Result<usize> {
    let mut sum = 0_usize;
    if batch.compression().is_none() {
        return Ok(sum);
    }
    for buffer in batch.buffers().into_iter().flatten().filter(|buffer| buffer.length() >= 8) {
        let offset = u64::try_from(buffer.offset()).map_err(|_| io::Error::other("a buffer before its message"))?;
        input.seek(SeekFrom::Start(body.saturating_add(offset)))?;
        let mut claim = [0; 8];
        input.read_exact(&mut claim).map_err(|_| cut_short("a buffer extends past the end"))?;
        // A negative size means that the buffer is not compressed.
        let claim = i64::from_le_bytes(claim);
        if claim > buffer.length().saturating_mul(MAX_RATIO) {
            return Err(io::Error::other("a buffer claims a decompressed size that is impossible for its length"));
        }
        sum = sum.saturating_add(usize::try_from(claim).unwrap_or(0));
    }
    Ok(sum)
}

fn cut_short(what: &str) -> io::Error {
    io::Error::other(format!("{what}; the file seems to be cut short"))
}
