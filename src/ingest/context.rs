//! What decoding receives from outside: the time, new ids, limits, and the options that the sender chose.
//!
//! Made for one request. Knows how sources name definitions and files; knows nothing of records.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use super::coerce::Epoch;
use crate::model::ids::IdSource;
use crate::model::registry::ValueLimits;
use crate::model::time::Instant;

/// The outside inputs of decoding.
#[derive(Clone)]
pub struct DecodeContext {
    /// The time of acceptance: the default for records that may omit their time, and the reference for times
    /// too far ahead.
    pub now: Instant,
    pub ids: Arc<dyn IdSource>,
    /// Sources of annotations begin with this: `<prefix>.annotation.<uuid>`.
    pub source_prefix: Arc<str>,
    /// The most bytes of one text.
    pub text_limit: usize,
    /// The definition that all records belong to, as a source: the one to whose address they were sent.
    pub definition: Option<Arc<str>>,
    /// What restricts the values of records, for each definition that they may belong to. Definitions not
    /// listed allow every value.
    pub value_limits: Arc<HashMap<Uuid, ValueLimits>>,
    /// The options that the sender chose.
    pub leave: Leave,
}

/// Options that a sender may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leave {
    /// A record without an id gets the one that follows from what identifies it.
    pub natural_ids: bool,
    /// Numbers may come as texts, and times as numbers counted in this way.
    pub coercion: Option<Epoch>,
}

impl Leave {
    /// Distinguishes this request from others with the same body. Empty where no option is chosen, so that
    /// the keys of releases without these options stay valid.
    #[must_use]
    pub const fn told_apart_by(self) -> [&'static str; 2] {
        let ids = if self.natural_ids { "\0dedupe=natural" } else { "" };
        let coercion = match self.coercion {
            None => "",
            Some(Epoch::Seconds) => "\0coerce=seconds",
            Some(Epoch::Milliseconds) => "\0coerce=milliseconds",
            Some(Epoch::ByMagnitude) => "\0coerce=magnitude",
        };
        [ids, coercion]
    }
}

impl DecodeContext {
    /// The definition that a source of the form `<prefix>.annotation.<uuid>` names.
    #[must_use]
    pub fn definition_of(&self, source: &str) -> Option<Uuid> {
        self.named_by(source, ".annotation.")
    }

    /// The file that a source of the form `<prefix>.file.<uuid>` names, which the record was read from.
    #[must_use]
    pub fn file_of(&self, source: &str) -> Option<Uuid> {
        self.named_by(source, ".file.")
    }

    /// What a source of ours names after `kind`.
    fn named_by(&self, source: &str, kind: &str) -> Option<Uuid> {
        let rest = source.strip_prefix(&*self.source_prefix)?.strip_prefix(kind)?;
        Uuid::try_parse(rest).ok()
    }

    /// What restricts the value of a record whose source is `source`.
    #[must_use]
    pub fn value_limits_of(&self, source: &str) -> Option<ValueLimits> {
        self.value_limits.get(&self.definition_of(source)?).copied()
    }

    /// The source that names a definition, in its one spelling.
    #[must_use]
    pub fn source_of(&self, definition: Uuid) -> String {
        format!("{}.annotation.{definition}", self.source_prefix)
    }
}

impl fmt::Debug for DecodeContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DecodeContext")
            .field("now", &self.now)
            .field("source_prefix", &self.source_prefix)
            .finish_non_exhaustive()
    }
}
