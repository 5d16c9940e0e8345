//! The mark of an erased person: all that is kept of them, so that nothing brings them back by mistake.
//!
//! Anybody who has an id can tell whether it is marked. Nobody can derive the id from the mark: there are too
//! many ids to try.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid, Variant, Version};

use super::hexadecimal::{from_hexadecimal, hexadecimal};
use super::ids::PersonId;

/// Hashed before the id, so that a mark cannot equal any other hash of an id.
const PURPOSE: &[u8] = b"almanac erased person 1";
/// Hashed before a mark, for what stands for the id where the first choice is taken.
const FURTHER_STAND_IN: &[u8] = b"almanac erased person 1, stands in";
const BYTES: usize = 32;

/// Tells an erased person apart from all others without naming them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErasureMark([u8; BYTES]);

impl ErasureMark {
    #[must_use]
    pub fn of(person: PersonId) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(PURPOSE);
        hasher.update(person.as_bytes());
        Self(hasher.finalize().into())
    }

    /// What stands for the person's id where others wrote it in their texts. Each person has another one, so
    /// that what was different stays so. `turn`: 0, or how many were tried that are taken.
    #[must_use]
    pub fn stand_in(&self, turn: u32) -> Uuid {
        let digest: [u8; BYTES] = if turn == 0 {
            self.0
        } else {
            let mut hasher = Sha256::new();
            hasher.update(FURTHER_STAND_IN);
            hasher.update(self.0);
            hasher.update(turn.to_be_bytes());
            hasher.finalize().into()
        };
        let [bytes, _] = digest.as_chunks::<16>().0 else {
            return Uuid::nil();
        };
        Builder::from_bytes(*bytes)
            .with_variant(Variant::RFC4122)
            .with_version(Version::Custom)
            .into_uuid()
    }

    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// The mark stored in `bytes`, if their number is right.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for ErasureMark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hexadecimal(&self.0))
    }
}

/// The text is not a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 64 hexadecimal digits")]
pub struct NoMark;

impl FromStr for ErasureMark {
    type Err = NoMark;

    fn from_str(text: &str) -> Result<Self, NoMark> {
        from_hexadecimal(text)
            .and_then(|bytes| Self::from_slice(&bytes))
            .ok_or(NoMark)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_mark_is_read_as_it_is_written_and_tells_people_apart() {
        let [one, other] = [1, 2].map(|number| ErasureMark::of(PersonId(Uuid::from_u128(number))));
        assert_ne!(one, other);
        assert_eq!(one.to_string().parse(), Ok(one));
        assert_eq!(one.to_string()[1..].parse::<ErasureMark>(), Err(NoMark));
        assert_eq!("+1".repeat(BYTES).parse::<ErasureMark>(), Err(NoMark));
    }

    #[test]
    fn each_turn_has_another_stand_in_and_each_person_others() {
        let [one, other] = [1, 2].map(|number| ErasureMark::of(PersonId(Uuid::from_u128(number))));
        let turns = (0..4).flat_map(|turn| [one.stand_in(turn), other.stand_in(turn)]);
        let mut stand_ins: Vec<Uuid> = turns.collect();
        assert_eq!(one.stand_in(3), one.stand_in(3));
        stand_ins.sort_unstable();
        stand_ins.dedup();
        assert_eq!(stand_ins.len(), 8);
    }
}
