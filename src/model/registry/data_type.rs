//! A data type: its name, what it is, how its records are stored, and the shape in which they are read.
//!
//! Plain data. Must not know where types come from.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::schema::RecordSchema;
use crate::model::ids::PersonId;
use crate::model::metric::MetricTraits;

/// `HeartRate`, `Event`, `Event/0191…`. The uuid part is lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TypeId(pub Arc<str>);

impl TypeId {
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The id that `text` spells: `Base`, or `Base/<uuid>` with the uuid in any case. Does not check that
    /// there is such a type.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (base, definition) = text
            .split_once('/')
            .map_or((text, None), |(base, definition)| (base, Some(definition)));
        if base.is_empty()
            || !base
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return None;
        }
        match definition {
            None => Some(Self::new(base)),
            Some(definition) if definition.len() == 36 => {
                Some(Self::of_definition(base, Uuid::parse_str(definition).ok()?))
            }
            Some(_) => None,
        }
    }

    /// The id of the type that a person defined upon a base.
    #[must_use]
    pub fn of_definition(base: &str, definition: Uuid) -> Self {
        Self(format!("{base}/{definition}").into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the slash; the whole id of a type without a definition.
    #[must_use]
    pub fn base(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(base, _)| base)
    }

    #[must_use]
    pub fn definition(&self) -> Option<Uuid> {
        self.0
            .split_once('/')
            .and_then(|(_, definition)| Uuid::parse_str(definition).ok())
    }
}

impl fmt::Display for TypeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordClass {
    Metric,
    Event,
    Location,
    Entry,
    Tombstone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApiVersion {
    V0,
    V1alpha1,
    V1,
}

impl ApiVersion {
    /// As in addresses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V0 => "v0",
            Self::V1alpha1 => "v1alpha1",
            Self::V1 => "v1",
        }
    }
}

/// One data type, built in or a person's own.
#[derive(Clone, Debug)]
pub struct DataType {
    pub id: TypeId,
    pub name: String,
    pub description: String,
    pub class: RecordClass,
    pub api_version: ApiVersion,
    pub categories: Vec<String>,
    pub icon: Option<String>,
    /// `None` for built-in types.
    pub owner: Option<PersonId>,
    pub recordable: bool,
    pub queryable: bool,
    pub deprecated: bool,
    /// A base of person-defined types or of annotation definitions.
    pub is_base: bool,
    /// Other names by which the type is found. Never listed.
    pub aliases: Vec<String>,
    pub metric: Option<MetricTraits>,
    /// `record_spec` as the catalogue shows it.
    pub record_spec: Value,
    pub schema: RecordSchema,
    pub layout: Arc<Layout>,
}

/// How records of a type are stored and shown.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Grows with every change of a person's own type; 1 for built-in ones.
    pub version: u32,
    /// The stored columns, in order. Always begins with `id` (`FixedSizeBinary(16)`), `start_time`,
    /// `end_time` (`Timestamp(us, UTC)`, both not null; equal for instants), ends with `extras` (JSON text,
    /// nullable). Everything between is nullable.
    pub storage: SchemaRef,
    /// The columns of an answer, in order.
    pub read: Vec<ReadColumn>,
    /// How the times arrive: names accepted for the start and end, first the canonical one.
    pub times: TimeFields,
    /// Names accepted for the record's id, first the canonical one.
    pub id: Vec<String>,
    /// Other spellings of the remaining members: the accepted one, and the schema's.
    pub aliases: Vec<(String, String)>,
    /// What happens to members that the schema does not declare. They are stored in `extras` either way.
    pub undeclared: Undeclared,
    /// Stored columns, and members of columns as `column.member`, that only the owner sees: they name
    /// devices, applications, accounts and tags.
    pub private: Vec<String>,
    /// Where records have names by which it is known whose they are.
    pub owners_names: Vec<OwnersName>,
    /// Stored columns whose values hold for every part of a record as for the whole.
    pub throughout: Vec<String>,
    /// Tells the stored columns and their version apart from others.
    pub state: u64,
}

impl Layout {
    /// Whether a field, named as in a condition, is for the owner alone. A structure with private members is
    /// not itself private.
    #[must_use]
    pub fn is_private(&self, field: &str) -> bool {
        self.private.iter().any(|private| {
            field
                .strip_prefix(private.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    /// Whether a member of a stored column says which of the names beside it are the owner's.
    #[must_use]
    pub fn tells_owners_names(&self, column: &str, member: &str) -> bool {
        let mut names = self.owners_names.iter();
        names.any(|name| name.column == column && name.where_true.as_deref() == Some(member))
    }
}

/// A name by which it is known whose a record is: the person's, or that of a source, a device or an account,
/// which people call by their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnersName {
    /// The stored column: a value, an object or a list of objects.
    pub column: String,
    /// The member of the objects that is the name; `None` where the column itself is.
    pub member: Option<String>,
    /// The member beside it that is true where the name is the owner's; `None` where it always is.
    pub where_true: Option<String>,
}

/// Where an answer shows the members that the schema does not declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undeclared {
    /// Under `extras`.
    UnderExtras,
    /// Where the caller put them: beside the declared members, wherever rows are JSON. Columnar answers have
    /// the column `extras`.
    AsGiven,
}

/// One column of an answer, made from the stored ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadColumn {
    pub name: String,
    pub from: ReadFrom,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// The record's id as text.
    Id,
    Start,
    End,
    /// `{start_time, end_time}`.
    Span,
    /// A stored column, unchanged, by its stored name.
    Column(String),
    /// A stored object, some of whose texts are versions, which are read as lists of their numbers.
    Versions {
        column: String,
        members: Vec<String>,
    },
    /// The members that the schema does not declare, with the stored lists of texts that have no column of
    /// their own in an answer.
    Extras {
        hidden: Vec<String>,
    },
    /// The same text in every row.
    Constant(String),
    /// Null in every row, as text.
    Null,
}

/// The members of a record that hold its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFields {
    /// `start` is required; without `end` the record is an instant. Each name is a list: canonical first,
    /// then accepted spellings.
    StartEnd { start: Vec<String>, end: Vec<String> },
    /// One moment. `optional`: the present moment when absent.
    Moment { at: Vec<String>, optional: bool },
    /// `recorded_at`: a moment or `{start_time, end_time}`. Where the schema also declares `start_time` and
    /// `end_time`, they serve when `recorded_at` is absent. The present moment when all are absent.
    RecordedAt,
}

impl TimeFields {
    /// Whether a record may come without any times.
    #[must_use]
    pub const fn may_be_absent(&self) -> bool {
        matches!(self, Self::Moment { optional: true, .. } | Self::RecordedAt)
    }
}
