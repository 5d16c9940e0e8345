//! Ids as newtypes, so that a person can never be passed where a record is meant.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

macro_rules! uuid_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The id stored in `bytes`, if there are 16.
            #[must_use]
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                Uuid::from_slice(bytes).ok().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

uuid_newtype!(
    /// A person whose data is stored.
    PersonId
);
uuid_newtype!(
    /// One record of one person; unique within (person, data type).
    RecordId
);
uuid_newtype!(
    /// One immutable group of rows of a partition: a Parquet object, or a blob of the tail.
    PieceId
);
uuid_newtype!(
    /// One accepted ingest request.
    UploadId
);
uuid_newtype!(
    /// A member of a group as its owner knows them. It reveals nothing about who they are.
    ParticipantId
);

/// Makes ids. Passed in, so that tests can repeat a run exactly.
pub trait IdSource: Send + Sync {
    /// A new id, greater than those made before it by the same source up to the millisecond.
    fn next(&self) -> Uuid;
}

/// UUIDs of version 7 from the system's clock and randomness. Each is greater than all made before it, even
/// within a millisecond and when the clock was set back.
#[derive(Debug, Default)]
pub struct SystemIds {
    /// The millisecond of the last id, followed by its random bits.
    last: Mutex<u128>,
}

/// The bits of an id besides its millisecond, its version and its variant.
const RANDOM_BITS: u32 = 74;

impl IdSource for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "this is what is passed in")]
    fn next(&self) -> Uuid {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = following(*last, now.as_millis(), rand::random());
        uuid_of(*last)
    }
}

/// A name that nothing else has, for a file that has no name of its own yet. It is gone when the file is
/// complete, so a run can be repeated without it.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "it has to differ from those of other processes, whatever they were passed"
)]
pub fn passing_name() -> String {
    Uuid::new_v4().to_string()
}

/// The value that follows `last` at a millisecond.
fn following(last: u128, millisecond: u128, random: u128) -> u128 {
    if millisecond > last >> RANDOM_BITS {
        // The top bit stays 0, which leaves room for the ids that follow.
        (millisecond << RANDOM_BITS) + (random >> (u128::BITS - RANDOM_BITS + 1))
    } else {
        last + 1 + (random >> (u128::BITS - u32::BITS))
    }
}

fn uuid_of(bits: u128) -> Uuid {
    // Twelve bits come before the variant, the others after it.
    let before = (bits >> 62) as u16 & 0xfff;
    let behind = bits as u64 & (u64::MAX >> 2);
    let mut random = [0; 10];
    let (first, second) = random.split_at_mut(size_of::<u16>());
    first.copy_from_slice(&before.to_be_bytes());
    second.copy_from_slice(&behind.to_be_bytes());
    Builder::from_unix_timestamp_millis((bits >> RANDOM_BITS) as u64, &random).into_uuid()
}

#[cfg(test)]
mod tests {
    use uuid::Variant;

    use super::*;

    #[test]
    fn system_ids_are_of_version_7_and_in_order() {
        let ids = SystemIds::default();
        let before = SystemTime::now();
        let made: Vec<Uuid> = (0..100_000).map(|_| ids.next()).collect();
        let after = SystemTime::now();
        assert!(made.is_sorted_by(|one, next| one < next));
        let is_known = |id: &Uuid| (id.get_version_num(), id.get_variant()) == (7, Variant::RFC4122);
        assert!(made.iter().all(is_known));
        let millisecond = |id: &Uuid| id.as_u128() >> 80;
        let since = |moment: SystemTime| moment.duration_since(UNIX_EPOCH).unwrap().as_millis();
        let times = since(before)..=since(after);
        assert!(made.iter().all(|id| times.contains(&millisecond(id))));
    }

    #[test]
    fn an_id_follows_the_last_one_whatever_the_clock_says() {
        let at = |millisecond: u128, random: u128| (millisecond << RANDOM_BITS) + random;
        let greatest = at(5, (1 << RANDOM_BITS) - 1);
        for (last, now, expected) in [
            (0, 5, at(5, (1 << (RANDOM_BITS - 1)) - 1)),
            (at(5, 7), 5, at(5, 7 + (1 << 32))),
            // Set back.
            (at(5, 7), 3, at(5, 7 + (1 << 32))),
            // So many that they reach into the next millisecond.
            (greatest, 5, at(6, (1 << 32) - 1)),
            (greatest, 6, at(6, (1 << (RANDOM_BITS - 1)) - 1)),
        ] {
            assert_eq!(following(last, now, u128::MAX), expected, "{last:x} {now}");
        }
        assert_eq!(following(at(5, 7), 5, 0), at(5, 8), "another one in any case");
    }

    #[test]
    fn every_bit_has_its_place() {
        let id = uuid_of((0x0123_4567_89ab << RANDOM_BITS) + (0xcde << 62) + 0x3f0f_1e2d_3c4b_5a69);
        assert_eq!(id.to_string(), "01234567-89ab-7cde-bf0f-1e2d3c4b5a69");
    }
}
