//! Ids are newtypes, so that a person can never be passed where a record is meant.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

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

            /// The id stored in `bytes`, if they are 16.
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
    /// One record of one person; unique inside (person, data type).
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

/// Makes ids. Passed in, so that tests can repeat a run exactly.
pub trait IdSource: Send + Sync {
    /// A new id, greater than those made before it by the same source up to the millisecond.
    fn next(&self) -> Uuid;
}

/// UUID version 7 from the system's clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}
