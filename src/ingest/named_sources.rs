//! The sources that the records of one body name, counted while it is read.
//!
//! A source is known for as long as its person is, and a person may have only so many. Knows names and
//! numbers; does not know which sources there are.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::decode::DecodedSource;
use crate::catalog::records::SeenSource;
use crate::model::ids::PersonId;

/// Memory for what is remembered of one source, besides its texts.
const SOURCE_BYTES: usize = 128;

/// How many sources the records of one body may name.
#[derive(Clone, Copy, Debug)]
pub struct MostSources {
    /// The limit of one person.
    pub limit: u64,
    /// How many the person has, all of which may be named, even if they are more than the limit.
    pub known: u64,
}

impl MostSources {
    /// No limit, for bodies that are known to name few.
    pub const ANY: Self = Self {
        limit: u64::MAX,
        known: 0,
    };
}

/// A body names more sources than its person may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records name more sources than one person may have, which is {limit}")]
pub struct TooManySources {
    pub limit: u64,
}

/// The sources named so far.
pub(super) struct NamedSources {
    most: MostSources,
    /// The names of the sources that have one, by the keys of all.
    names: HashMap<String, Option<String>>,
    bytes: usize,
}

impl NamedSources {
    pub(super) fn new(most: MostSources) -> Self {
        Self {
            most,
            names: HashMap::new(),
            bytes: 0,
        }
    }

    /// About how many bytes they take.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn add(&mut self, sources: Vec<DecodedSource>) -> Result<(), TooManySources> {
        for source in sources {
            if let Entry::Vacant(unknown) = self.names.entry(source.key) {
                let name = source.name.as_ref().map_or(0, String::len);
                self.bytes += SOURCE_BYTES + unknown.key().len() + name;
                unknown.insert(source.name);
            }
        }
        let MostSources { limit, known } = self.most;
        if self.names.len() as u64 <= limit.max(known) {
            Ok(())
        } else {
            Err(TooManySources { limit })
        }
    }

    pub(super) fn seen_of(self, person: PersonId) -> Vec<SeenSource> {
        let names = self.names.into_iter();
        names
            .map(|(key, name)| SeenSource { person, key, name })
            .collect()
    }
}
