//! Regular expressions, with a limit on what one text may cost.
//!
//! The engine is linear in the text, but as a last resort it takes a step for each byte and each state of the
//! pattern, and nothing interrupts it. So where a text might cost much by that reckoning, it is matched by an
//! automaton whose states are made as the text needs them, which gives up where that gains nothing. What then
//! remains is left to the engine if it is bearable, and refused otherwise. The answer is the same in any
//! case. Short texts are left to the engine at once.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use regex::Regex;
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_syntax::hir::{Hir, HirKind, Look};

/// The steps that are as good as none: they take a fraction of a second at most.
pub const FEW_STEPS: u64 = 1 << 26;
/// The most steps for one text.
pub const MOST_STEPS: u64 = 1 << 30;

/// Texts of so many bytes take fewer steps than [`MOST_STEPS`] with any pattern that the engine takes.
const SHORT: usize = 512;
/// How often the automaton may run out of memory within one text, unless its states serve it well.
const MOST_CLEARINGS: usize = 3;
/// The bytes that each state of the automaton has to serve from then on.
const BYTES_PER_STATE: usize = 64;

/// The pattern takes too many steps for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pattern is too costly for a text of {bytes} bytes; write a shorter one, or leave out long texts")]
pub struct CostlyText {
    pub bytes: usize,
}

/// A regular expression.
#[derive(Debug)]
pub struct WeighedPattern {
    regex: Regex,
    automaton: OnceLock<Automaton>,
}

/// What a pattern is weighed by, made when a text is long enough to need it.
#[derive(Debug)]
struct Automaton {
    states: u64,
    /// None of a pattern that is too large for one.
    lazy: Option<DFA>,
    /// The same where words end at letters without accents too, if `lazy` has to stop at others. It tells how
    /// far a search reads.
    reading: Option<DFA>,
}

/// The states that automata of one pattern have made, kept from one text to the next to be used again.
#[derive(Debug, Default)]
pub struct MadeStates(Option<Box<Cache>>);

impl WeighedPattern {
    /// A pattern whose flags, if any, are written in its text.
    #[must_use]
    pub const fn new(regex: Regex) -> Self {
        Self {
            regex,
            automaton: OnceLock::new(),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    /// Whether the pattern is found in `text`.
    pub fn is_match(&self, made: &mut MadeStates, text: &str) -> Result<bool, CostlyText> {
        let bytes = text.len();
        if bytes <= SHORT {
            return Ok(self.regex.is_match(text));
        }
        let steps = self.steps(bytes);
        if steps > FEW_STEPS
            && let Some(lazy) = self.lazy()
        {
            let input = Input::new(text).earliest(true);
            if let Ok(found) = lazy.try_search_fwd(made.afresh(lazy), &input) {
                return Ok(found.is_some());
            }
        }
        if steps > MOST_STEPS {
            return Err(CostlyText { bytes });
        }
        Ok(self.regex.is_match(text))
    }

    /// Whether texts of so many bytes in all take a fraction of a second at most.
    #[must_use]
    pub fn is_fast(&self, bytes: usize) -> bool {
        bytes <= SHORT || self.steps(bytes) <= FEW_STEPS
    }

    /// The most steps that one search takes in a text of so many bytes.
    #[must_use]
    pub fn steps(&self, bytes: usize) -> u64 {
        self.automaton().states.saturating_mul(bytes as u64 + 1)
    }

    /// The most steps that the search for all places takes where the pattern is found in `text`. Each search
    /// begins where the one before found something, however far that one had to read, so that this can be
    /// far more than the text is long.
    pub fn steps_for_all(&self, made: &mut MadeStates, text: &str) -> u64 {
        let worst = self.steps_for_any(text.len());
        if worst <= FEW_STEPS {
            return worst;
        }
        let states = self.automaton().states;
        let automaton = self.automaton();
        let reading = automaton.reading.as_ref().or(automaton.lazy.as_ref());
        let read = reading.and_then(|lazy| read_for_all(lazy, made, text, MOST_STEPS / states.max(1)));
        read.map_or(worst, |read| read.saturating_mul(states))
    }

    /// The most steps that the search for all places takes in any text of so many bytes.
    #[must_use]
    pub fn steps_for_any(&self, bytes: usize) -> u64 {
        self.steps(bytes).saturating_mul(bytes as u64 + 1)
    }

    /// The number of groups whose places the pattern can tell.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.regex.captures_len()
    }

    /// The most groups that lie in each other. No part of a text is found by more of them at once, since what
    /// a repeated group finds is of one repetition.
    #[must_use]
    pub fn nested_groups(&self) -> usize {
        // What the engine took is taken here too.
        regex_syntax::parse(self.as_str()).map_or_else(|_| self.groups(), |parsed| nested_groups(&parsed))
    }

    fn lazy(&self) -> Option<&DFA> {
        self.automaton().lazy.as_ref()
    }

    fn automaton(&self) -> &Automaton {
        self.automaton.get_or_init(|| match states(self.regex.as_str()) {
            Some(states) => Automaton {
                states: states.states().len() as u64,
                lazy: lazy(states),
                reading: without_accents(self.regex.as_str()).and_then(lazy),
            },
            // What the engine took is taken here too.
            None => Automaton {
                states: u64::MAX,
                lazy: None,
                reading: None,
            },
        })
    }
}

/// Patterns with the same text find the same.
impl PartialEq for WeighedPattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for WeighedPattern {}

impl Hash for WeighedPattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

fn nested_groups(part: &Hir) -> usize {
    let within = part.kind().subs().iter().map(nested_groups).max();
    let this = usize::from(matches!(part.kind(), HirKind::Capture(_)));
    within.unwrap_or_default() + this
}

/// The number of states of a regular expression; none of what is none.
#[must_use]
pub fn number_of_states(pattern: &str) -> Option<u64> {
    states(pattern).map(|states| states.states().len() as u64)
}

fn states(pattern: &str) -> Option<NFA> {
    let config = thompson::Config::new().which_captures(WhichCaptures::None);
    NFA::compiler().configure(config).build(pattern).ok()
}

/// The pattern with the ends of words as ASCII has them, if it asks for ends of words.
fn without_accents(pattern: &str) -> Option<NFA> {
    let parsed = regex_syntax::parse(pattern).ok()?;
    if !parsed.properties().look_set().contains_word_unicode() {
        return None;
    }
    let config = thompson::Config::new().which_captures(WhichCaptures::None);
    let simpler = with_ascii_words(parsed);
    NFA::compiler().configure(config).build_from_hir(&simpler).ok()
}

fn with_ascii_words(part: Hir) -> Hir {
    let all = |parts: Vec<Hir>| -> Vec<Hir> { parts.into_iter().map(with_ascii_words).collect() };
    match part.into_kind() {
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            other => other,
        }),
        HirKind::Repetition(mut repeated) => {
            repeated.sub = Box::new(with_ascii_words(*repeated.sub));
            Hir::repetition(repeated)
        }
        HirKind::Capture(mut group) => {
            group.sub = Box::new(with_ascii_words(*group.sub));
            Hir::capture(group)
        }
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(text) => Hir::literal(text.0),
        HirKind::Class(class) => Hir::class(class),
    }
}

