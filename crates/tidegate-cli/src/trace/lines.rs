//! Lines of bounded length: a file without a line break must not end up in memory.

use std::io::{self, BufRead};

use super::BadLine;

/// The longest line that is read, in bytes without its end: 1 MiB.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The lines of an input, numbered from 1, in a buffer that is used again for each.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
}

/// A line and its number, or why it cannot be had.
pub type Line<'a> = (u64, Result<&'a [u8], BadLine>);

impl<R: BufRead> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R) -> Self {
        Lines { input, line: Vec::new(), number: 0 }
    }

    /// The next line without its end, `None` after the last one. What follows the last line break is a line if
    /// there is anything.
    ///
    /// # Errors
    /// The input's.
    #[expect(clippy::should_implement_trait, reason = "a line is lent, which an iterator cannot do")]
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let mut length = 0_usize;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if chunk.is_empty() && length == 0 {
                return Ok(None);
            }
            length = length.saturating_add(part.len());
            if length <= MAX_LINE_BYTES {
                self.line.extend_from_slice(part);
            }
            let (used, ended) = (part.len() + usize::from(end.is_some()), end.is_some() || chunk.is_empty());
            self.input.consume(used);
            if ended {
                break;
            }
        }
        self.number += 1;
        if length > MAX_LINE_BYTES {
            return Ok(Some((self.number, Err(BadLine::too_long(length)))));
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        // A byte order mark is no part of the first line, whatever wrote it.
        let line = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| self.number == 1).unwrap_or(line);
        Ok(Some((self.number, Ok(line))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], buffer: usize) -> Vec<Result<Vec<u8>, String>> {
        let mut lines = Lines::new(io::BufReader::with_capacity(buffer, input));
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            found.push(line.map(<[u8]>::to_vec).map_err(|error| error.to_string()));
            assert_eq!(number, found.len() as u64);
        }
        found
    }

    #[test]
    fn a_line_ends_with_a_break_or_the_input() {
        for buffer in [1, 2, 3, 64] {
            assert_eq!(all(b"", buffer), []);
            assert_eq!(all(b"a", buffer), [Ok(b"a".to_vec())]);
            assert_eq!(all(b"a\n", buffer), [Ok(b"a".to_vec())]);
            let lines = [Ok(b"ab".to_vec()), Ok(b"".to_vec()), Ok(b"c\xff".to_vec())];
            assert_eq!(all(b"\xef\xbb\xbfab\r\n\nc\xff", buffer), lines);
            assert_eq!(all(b"\n", buffer), [Ok(b"".to_vec())]);
        }
    }

    #[test]
    fn a_line_too_long_is_passed_over_whole() {
        let mut input = vec![b'x'; MAX_LINE_BYTES];
        input.push(b'\n');
        input.extend(vec![b'y'; MAX_LINE_BYTES + 1]);
        input.extend(b"\nz");
        let lines = all(&input, 4096);
        assert_eq!(lines[0].as_ref().map(Vec::len), Ok(MAX_LINE_BYTES));
        assert!(lines[1].as_ref().unwrap_err().contains("1048577 bytes"), "{:?}", lines[1]);
        assert_eq!(lines[2], Ok(b"z".to_vec()));
        assert!(Lines::new(&input[..]).line.capacity() <= MAX_LINE_BYTES);
    }
}
