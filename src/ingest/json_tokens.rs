//! Reads JSON tokens that look the way programs write them. Anything else is `None`, valid or not: then the
//! complete way decides.
//!
//! Lives as long as one line, borrows it, and allocates nothing except for the names in large objects.

use super::given_once::Names;

/// How many objects and lists may stand within each other.
const DEEPEST_NESTING: usize = 16;

/// A position in a line.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// A number as written and as a float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NumberToken<'a> {
    pub raw: &'a str,
    pub value: f64,
    /// Without point and exponent.
    pub is_integer: bool,
}

/// Powers of ten that a float holds exactly.
const EXACT_POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The rest of the line.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    pub(super) const fn advance(&mut self, by: usize) {
        self.at += by;
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// Consumes `expected` if it comes next.
    pub(super) fn take(&mut self, expected: u8) -> bool {
        let comes = self.peek() == Some(expected);
        if comes {
            self.at += 1;
        }
        comes
    }

    /// Consumes a word such as `null` if it comes next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let comes = self.rest().starts_with(word.as_bytes());
        if comes {
            self.at += word.len();
        }
        comes
    }

    /// Consumes the string `text`, which has no escapes, if it comes next.
    pub(super) fn take_string(&mut self, text: &str) -> bool {
        let rest = self.rest().strip_prefix(b"\"");
        let rest = rest.and_then(|rest| rest.strip_prefix(text.as_bytes()));
        let comes = rest.and_then(<[u8]>::first) == Some(&b'"');
        if comes {
            self.at += text.len() + 2;
        }
        comes
    }

    /// Reads a string without escapes.
    pub(super) fn string(&mut self) -> Option<&'a str> {
        if !self.take(b'"') {
            return None;
        }
        let start = self.at;
        let length = plain_bytes(self.rest())?;
        self.at += length;
        if !self.take(b'"') {
            return None;
        }
        self.text.get(start..start + length)
    }

    /// Reads a string that may have escapes, but none of U+0000; returns it with its quotes.
    pub(super) fn escaped_string(&mut self) -> Option<&'a str> {
        let start = self.at;
        if !self.take(b'"') {
            return None;
        }
        loop {
            self.at += plain_bytes(self.rest())?;
            if self.take(b'"') {
                return self.text.get(start..self.at);
            }
            if !self.take(b'\\') {
                return None;
            }
            let kind = self.peek()?;
            self.at += 1;
            match kind {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                b'u' => self.code_point()?,
                _ => return None,
            }
        }
    }

    /// Reads what follows `\u`, with the second half if it is the first of a pair.
    fn code_point(&mut self) -> Option<()> {
        match self.code_unit()? {
            0 | 0xdc00..=0xdfff => None,
            0xd800..=0xdbff => {
                let is_followed = self.take_word("\\u");
                let second = self.code_unit().filter(|_| is_followed)?;
                (0xdc00..=0xdfff).contains(&second).then_some(())
            }
            _ => Some(()),
        }
    }

    fn code_unit(&mut self) -> Option<u16> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u16::from_str_radix(digits, 16).ok()
    }

    /// Reads any value, whose text is returned as it stands.
    pub(super) fn any_value(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.skip_value(DEEPEST_NESTING)?;
        self.text.get(start..self.at)
    }

    fn skip_value(&mut self, deepest: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.escaped_string().map(|_| ()),
            b'-' | b'0'..=b'9' => self.number().map(|_| ()),
            b't' => self.take_word("true").then_some(()),
            b'f' => self.take_word("false").then_some(()),
            b'n' => self.take_word("null").then_some(()),
            b'{' => self.skip_members(deepest),
            b'[' => self.skip_items(b']', deepest, |_| Some(())),
            _ => None,
        }
    }

    /// Reads an object whose members are given once. Names with escapes may be the same as others.
    fn skip_members(&mut self, deepest: usize) -> Option<()> {
        let mut names = Names::default();
        self.skip_items(b'}', deepest, |scanner| {
            let name = scanner.string()?;
            names.add(name).then(|| scanner.colon())?
        })
    }

    /// Reads the items of an object or a list up to the bracket that closes it. `name` reads what precedes
    /// the value of an item.
    fn skip_items(
        &mut self,
        closing: u8,
        deepest: usize,
        mut name: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        let deepest = deepest.checked_sub(1)?;
        self.at += 1;
        let mut is_first = true;
        while self.has_item(closing, is_first)? {
            name(self)?;
            self.skip_value(deepest)?;
            is_first = false;
        }
        Some(())
    }

    /// Whether another item follows in an object or a list, which then begins right here; otherwise the
    /// bracket that closes it is consumed.
    pub(super) fn has_item(&mut self, closing: u8, is_first: bool) -> Option<bool> {
        self.skip_blanks();
        if self.take(closing) {
            return Some(false);
        }
        if !is_first {
            self.take(b',').then(|| self.skip_blanks())?;
        }
        Some(true)
    }

    /// Consumes what stands between the name of a member and its value.
    pub(super) fn colon(&mut self) -> Option<()> {
        self.skip_blanks();
        self.take(b':').then(|| self.skip_blanks())
    }

    /// Reads a finite number. Few digits are exact by one division; more take the slow path.
    pub(super) fn number(&mut self) -> Option<NumberToken<'a>> {
        let start = self.at;
        let is_negative = self.take(b'-');
        let digits_start = self.at;
        let mut digits = 0_u64;
        self.digits(&mut digits);
        let whole_digits = self.at - digits_start;
        let has_leading_zero = self.text.as_bytes().get(digits_start) == Some(&b'0');
        if whole_digits == 0 || (whole_digits > 1 && has_leading_zero) {
            return None;
        }
        let mut fraction_digits = 0;
        let mut is_integer = true;
        if self.take(b'.') {
            let fraction_start = self.at;
            self.digits(&mut digits);
            fraction_digits = self.at - fraction_start;
            if fraction_digits == 0 {
                return None;
            }
            is_integer = false;
        }
        let has_exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if has_exponent {
            self.at += 1;
            if !self.take(b'+') {
                self.take(b'-');
            }
            let exponent_start = self.at;
            self.digits(&mut 0);
            if self.at == exponent_start {
                return None;
            }
            is_integer = false;
        }
        let raw = self.text.get(start..self.at)?;
        let value = match EXACT_POWERS.get(fraction_digits) {
            Some(power) if !has_exponent && whole_digits + fraction_digits <= 15 => {
                let magnitude = digits as f64 / power;
                if is_negative { -magnitude } else { magnitude }
            }
            _ => raw.parse().ok().filter(|value: &f64| value.is_finite())?,
        };
        Some(NumberToken {
            raw,
            value,
            is_integer,
        })
    }

    /// Reads decimal digits and appends them to `number`, which is meaningless once they exceed what fits.
    fn digits(&mut self, number: &mut u64) {
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            *number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
    }

    /// Reads an object or a list up to the bracket that closes it, without checking what is inside.
    pub(super) fn composite(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        let mut depth = 0_usize;
        let mut in_string = false;
        let mut escaped = false;
        for (distance, byte) in self.rest().iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        self.at += distance + 1;
                        return self.text.as_bytes().get(start..self.at);
                    }
                }
                _ if depth == 0 => return None,
                _ => {}
            }
        }
        None
    }
}

