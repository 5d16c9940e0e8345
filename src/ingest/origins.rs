//! Collects the sources that the records of a body name, each once and by number.
//!
//! Lives from one `take` of a decoder to the next. Knows nothing of how a record names its source.

use ahash::HashMap;

use super::compile::CompiledType;
use super::row::SourceMark;
use crate::model::sources::{SourceFacts, source_key};

/// A source that records came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedSource {
    pub key: String,
    pub name: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Origins {
    met: Vec<DecodedSource>,
    numbers: HashMap<String, usize>,
}

impl Origins {
    /// The number of a source. A name that was missing so far is added.
    pub(super) fn number(&mut self, key: String, name: Option<String>) -> usize {
        if let Some(number) = self.numbers.get(&key) {
            if let Some(source) = self.met.get_mut(*number) {
                source.name = source.name.take().or(name);
            }
            return *number;
        }
        let number = self.met.len();
        self.numbers.insert(key.clone(), number);
        self.met.push(DecodedSource { key, name });
        number
    }

    /// The source mark of a record that names no source.
    pub(super) fn of_nobody(&mut self, compiled: &CompiledType) -> SourceMark {
        let nothing = SourceFacts::default();
        SourceMark {
            number: self.number(source_key(&nothing).into_owned(), None),
            class: compiled.source_rules().classify(&nothing).code(),
            source_id: None,
        }
    }

    pub(super) fn get(&self, number: usize) -> Option<&DecodedSource> {
        self.met.get(number)
    }

    /// In the order of their numbers.
    pub(super) fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.met.iter().map(|source| source.key.as_str())
    }

    /// Takes all sources, in the order of their numbers.
    pub(super) fn take(&mut self) -> Vec<DecodedSource> {
        self.numbers.clear();
        std::mem::take(&mut self.met)
    }
}
