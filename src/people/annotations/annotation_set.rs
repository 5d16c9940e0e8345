//! All annotations of a person as they were in one state of the catalogue.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use uuid::Uuid;

use super::row::AnnotationRow;
use crate::catalog::documents::Document;

/// The size of an annotation besides its text.
const ROW_BYTES: usize = 544;
/// As many texts within an annotation are part of that size.
const FEW_TEXTS: usize = 32;
/// The size of each further text besides its characters: tags and labels are texts of their own.
const TEXT_BYTES: usize = 72;

/// All annotations of a person, deleted ones too, oldest first.
#[derive(Debug)]
pub(super) struct AnnotationSet {
    pub(super) rows: Arc<[AnnotationRow]>,
    /// The places of the rows, by id.
    places: HashMap<Uuid, usize>,
    /// A hash: equal for equal documents.
    pub(super) digest: u64,
    /// About how many bytes they take.
    pub(super) bytes: usize,
}

impl AnnotationSet {
    /// `rows`: what is in `documents`, in the same order.
    pub(super) fn of(documents: &[Document], rows: Vec<AnnotationRow>) -> Self {
        let sizes = documents
            .iter()
            .map(|document| size_of_annotation(&document.body));
        let places = rows.iter().enumerate().map(|(place, row)| (row.id, place));
        Self {
            places: places.collect(),
            rows: rows.into(),
            digest: digest_of(documents),
            bytes: sizes.sum(),
        }
    }

    pub(super) fn find(&self, id: Uuid) -> Option<&AnnotationRow> {
        self.rows.get(*self.places.get(&id)?)
    }
}

/// About how many bytes the annotation with this text takes.
fn size_of_annotation(text: &str) -> usize {
    let texts = text.bytes().filter(|byte| *byte == b'"').count() / 2;
    text.len() + ROW_BYTES + texts.saturating_sub(FEW_TEXTS) * TEXT_BYTES
}

fn digest_of(documents: &[Document]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for document in documents {
        let moments = (document.created_at, document.updated_at, document.deleted_at);
        (document.id, document.person, &document.body, moments).hash(&mut hasher);
    }
    hasher.finish()
}
