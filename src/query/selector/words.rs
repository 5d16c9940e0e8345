//! Tokenises a selector before the parser of the whole language reads it.
//!
//! What the parser would silently misread is refused or read here: numbers and lengths that it drops, rounds
//! or cannot hold, and nesting that is deeper than any selector's. If the parser rejects a text, this module
//! names the part that is not supported.

use super::SelectorError;
use crate::model::time::MICROS_PER_SECOND;

/// The most signs that a selector can have outside of quoted texts.
const MOST_SIGNS: usize = 128;
/// The most seconds in a length or moment: more lies outside the calendar, from any moment.
const MOST_SECONDS: i64 = 1_000_000_000_000;
/// The most digits of a number in a length.
const MOST_DIGITS: usize = 15;
/// Units of lengths with their milliseconds, in the order in which they must appear. A day has 24 hours and a
/// year 365 days.
const UNITS: [(&str, i128); 7] = [
    ("y", 365 * 86_400_000),
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];
/// Words between two selectors.
const OPERATORS: [&str; 4] = ["and", "or", "unless", "atan2"];
/// Words that follow the name of an aggregation.
const GROUPINGS: [&str; 2] = ["by", "without"];

/// A text that the parser reads correctly.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// Every length is a plain number of seconds.
    pub(super) text: String,
    /// The moment after `@`, in microseconds since 1970: the parser only supports milliseconds.
    pub(super) moment: Option<i64>,
    /// For each comparison of a label, in order, whether it is with a pattern. `text` compares with plain
    /// texts: the parser would compile every pattern at once, however large it grows. A quoted text that
    /// stands alone is compared with the name, and not as a pattern.
    pub(super) patterns: Vec<bool>,
}

impl Words {
    pub(super) fn read(text: &str) -> Result<Self, SelectorError> {
        let mut reader = Reader::new(text.len());
        for lexeme in lexemes(text) {
            // Only the very next lexeme continues a comparison.
            let begun = reader.comparison.take();
            match lexeme {
                Lexeme::Blank(text) => reader.words.text.push_str(text),
                Lexeme::Quoted(text) => reader.quoted(text),
                Lexeme::Word(word) => reader.word(word)?,
                Lexeme::Sign(sign) => reader.sign(sign, begun)?,
            }
        }
        Ok(reader.words)
    }
}

/// Reads a text lexeme by lexeme.
#[derive(Debug)]
struct Reader {
    words: Words,
    signs: usize,
    in_labels: bool,
    /// Whether the next lexeme but blanks is the first one of a label.
    label_begins: bool,
    /// Whether a quoted text began the label, and nothing else has come since.
    quoted_alone: bool,
    /// The start of a comparison that the next sign may continue.
    comparison: Option<char>,
    /// Set when a moment follows; whether it is before 1970.
    moment_follows: Option<bool>,
}

impl Reader {
    fn new(length: usize) -> Self {
        let words = Words {
            text: String::with_capacity(length),
            moment: None,
            patterns: Vec::new(),
        };
        Self {
            words,
            signs: 0,
            in_labels: false,
            label_begins: false,
            quoted_alone: false,
            comparison: None,
            moment_follows: None,
        }
    }

    fn quoted(&mut self, text: &str) {
        self.quoted_alone = std::mem::take(&mut self.label_begins);
        self.words.text.push_str(text);
    }

    fn word(&mut self, word: &str) -> Result<(), SelectorError> {
        // Labels are names, however much like numbers they look.
        let seconds = if self.in_labels { None } else { seconds(word)? };
        if let (Some(seconds), Some(is_before)) = (&seconds, self.moment_follows.take()) {
            self.words.moment = micros(seconds, is_before);
        }
        self.words.text.push_str(seconds.as_deref().unwrap_or(word));
        Ok(())
    }

    /// `begun`: the start of the comparison that this sign may continue.
    fn sign(&mut self, sign: char, begun: Option<char>) -> Result<(), SelectorError> {
        // Comments are useless here, and the parser interprets escapes even in raw strings.
        if matches!(sign, '#' | '`') {
            return Err(SelectorError::Unsupported {
                token: sign.to_string(),
            });
        }
        self.signs += 1;
        if self.signs > MOST_SIGNS {
            return Err(SelectorError::Malformed {
                reason: format!("there are more than {MOST_SIGNS} signs"),
            });
        }
        self.moment_follows = self.moment_sign(sign);
        if self.in_labels && begun.is_none() && matches!(sign, '=' | '!') {
            self.comparison = Some(sign);
            self.words.patterns.push(false);
        }
        if std::mem::take(&mut self.quoted_alone) && matches!(sign, ',' | '}') {
            self.words.patterns.push(false);
        }
        self.in_labels = (self.in_labels || sign == '{') && sign != '}';
        self.label_begins = self.in_labels && matches!(sign, '{' | ',');
        match (begun, sign) {
            (Some(begun), '~') => self.pattern(begun),
            (_, sign) => self.words.text.push(sign),
        }
        Ok(())
    }

    /// Whether a moment follows a sign, and is before 1970.
    const fn moment_sign(&self, sign: char) -> Option<bool> {
        match (sign, self.moment_follows) {
            ('@', _) if !self.in_labels => Some(false),
            ('+' | '-', Some(_)) => Some(sign == '-'),
            _ => None,
        }
    }

    /// Turns the comparison that `begun` starts, which is with a pattern, into one with a plain text.
    fn pattern(&mut self, begun: char) {
        if begun == '!' {
            self.words.text.push('=');
        }
        if let Some(is_pattern) = self.words.patterns.last_mut() {
            *is_pattern = true;
        }
    }
}