/// How many bytes precede the first that ends a string or must be escaped in one: a quote, a backslash or a
/// control character. `None` if there is none. Looks at eight bytes at a time.
fn plain_bytes(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let (words, rest) = text.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        // The first byte of the text is the lowest. A byte less than `n` borrows from its own high bit, and a
        // borrow can only reach further up from a byte that is found; so the lowest byte found is right.
        let word = u64::from_le_bytes(*word);
        let less = |word: u64, than: u64| word.wrapping_sub(ONES * than) & !word & HIGH;
        let found = less(word, 0x20) | less(word ^ (ONES * 0x22), 1) | less(word ^ (ONES * 0x5c), 1);
        if found != 0 {
            return Some(number * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let place = rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | ..=0x1f))?;
    Some(words.len() * 8 + place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ingest::given_once::given_twice;

    fn number(text: &str) -> Option<(f64, usize)> {
        let mut scanner = Scanner::new(text);
        scanner.number().map(|token| (token.value, scanner.at))
    }

    proptest! {
        /// A number has the value that the complete way gives it, to the last bit.
        #[test]
        fn numbers_are_exact(text in r"-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,19})?([eE][+-]?[0-9]{1,3})?") {
            let expected = serde_json::from_str::<f64>(&text).ok().map(|value| (value.to_bits(), text.len()));
            prop_assert_eq!(number(&text).map(|(value, end)| (value.to_bits(), end)), expected);
        }

        /// Only JSON is accepted as a number token.
        #[test]
        fn only_json_numbers_are_numbers(text in r"[-+0-9.eE]{1,8}") {
            if let Some((_, end)) = number(&text) {
                prop_assert!(serde_json::from_str::<f64>(&text[..end]).is_ok(), "{}", &text[..end]);
            }
        }

        /// Eight bytes at a time find the same as one at a time.
        #[test]
        fn the_end_of_a_string_is_found(text in prop::collection::vec(
            prop_oneof![
                any::<u8>(),
                prop::sample::select(vec![
                    0x1f, 0x20, 0x21, 0x22, 0x23, 0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0xa2, 0xdc, 0xff,
                ])
            ],
            0..40
        )) {
            let expected = text.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..=0x1f));
            prop_assert_eq!(plain_bytes(&text), expected);
        }

        /// Whatever is accepted as a value is JSON up to there, holds no U+0000, and no member twice.
        #[test]
        fn values_are_values(text in r#"([\[\]{}":,a1\-. ntrue\\u0dD8c]|\{"|"a":1,){0,24}"#) {
            let mut scanner = Scanner::new(&text);
            if let Some(found) = scanner.any_value() {
                let value: serde_json::Value = serde_json::from_str(found).unwrap();
                prop_assert!(!value.to_string().contains("\\u0000"), "{}", found);
                prop_assert_eq!(found, &text[..scanner.at]);
                prop_assert_eq!(given_twice(found), None, "{}", found);
            }
        }

        /// Objects are accepted if no member is given twice, however many there are.
        #[test]
        fn objects_are_accepted_with_each_member_once(names in prop::collection::vec(0..40_u8, 0..30)) {
            let members: Vec<String> = names.iter().map(|name| format!("\"{name}\":{{\"a\":1}}")).collect();
            let text = format!("[{{{}}}]", members.join(","));
            let is_accepted = Scanner::new(&text).any_value().is_some();
            prop_assert_eq!(is_accepted, given_twice(&text).is_none(), "{}", text);
        }

        /// A text is found with its escapes, whatever is in it, unless that is U+0000.
        #[test]
        fn texts_with_escapes_are_found(text in any::<String>(), ascii in any::<bool>()) {
            let mut written = serde_json::to_string(&text).unwrap();
            if ascii {
                let units = written.encode_utf16().map(|unit| match unit {
                    0x20..=0x7e => char::from(unit as u8).to_string(),
                    other => format!("\\u{other:04x}"),
                });
                written = units.collect();
            }
            let mut scanner = Scanner::new(&written);
            let found = scanner.escaped_string();
            prop_assert_eq!(found, (!text.contains('\0')).then_some(written.as_str()));
        }

        #[test]
        fn a_string_that_is_accepted_has_the_text_that_json_gives_it(text in r#""[a"\\ü\x00-\x20]{0,6}"#) {
            let mut scanner = Scanner::new(&text);
            if let Some(found) = scanner.string() {
                prop_assert_eq!(serde_json::from_str::<String>(&text[..scanner.at]).unwrap(), found);
            }
        }
    }
}
