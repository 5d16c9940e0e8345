//! Cuts a body that arrives in chunks into JSON lines.
//!
//! Lives as long as one request. Memory is one unfinished line, whose length is bounded; a line that lies
//! completely inside a chunk is never copied. Knows bytes and line ends; knows nothing of JSON, records or
//! HTTP.

/// Editors of some platforms put this before a text; it is not part of it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A text from its beginning on, without the byte order mark that may stand before it.
#[must_use]
pub fn unmarked(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Lines end with LF or CRLF; the last one may lack it. A blank line is skipped, but counted: an index is the
/// line number in an editor, from 0.
#[derive(Debug)]
pub struct Lines {
    unfinished: Vec<u8>,
    next_index: usize,
    longest: usize,
}

/// Why a body cannot be cut into lines.
#[derive(Debug, thiserror::Error)]
pub enum LinesError<E> {
    #[error("line {index} is longer than {longest} bytes")]
    TooLong { index: usize, longest: usize },
    /// The receiver's error; no further line is handed out.
    #[error("the receiver refused a line")]
    Receiver(E),
}

impl Lines {
    /// Refuses lines longer than `longest` bytes.
    #[must_use]
    pub const fn new(longest: usize) -> Self {
        Self {
            unfinished: Vec::new(),
            next_index: 0,
            longest,
        }
    }

    /// How many complete lines were seen so far, blank ones included.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.next_index
    }

    /// Bytes of the unfinished line.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.unfinished.capacity()
    }

    /// Accepts the next bytes of the body and hands every line that they complete to `each`.
    pub fn feed<E>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), LinesError<E>> {
        let mut rest = chunk;
        while let Some((head, tail)) = split_at_line_end(rest) {
            rest = tail;
            if self.unfinished.is_empty() {
                self.hand_out(head, &mut each)?;
            } else {
                self.keep(head)?;
                self.hand_out_unfinished(&mut each)?;
            }
        }
        self.keep(rest)
    }

    /// Ends the body: hands out a last line that had no line end.
    pub fn finish<E>(
        &mut self,
        mut each: impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), LinesError<E>> {
        if self.unfinished.is_empty() {
            return Ok(());
        }
        self.hand_out_unfinished(&mut each)
    }

    fn keep<E>(&mut self, part: &[u8]) -> Result<(), LinesError<E>> {
        // One byte more than the limit, because it may turn out to be the CR of a CRLF.
        if self.unfinished.len().saturating_add(part.len()) > self.longest.saturating_add(1) {
            return Err(LinesError::TooLong {
                index: self.next_index,
                longest: self.longest,
            });
        }
        self.unfinished.extend_from_slice(part);
        Ok(())
    }

    fn hand_out_unfinished<E>(
        &mut self,
        each: &mut impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), LinesError<E>> {
        let mut line = std::mem::take(&mut self.unfinished);
        let outcome = self.hand_out(&line, each);
        line.clear();
        self.unfinished = line;
        outcome
    }

    fn hand_out<E>(
        &mut self,
        line: &[u8],
        each: &mut impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), LinesError<E>> {
        let index = self.next_index;
        self.next_index += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = if index == 0 { unmarked(line) } else { line };
        if line.len() > self.longest {
            return Err(LinesError::TooLong {
                index,
                longest: self.longest,
            });
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        each(index, line).map_err(LinesError::Receiver)
    }
}

/// The bytes before the first LF, and those after it.
fn split_at_line_end(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (line, rest) = bytes.split_at_checked(memchr::memchr(b'\n', bytes)?)?;
    Some((line, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(body: &[u8], chunk: usize, longest: usize) -> Result<Vec<(usize, Vec<u8>)>, LinesError<()>> {
        let mut lines = Lines::new(longest);
        let mut seen = Vec::new();
        for part in body.chunks(chunk.max(1)) {
            lines.feed(part, |index, line| {
                seen.push((index, line.to_vec()));
                Ok(())
            })?;
        }
        lines.finish(|index, line| {
            seen.push((index, line.to_vec()));
            Ok(())
        })?;
        Ok(seen)
    }

    #[test]
    fn rule_8_4_blank_lines_are_skipped_and_counted() {
        let seen = split(b"{}\n\n  \r\n{\"a\":1}\r\n\t\n{}", 3, 100).unwrap();
        assert_eq!(
            seen,
            [
                (0, b"{}".to_vec()),
                (3, b"{\"a\":1}".to_vec()),
                (5, b"{}".to_vec())
            ]
        );
    }

    #[test]
    fn a_line_longer_than_the_limit_is_refused_before_it_is_whole() {
        let mut lines = Lines::new(10);
        assert!(lines.feed(b"{}\n{\"value\":", |_, _| Ok::<_, ()>(())).is_ok());
        let error = lines.feed(b"1234567890", |_, _| Ok::<_, ()>(())).unwrap_err();
        assert!(matches!(
            error,
            LinesError::TooLong {
                index: 1,
                longest: 10
            }
        ));
        assert!(lines.unfinished.len() <= 11);
        assert!(
            split(b"1234567890\r\n", 1, 10).is_ok(),
            "the CR is no part of the line"
        );
        assert!(split(b"12345678901\r\n", 64, 10).is_err());
    }

    #[test]
    fn a_byte_order_mark_before_the_first_line_is_no_part_of_it() {
        assert_eq!(
            split(b"\xef\xbb\xbf{}\n{}", 100, 100).unwrap(),
            [(0, b"{}".to_vec()), (1, b"{}".to_vec())]
        );
    }

    #[test]
    fn a_refused_line_ends_the_splitting() {
        let mut seen = 0;
        let outcome = Lines::new(10).feed(b"a\nb\nc\n", |index, _| {
            seen += 1;
            if index == 1 { Err("no") } else { Ok(()) }
        });
        assert!(matches!(outcome, Err(LinesError::Receiver("no"))));
        assert_eq!(seen, 2);
    }

    proptest! {
        /// However a body is cut into chunks, its lines are the same.
        #[test]
        fn chunks_do_not_change_lines(
            body in proptest::collection::vec(
                prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), Just(b' '), any::<u8>()], 0..200,
            ),
            chunk in 1_usize..50
        ) {
            prop_assert_eq!(
                split(&body, chunk, 1000).unwrap(),
                split(&body, body.len(), 1000).unwrap()
            );
        }
    }
}