fn lazy(states: NFA) -> Option<DFA> {
    let config = Config::new()
        .unicode_word_boundary(true)
        .minimum_cache_clear_count(Some(MOST_CLEARINGS))
        .minimum_bytes_per_state(Some(BYTES_PER_STATE));
    DFA::builder().configure(config).build_from_nfa(states).ok()
}

impl MadeStates {
    /// The memory of `lazy` without states: so what a text may cost does not depend on those before it.
    fn afresh(&mut self, lazy: &DFA) -> &mut Cache {
        let cache = self.0.get_or_insert_with(|| Box::new(lazy.create_cache()));
        cache.reset(lazy);
        cache
    }
}

/// The number of bytes that the search for all places reads, some of them several times; none where they are
/// more than `most`, or the automaton gives up.
fn read_for_all(lazy: &DFA, made: &mut MadeStates, text: &str, most: u64) -> Option<u64> {
    let cache = made.afresh(lazy);
    let (mut from, mut read) = (0, 0_u64);
    while from <= text.len() {
        let searched = search(lazy, cache, text, from)?;
        read += (searched.until - from) as u64 + 1;
        if read > most {
            return None;
        }
        let Some(end) = searched.found else {
            break;
        };
        // Behind an empty match, the search goes on one character later.
        from = if end == from || !text.is_char_boundary(end) {
            end + 1
        } else {
            end
        };
        while from < text.len() && !text.is_char_boundary(from) {
            from += 1;
        }
    }
    Some(read)
}

/// One search.
struct Searched {
    /// Where the match ends.
    found: Option<usize>,
    /// Where reading ended.
    until: usize,
}

