//! Groups: whom somebody shares with without naming them, and whose owner may read what its members agreed to.
//!
//! A member is known to the group by a name that says nothing about them, which is drawn anew each time they join.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::CatalogError;
use crate::catalog::documents::Document;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};

/// The body of a group. `None` is what was not said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub title: String,
    pub responsible_entity: Option<String>,
    pub description: Option<String>,
    /// What the owner may read of each member; nothing when empty.
    pub data_types: Vec<String>,
    /// Microseconds; `None` is open.
    pub time_start: Option<i64>,
    pub time_end: Option<i64>,
    pub is_public: bool,
    pub group_url: Option<String>,
    pub detail_markdown: Option<String>,
    pub agreement_markdown: Option<String>,
    pub withdraw_markdown: Option<String>,
    pub header_image_url: Option<String>,
    pub preview_image_url: Option<String>,
    pub friendly_id: Option<String>,
    pub view_description: Option<String>,
    /// Who may join a private group.
    pub invited: Vec<Uuid>,
}

/// The body of a membership. Its owner is the member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub group: Uuid,
    pub participant: Uuid,
    /// What the group's owner noted: an object of JSON.
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

impl Group {
    pub fn of(group: &Document) -> Result<Self, CatalogError> {
        read(group, "group")
    }

    /// The time whose records its owner may read.
    #[must_use]
    pub fn window(&self) -> TimeRange {
        let start = self.time_start.map_or(Instant::MIN, Instant::from_micros);
        let end = self.time_end.map_or(Instant::MAX, Instant::from_micros);
        TimeRange::between(start, end.max(start))
    }

    /// The types that its owner may read.
    #[must_use]
    pub fn types(&self) -> Vec<TypeId> {
        self.data_types.iter().map(|listed| TypeId::new(listed)).collect()
    }
}

impl Membership {
    pub fn of(membership: &Document) -> Result<Self, CatalogError> {
        read(membership, "membership")
    }
}

fn read<T: serde::de::DeserializeOwned>(document: &Document, what: &str) -> Result<T, CatalogError> {
    serde_json::from_str(&document.body).map_err(|error| CatalogError::Corrupt {
        what: format!("{what} {} cannot be read: {error}", document.id),
    })
}
