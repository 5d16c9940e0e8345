//! Annotations as their records show them: by name, and as JSON text.
//!
//! A text is written when the first record shows it, so a question takes as long as the annotations in its
//! answer, however many there are. Knows annotations; knows nothing of records.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::annotation_set::AnnotationSet;
use super::row::AnnotationRow;

/// What only the owner is shown: a reader may know the owner by another id, and tags are not shared.
const OWNERS_ALONE: [&str; 2] = ["svc_userid", "tags"];

/// All annotations of a person, for the records that one question reads. Lives as long as the question.
#[derive(Debug)]
pub struct ShownAnnotations {
    annotations: Arc<AnnotationSet>,
    /// The prefix of a source that is an annotation; its id follows.
    source_prefix: String,
    to_owner: bool,
    /// The texts that were shown already, by id.
    written: Mutex<HashMap<Uuid, Arc<str>>>,
}

impl ShownAnnotations {
    pub(super) fn new(annotations: Arc<AnnotationSet>, source_prefix: String, to_owner: bool) -> Self {
        Self {
            annotations,
            source_prefix,
            to_owner,
            written: Mutex::default(),
        }
    }

    /// A hash: equal for what shows the same.
    #[must_use]
    pub fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.annotations.digest, &self.source_prefix, self.to_owner).hash(&mut hasher);
        hasher.finish()
    }

    /// A hash: equal for what shows the same of the annotation `id`, whatever others there are.
    #[must_use]
    pub fn state_of(&self, id: Uuid) -> u64 {
        let mut hasher = DefaultHasher::new();
        // One that cannot be written fails where it is shown.
        (self.text(id).ok().flatten(), &self.source_prefix).hash(&mut hasher);
        hasher.finish()
    }

    /// The id of the annotation that a source names, whether or not there is such an annotation.
    #[must_use]
    pub fn named(&self, source: &str) -> Option<Uuid> {
        Uuid::try_parse(source.strip_prefix(&self.source_prefix)?).ok()
    }

    /// The source that records of the annotation `id` name.
    #[must_use]
    pub fn source(&self, id: Uuid) -> String {
        format!("{}{id}", self.source_prefix)
    }

    /// The name of the annotation `id`.
    #[must_use]
    pub fn name(&self, id: Uuid) -> Option<&str> {
        Some(self.annotations.find(id)?.root.name())
    }

    /// The annotation `id` as JSON.
    pub fn text(&self, id: Uuid) -> Result<Option<Arc<str>>, serde_json::Error> {
        let Some(annotation) = self.annotations.find(id) else {
            return Ok(None);
        };
        if let Some(text) = self.written().get(&id) {
            return Ok(Some(Arc::clone(text)));
        }
        let text: Arc<str> = self.write(annotation)?.into();
        self.written().insert(id, Arc::clone(&text));
        Ok(Some(text))
    }

    fn write(&self, annotation: &AnnotationRow) -> Result<String, serde_json::Error> {
        let mut shown = serde_json::to_value(annotation)?;
        if let Some(members) = shown.as_object_mut().filter(|_| !self.to_owner) {
            for member in OWNERS_ALONE {
                members.shift_remove(member);
            }
        }
        Ok(shown.to_string())
    }

    fn written(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<str>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those of one question are the same, and no others: plans are compared with themselves only.
impl PartialEq for ShownAnnotations {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for ShownAnnotations {}

impl Hash for ShownAnnotations {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state().hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::catalog::documents::{Document, DocumentKind};
    use crate::model::ids::PersonId;
    use crate::model::time::Instant;
    use crate::people::annotations::variants::AnnotationRoot;

    const PREFIX: &str = "com.almanac.annotation.";

    /// Annotations with these names, whose ids are their places.
    fn annotations(names: &[&str]) -> Arc<AnnotationSet> {
        let (person, moment) = (PersonId(Uuid::from_u128(9)), Instant::from_micros(0));
        let made = names.iter().enumerate().map(|(place, name)| {
            let id = Uuid::from_u128(place as u128);
            let body = json!({"annotation_type": "moment", "name": name, "description": "", "tags": ["own"]});
            let document = Document {
                kind: DocumentKind::Annotation,
                id,
                person,
                name: None,
                body: body.to_string(),
                version: 1,
                created_at: moment,
                updated_at: moment,
                deleted_at: None,
            };
            let row = AnnotationRow {
                id,
                svc_userid: person,
                svc_source_id: format!("{PREFIX}{id}"),
                root: AnnotationRoot::read(&body).unwrap(),
                created_at: moment,
                updated_at: moment,
                deleted_at: None,
            };
            (document, row)
        });
        let (documents, rows): (Vec<_>, Vec<_>) = made.unzip();
        Arc::new(AnnotationSet::of(&documents, rows))
    }

    fn shown(annotations: &Arc<AnnotationSet>, to_owner: bool) -> ShownAnnotations {
        ShownAnnotations::new(Arc::clone(annotations), PREFIX.to_owned(), to_owner)
    }

    fn read(text: Option<Arc<str>>) -> Value {
        serde_json::from_str(&text.unwrap()).unwrap()
    }

    #[test]
    fn an_annotation_is_written_when_it_is_shown_first() {
        let annotations = annotations(&["Tea", "Walk", "Run"]);
        let shown = shown(&annotations, true);
        let walk = shown.named(&format!("{PREFIX}{}", Uuid::from_u128(1))).unwrap();
        assert_eq!(shown.named(&shown.source(walk)), Some(walk));
        assert_eq!(shown.name(walk), Some("Walk"));
        assert!(shown.written().is_empty());
        let text = shown.text(walk).unwrap();
        assert_eq!(read(text.clone()), json!(annotations.rows[1]));
        assert_eq!(shown.written().len(), 1);
        assert!(Arc::ptr_eq(&shown.text(walk).unwrap().unwrap(), &text.unwrap()));
        let unknown = Uuid::from_u128(7);
        assert_eq!((shown.name(unknown), shown.text(unknown).unwrap()), (None, None));
        assert_eq!(shown.written().len(), 1);
        assert_eq!(shown.named("com.example.app"), None);
    }

    #[test]
    fn others_see_nothing_that_is_the_owners_alone() {
        let annotations = annotations(&["Tea"]);
        let mut expected = json!(annotations.rows[0]);
        for member in OWNERS_ALONE {
            assert!(expected.as_object_mut().unwrap().shift_remove(member).is_some());
        }
        let text = shown(&annotations, false).text(Uuid::from_u128(0)).unwrap();
        assert_eq!(read(text), expected);
    }

    #[test]
    fn states_are_equal_where_the_same_is_shown() {
        let one = annotations(&["Tea", "Walk"]);
        let state = shown(&one, true).state();
        assert_eq!(shown(&annotations(&["Tea", "Walk"]), true).state(), state);
        assert_ne!(shown(&one, false).state(), state);
        assert_ne!(shown(&annotations(&["Tea", "Run"]), true).state(), state);
        assert_ne!(shown(&annotations(&["Tea"]), true).state(), state);
    }

    #[test]
    fn the_state_of_one_annotation_says_nothing_of_others() {
        let of_first = |names: &[&str]| shown(&annotations(names), false).state_of(Uuid::from_u128(0));
        let state = of_first(&["Tea", "Walk"]);
        assert_eq!(of_first(&["Tea", "Run"]), state);
        assert_eq!(of_first(&["Tea"]), state);
        assert_ne!(of_first(&["Mate", "Walk"]), state);
        assert_ne!(of_first(&[]), state);
    }
}