fn search(lazy: &DFA, cache: &mut Cache, text: &str, from: usize) -> Option<Searched> {
    let input = Input::new(text).range(from..);
    let mut state = lazy.start_state_forward(cache, &input).ok()?;
    let mut found = None;
    cache.search_start(from);
    let rest = text.as_bytes().get(from..)?;
    for (at, byte) in (from..).zip(rest) {
        state = lazy.next_state(cache, state, *byte).ok()?;
        // A match is known one byte late.
        if state.is_match() {
            found = Some(at);
        } else if state.is_dead() {
            cache.search_finish(at);
            return Some(Searched { found, until: at });
        } else if state.is_quit() {
            return None;
        }
        cache.search_update(at);
    }
    let until = text.len();
    if lazy.next_eoi_state(cache, state).ok()?.is_match() {
        found = Some(until);
    }
    cache.search_finish(until);
    Some(Searched { found, until })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> WeighedPattern {
        WeighedPattern::new(Regex::new(text).unwrap())
    }

    fn is_match(pattern: &WeighedPattern, text: &str) -> Result<bool, CostlyText> {
        pattern.is_match(&mut MadeStates::default(), text)
    }

    /// So many letters `a` and `b` without an order.
    fn letters(count: usize) -> String {
        let mut number = 1_u32;
        let mut letter = || {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if number >> 31 == 0 { 'a' } else { 'b' }
        };
        (0..count).map(|_| letter()).collect()
    }

    #[test]
    fn a_pattern_that_needs_new_states_for_each_byte_is_refused() {
        let bytes = 1_000_000;
        let text = letters(bytes);
        for costly in ["a[ab]{4000}c", "[ab]*a[ab]{2000}c", "a[ab]{2000}c|d"] {
            assert_eq!(
                is_match(&pattern(costly), &text),
                Err(CostlyText { bytes }),
                "{costly}"
            );
        }
        // Of a shorter text it is bearable.
        assert_eq!(is_match(&pattern("a[ab]{4000}c"), &letters(10_000)), Ok(false));
    }

    #[test]
    fn ordinary_patterns_are_found_in_the_longest_texts() {
        let without = "Kaffee, Wärme und Ruhe\n".repeat(50_000);
        let with = format!("{without}somebody@example.org");
        for ordinary in [
            r"\w+@\w+\.\w{2,}",
            r"(?i)SOMEBODY",
            r"[^@]+@[a-z]{3,20}\.org$",
            r"(?s:^.*@.*$)",
        ] {
            let ordinary = pattern(ordinary);
            assert_eq!(is_match(&ordinary, &without), Ok(false), "{}", ordinary.as_str());
            assert_eq!(is_match(&ordinary, &with), Ok(true), "{}", ordinary.as_str());
        }
    }

    #[test]
    fn the_automaton_finds_what_the_engine_finds() {
        let texts = ["", "ab", "aäb", "a\nb", "äöü", "xaby", "b a", "ababc"].map(|text| text.repeat(3));
        let patterns = [
            "",
            "^$",
            "a.b",
            "(?s)a.b",
            "^(?s:.*)$",
            r"\bb",
            "ä|c$",
            "(?m)^b",
            "(a|b)*c",
            r"\B",
        ];
        for pattern in patterns.map(pattern) {
            for text in &texts {
                let input = Input::new(text.as_str()).earliest(true);
                let mut made = MadeStates::default();
                let lazy = pattern.lazy().unwrap();
                // It gives up at the border of a word beside other letters than those of ASCII.
                if let Ok(found) = lazy.try_search_fwd(made.afresh(lazy), &input) {
                    assert_eq!(
                        found.is_some(),
                        pattern.regex.is_match(text),
                        "{} {text:?}",
                        pattern.as_str()
                    );
                }
            }
        }
    }

    #[test]
    fn groups_nest_as_deep_as_they_lie_in_each_other() {
        for (text, nested) in [
            ("x*", 0),
            ("(?:(?:x))", 0),
            ("(x)(y)|(z)", 1),
            ("(?i)^(?:(a)|(b))*$", 1),
            ("(x)((y)+(z))?", 2),
            ("(?P<all>(?:(x)|((y)))*)", 3),
        ] {
            assert_eq!(pattern(text).nested_groups(), nested, "{text}");
        }
    }

    #[test]
    fn searching_for_all_places_is_weighed_by_what_it_reads() {
        let mut made = MadeStates::default();
        let words = "word  wörd ".repeat(10_000);
        for ordinary in [r"\s+", "wörd", "", "[a-z]*"] {
            let steps = pattern(ordinary).steps_for_all(&mut made, &words);
            assert!(steps < FEW_STEPS, "{ordinary}: {steps}");
        }
        // The engine has no automaton for ends of words beside other letters than those of ASCII.
        let words = "Kaffee, Wärme und Ruhe am Morgen. ".repeat(3_000);
        for ordinary in [r"\bKaffee\b", r"\b\w+\b", r"\b\d+\b", r"(?i)\bwärme\b"] {
            let steps = pattern(ordinary).steps_for_all(&mut made, &words);
            assert!(steps < MOST_STEPS, "{ordinary}: {steps}");
        }
        // Each match is known only when all of the text has been read.
        let steps = pattern(".*[^A-Z]|[A-Z]").steps_for_all(&mut made, &"A".repeat(30_000));
        assert!(steps > MOST_STEPS, "{steps}");
    }
}
