//! The trace that a request belongs to, as its client names it: W3C Trace Context, the header `traceparent`.

use axum::http::HeaderMap;
use uuid::Uuid;

use crate::api::header_names::TRACEPARENT;

/// The flag that marks a trace as sampled.
const SAMPLED_FLAG: u8 = 1;

/// A trace, and a position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    pub(super) trace: u128,
    /// The span of the client; `None`: the trace begins here.
    pub(super) parent: Option<u64>,
    flags: u8,
}

impl Context {
    /// A trace that begins here.
    pub(super) const fn begun(id: Uuid) -> Self {
        Self {
            trace: id.as_u128(),
            parent: None,
            flags: SAMPLED_FLAG,
        }
    }

    /// The trace that a request names. A header that cannot be read names none, as the standard requires.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut named = headers.get_all(TRACEPARENT).iter();
        let text = named.next()?.to_str().ok()?;
        if named.next().is_some() {
            return None;
        }
        Self::read(text.trim())
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut part = |digits: usize| {
            let part = parts.next()?;
            let is_lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            (part.len() == digits && part.bytes().all(is_lower_hex)).then_some(part)
        };
        let version = u8::from_str_radix(part(2)?, 16).ok()?;
        let trace = u128::from_str_radix(part(32)?, 16).ok()?;
        let parent = u64::from_str_radix(part(16)?, 16).ok()?;
        let flags = u8::from_str_radix(part(2)?, 16).ok()?;
        // Later versions may add parts; the first has four.
        let is_whole = version != u8::MAX && (version > 0 || parts.next().is_none());
        (is_whole && trace != 0 && parent != 0).then_some(Self {
            trace,
            parent: Some(parent),
            flags,
        })
    }

    /// Whether the client that began it wants it kept.
    pub(super) const fn is_wanted(self) -> bool {
        self.flags & SAMPLED_FLAG != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_trace_that_somebody_began_goes_on() {
        let context = Context::read(WHOLE).unwrap();
        assert_eq!(context.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(context.parent, Some(0x00f0_67aa_0ba9_02b7));
        assert!(context.is_wanted());
        assert!(!Context::read(&WHOLE.replace("-01", "-00")).unwrap().is_wanted());
        let later = format!("{}-more", WHOLE.replacen("00", "01", 1));
        assert!(Context::read(&later).is_some(), "a later version with more parts");
    }

    #[test]
    fn what_cannot_be_read_names_no_trace() {
        for text in [
            "",
            "00",
            &WHOLE.replace("4bf9", "4BF9"),
            &WHOLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &WHOLE.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &WHOLE.replacen("00", "ff", 1),
            &format!("{WHOLE}-more"),
            &WHOLE[..54],
            &WHOLE.replace("-01", "-+1"),
        ] {
            assert_eq!(Context::read(text), None, "{text}");
        }
        let mut twice = HeaderMap::new();
        twice.append(TRACEPARENT, WHOLE.parse().unwrap());
        assert!(Context::of(&twice).is_some());
        twice.append(TRACEPARENT, WHOLE.parse().unwrap());
        assert_eq!(Context::of(&twice), None);
    }
}