/// The first part of a text that the language supports but selectors do not.
pub(super) fn unsupported(text: &str) -> Option<String> {
    let lexemes: Vec<Lexeme<'_>> = lexemes(text)
        .filter(|lexeme| !matches!(lexeme, Lexeme::Blank(_)))
        .collect();
    let mut closing = None;
    let mut number_follows = false;
    for (place, lexeme) in lexemes.iter().enumerate() {
        let next = lexemes.get(place + 1);
        match (closing, *lexeme) {
            (Some(']'), Lexeme::Sign(':')) => return Some(":".to_owned()),
            (Some(close), Lexeme::Sign(sign)) if sign == close => closing = None,
            (Some(_), _) => {}
            (None, Lexeme::Sign('{')) => closing = Some('}'),
            (None, Lexeme::Sign('[')) => closing = Some(']'),
            (None, Lexeme::Word(word)) => {
                let is_called = match next {
                    Some(Lexeme::Sign(sign)) => *sign == '(',
                    Some(Lexeme::Word(next)) => is_one_of(next, &GROUPINGS),
                    _ => false,
                };
                if is_called || (place > 0 && is_one_of(word, &OPERATORS)) {
                    return Some(said(word));
                }
                number_follows = word.eq_ignore_ascii_case("offset");
            }
            (None, Lexeme::Sign('@')) => number_follows = true,
            (None, Lexeme::Sign('+' | '-')) if number_follows => {}
            (None, Lexeme::Sign(sign @ ('=' | '!' | '<' | '>'))) => {
                let second = match next {
                    Some(Lexeme::Sign(second @ ('=' | '~'))) => Some(*second),
                    _ => None,
                };
                return Some(std::iter::once(sign).chain(second).collect());
            }
            (None, Lexeme::Sign(sign @ ('+' | '-' | '*' | '/' | '%' | '^' | '('))) => {
                return Some(sign.to_string());
            }
            (None, _) => {}
        }
    }
    None
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

#[derive(Clone, Copy, Debug)]
enum Lexeme<'a> {
    Blank(&'a str),
    /// With its quotes.
    Quoted(&'a str),
    /// A name, a number or a length.
    Word(&'a str),
    Sign(char),
}

fn lexemes(text: &str) -> impl Iterator<Item = Lexeme<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let until = |ends: fn(char) -> bool| rest.find(ends).unwrap_or(rest.len());
        let length = match first {
            '"' | '\'' => quoted(rest, first),
            _ if is_word(first) => until(|character| !is_word(character)),
            _ if first.is_whitespace() => until(|character| !character.is_whitespace()),
            _ => first.len_utf8(),
        };
        let (lexeme, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(match first {
            '"' | '\'' => Lexeme::Quoted(lexeme),
            _ if is_word(first) => Lexeme::Word(lexeme),
            _ if first.is_whitespace() => Lexeme::Blank(lexeme),
            _ => Lexeme::Sign(first),
        })
    })
}

const fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.')
}

/// The length of the quoted text that `rest` begins with, up to the end if it is not closed.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, character) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return place + 1;
        }
    }
    rest.len()
}

/// The seconds that a word stands for, as a plain decimal; `None` if it does not begin like a number.
fn seconds(word: &str) -> Result<Option<String>, SelectorError> {
    let wrong = || SelectorError::NoNumber(said(word));
    if is_one_of(word, &["inf", "nan", "infinity"]) {
        return Err(wrong());
    }
    if !word.starts_with(|character: char| character.is_ascii_digit() || character == '.') {
        return Ok(None);
    }
    if word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        let number: f64 = word.parse().map_err(|_| wrong())?;
        return if number <= MOST_SECONDS as f64 {
            Ok(Some(word.to_owned()))
        } else {
            Err(SelectorError::TooFar(said(word)))
        };
    }
    let mut millis: i128 = 0;
    let (mut rest, mut units) = (word, UNITS.as_slice());
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (amount, after) = rest.split_at_checked(digits).ok_or_else(wrong)?;
        let unit = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, after) = after.split_at_checked(unit).ok_or_else(wrong)?;
        let place = units
            .iter()
            .position(|(name, _)| *name == unit)
            .ok_or_else(wrong)?;
        if digits > MOST_DIGITS {
            return Err(SelectorError::TooFar(said(word)));
        }
        let amount: i128 = amount.parse().map_err(|_| wrong())?;
        let length = units.get(place).map_or(0, |(_, length)| *length);
        millis += amount * length;
        units = units.get(place + 1..).unwrap_or_default();
        rest = after;
    }
    // A longer length leaves the calendar from any moment just as well.
    let millis = millis.min(i128::from(MOST_SECONDS) * 1000);
    Ok(Some(format!("{}.{:03}", millis / 1000, millis % 1000)))
}

/// Converts decimal seconds to microseconds. Finer digits are cut off, so that no moment becomes later.
fn micros(seconds: &str, is_before: bool) -> Option<i64> {
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut micros = whole.checked_mul(MICROS_PER_SECOND)?;
    let mut unit = MICROS_PER_SECOND;
    for digit in fraction.bytes().take(6) {
        unit /= 10;
        micros += i64::from(digit - b'0') * unit;
    }
    let is_finer = fraction.bytes().skip(6).any(|digit| digit != b'0');
    Some(if is_before {
        -micros - i64::from(is_finer)
    } else {
        micros
    })
}

/// The beginning of a text from a request.
pub(super) fn said(text: &str) -> String {
    const ENOUGH: usize = 200;
    text.chars().take(ENOUGH).collect()
}
