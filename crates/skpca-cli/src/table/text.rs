//! Reads text in chunks of whole lines.
//!
//! ```text
//! file:   chunks of some megabytes
//! pipe:   the lines available now; waits only if there is none
//! ```

use std::io::{self, BufRead, Read};

/// Bytes of a file per chunk; few in tests, so that small tables have several chunks.
const SLAB: usize = if cfg!(test) { 1 << 7 } else { 4 << 20 };
/// Bytes requested per system call: the usual capacity of a pipe.
const READ: usize = if cfg!(test) { 1 << 5 } else { 1 << 16 };
/// A longer line is left to the record reader, which reads it piece by piece.
const LONGEST: usize = 16 << 20;

/// A text, with a buffer of bytes that were read but not consumed yet.
pub(super) struct Text<'a> {
    input: Box<dyn Read + 'a>,
    /// Whether the writer may be waiting for an answer to each line.
    pub live: bool,
    buffer: Vec<u8>,
    /// Start of the unconsumed bytes in the buffer.
    used: usize,
    /// End of the bytes read into the buffer.
    end: usize,
    /// End of the last whole line in the buffer.
    lines: usize,
    ended: bool,
    /// Number of bytes consumed so far.
    pub position: u64,
}

impl<'a> Text<'a> {
    pub fn new(input: Box<dyn Read + 'a>, live: bool) -> Text<'a> {
        Text { input, live, buffer: Vec::new(), used: 0, end: 0, lines: 0, ended: false, position: 0 }
    }

    /// Returns the whole lines that are available, at least one. Empty at the end, and if a line is too long.
    pub fn whole_lines(&mut self) -> io::Result<&[u8]> {
        let wanted = if self.live { 1 } else { SLAB };
        while !self.ended && self.end - self.used < LONGEST.max(SLAB) {
            let whole = self.lines.saturating_sub(self.used);
            if whole > 0 && self.end - self.used >= wanted {
                break;
            }
            self.more()?;
        }
        let end = if self.ended { self.end } else { self.lines.max(self.used) };
        Ok(&self.buffer[self.used..end])
    }

    /// Whether all of the text was consumed.
    pub fn is_over(&self) -> bool {
        self.ended && self.used == self.end
    }

    /// Reads with one system call.
    fn more(&mut self) -> io::Result<()> {
        if self.used > 0 {
            self.buffer.copy_within(self.used..self.end, 0);
            (self.lines, self.end) = (self.lines.saturating_sub(self.used), self.end - self.used);
            self.used = 0;
        }
        if self.buffer.len() < self.end + READ {
            let more = self.end + READ - self.buffer.len();
            self.buffer.try_reserve(more).map_err(io::Error::other)?;
            self.buffer.resize(self.end + READ, 0);
        }
        let count = loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.ended = count == 0;
        let new = &self.buffer[self.end..self.end + count];
        if let Some(last) = new.iter().rposition(|&byte| byte == b'\n') {
            self.lines = self.end + last + 1;
        }
        self.end += count;
        Ok(())
    }
}

impl Read for Text<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let from = self.fill_buf()?;
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Text<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.end && !self.ended {
            self.more()?;
        }
        Ok(&self.buffer[self.used..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.used += count;
        self.position += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers a few bytes per read, as a pipe does.
    struct Drips(Vec<&'static str>);

    impl Read for Drips {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let text = self.0.remove(0).as_bytes();
            into[..text.len()].copy_from_slice(text);
            Ok(text.len())
        }
    }

    fn lines(drips: &[&'static str], live: bool) -> Vec<String> {
        let mut text = Text::new(Box::new(Drips(drips.to_vec())), live);
        let mut all = Vec::new();
        while !text.is_over() {
            let lines = String::from_utf8(text.whole_lines().unwrap().to_vec()).unwrap();
            text.consume(lines.len());
            all.push(lines);
        }
        assert_eq!(text.position, drips.concat().len() as u64);
        all
    }

    #[test]
    fn a_pipe_delivers_lines_as_they_arrive() {
        assert_eq!(lines(&["a", "b\n", "c\nd\ne", "f\ng"], true), ["ab\n", "c\nd\n", "ef\n", "g"]);
    }

    #[test]
    fn a_file_is_read_in_chunks_of_whole_lines() {
        let drips = ["0123456789\n"; 30];
        let slabs = lines(&drips, false);
        assert_eq!(slabs.concat(), drips.concat());
        assert!(slabs.len() > 1 && slabs.iter().all(|slab| slab.ends_with('\n')), "{slabs:?}");
    }
}
