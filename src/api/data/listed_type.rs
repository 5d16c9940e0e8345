//! The types of a list, and their entries in the catalogue.
//!
//! An entry is made when it is written, and an annotation becomes a type only then: a list of many takes
//! little memory, and those that are left out cost nothing. Knows types and annotations; must not know who
//! may see them.

use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use crate::model::ids::PersonId;
use crate::model::registry::{ANNOTATION_CATEGORIES, Category, DataType, Registry, TypeId};
use crate::people::annotations::AnnotationRow;

/// A type that somebody has.
#[derive(Clone, Debug)]
pub(super) enum ListedType {
    Made(Arc<DataType>),
    Annotation {
        base: Arc<DataType>,
        id: TypeId,
        all: Arc<[AnnotationRow]>,
        place: usize,
    },
}

impl ListedType {
    /// Those of a person's annotations that are wanted, as types, oldest first.
    pub(super) fn annotations(
        all: &Arc<[AnnotationRow]>,
        registry: &Registry,
        is_wanted: impl Fn(&AnnotationRow) -> bool,
    ) -> impl Iterator<Item = Self> {
        let wanted = all.iter().enumerate();
        let wanted = wanted.filter(move |(_, annotation)| is_wanted(annotation));
        wanted.filter_map(move |(place, annotation)| {
            let id = annotation.type_id();
            let base = Arc::clone(registry.get(id.base())?);
            let all = Arc::clone(all);
            Some(Self::Annotation { base, id, all, place })
        })
    }

    pub(super) fn id(&self) -> &TypeId {
        match self {
            Self::Made(data_type) => &data_type.id,
            Self::Annotation { id, .. } => id,
        }
    }

    pub(super) fn is_in(&self, category: Category) -> bool {
        match self {
            Self::Made(data_type) => data_type.categories.iter().any(|own| own == category.name()),
            Self::Annotation { .. } => ANNOTATION_CATEGORIES.contains(&category.name()),
        }
    }

    /// The type itself.
    pub(super) fn made(&self) -> Option<Arc<DataType>> {
        match self {
            Self::Made(data_type) => Some(Arc::clone(data_type)),
            Self::Annotation { base, all, place, .. } => Some(Arc::new(all.get(*place)?.upon(base))),
        }
    }
}

/// What the catalogue says of a type.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    listed: ListedType,
    person: PersonId,
    is_shared: bool,
}

impl Entry {
    /// As `person` sees it among their own types.
    pub(super) const fn own(listed: ListedType, person: PersonId) -> Self {
        Self {
            listed,
            person,
            is_shared: false,
        }
    }

    /// As those see it whom `sharer` lets read it.
    pub(super) const fn shared(listed: ListedType, sharer: PersonId) -> Self {
        Self {
            listed,
            person: sharer,
            is_shared: true,
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let made = self.listed.made();
        let made = made.ok_or_else(|| S::Error::custom("an annotation is missing"))?;
        let owner = made.owner.filter(|_| !self.is_shared);
        made.listed_entry(owner.unwrap_or(self.person), self.is_shared)
            .serialize(serializer)
    }
}
