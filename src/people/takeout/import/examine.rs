//! Checks, before anything is changed, that everything in the archive is understood and fits what is here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::importer::{ImportError, Importer};
use super::judge_documents::{first_fault_text, judge, judge_version};
use crate::catalog::Catalog;
use crate::catalog::documents::{Document, DocumentKind};
use crate::catalog::records::{KnownPerson, StoredDefinition};
use crate::model::ids::PersonId;
use crate::model::nul::has_nul;
use crate::model::registry::{DataType, TypeId};
use crate::model::time::parse_instant;
use crate::people::documents::brought_back;
use crate::people::files::{File, ScanState};
use crate::people::preferences::Preferences;
use crate::people::takeout::archive::{Archive, ArchiveError};
use crate::people::takeout::format::{
    DATA_TYPES, FILES, KeptDefinition, KeptDocument, KeptPerson, KeptSource, NOTES, PERSON, PREFERENCES,
    SOURCES, content_member,
};
use crate::people::takeout::renaming::Renaming;
use crate::people::types::TypesError;

/// How an archive is brought in.
pub(super) struct Plan {
    /// The person as whom it is brought in.
    pub known: KnownPerson,
    pub preferences: Map<String, Value>,
    /// New ids for those that are taken here.
    pub renaming: Renaming,
    /// The ids of all documents of the archive.
    ids: BTreeSet<Uuid>,
}

impl Plan {
    /// A document of the archive under the id that it has there.
    pub(super) fn as_written(&self, kind: DocumentKind, kept: KeptDocument) -> Result<Document, ImportError> {
        kept.stored(kind, self.known.id)
            .map_err(|error| damaged(kind.as_str(), &error))
    }

    /// A document of the archive under the id that it gets here.
    pub(super) fn document(&self, kind: DocumentKind, kept: KeptDocument) -> Result<Document, ImportError> {
        let mut document = self.as_written(kind, kept)?;
        document.id = self.renaming.of(document.id);
        document.body = self.renaming.text(&document.body).into_owned();
        document.name = match kind {
            // The name keeps others from its place, so it is of the place where the file will be.
            DocumentKind::File => File::of(&document)?.unique_name(),
            _ => document.name.map(|name| self.renaming.text(&name).into_owned()),
        };
        Ok(document)
    }

    /// A definition under the id that it gets here.
    pub(super) fn definition(&self, kept: KeptDefinition) -> Result<StoredDefinition, ImportError> {
        let mut stored = kept
            .stored(self.known.id)
            .map_err(|error| damaged(DATA_TYPES, &error))?;
        stored.id = self.renaming.of(stored.id);
        stored.body = self.renaming.text(&stored.body).into_owned();
        Ok(stored)
    }

    /// The name here of a type of the archive.
    pub(super) fn data_type(&self, name: &str) -> String {
        self.renaming.text(name).into_owned()
    }
}

impl Importer {
    /// Reads every list of the archive once, and refuses what could not be brought in.
    pub(super) async fn examine(&self, archive: &Archive, person: PersonId) -> Result<Plan, ImportError> {
        let kept: KeptPerson = archive.object(PERSON)?;
        if kept.name.as_deref().is_some_and(has_nul) {
            return Err(unfit(PERSON, "name", NUL));
        }
        let mut plan = Plan {
            known: KnownPerson {
                id: person,
                name: kept.name,
                preferences: None,
                created_at: parse_instant(&kept.created_at).map_err(|error| damaged(PERSON, &error))?,
            },
            preferences: archive.object(PREFERENCES)?,
            renaming: Renaming::default(),
            ids: BTreeSet::new(),
        };
        let lists: Vec<(DocumentKind, &str)> =
            NOTES.into_iter().chain([(DocumentKind::File, FILES)]).collect();
        for (kind, name) in &lists {
            self.examine_documents(archive, &mut plan, *kind, name).await?;
        }
        Self::examine_bytes(archive, &plan)?;
        let own = self.examine_definitions(archive, &mut plan).await?;
        self.examine_types(archive, &plan, &own).await?;
        for (number, source) in (1_usize..).zip(archive.list::<KeptSource>(SOURCES)?) {
            let source = source?;
            if has_nul(&source.key) || source.name.as_deref().is_some_and(has_nul) {
                return Err(unfit(SOURCES, &element(number), NUL));
            }
            parse_instant(&source.added_at).map_err(|error| damaged(SOURCES, &error))?;
            let key = plan.renaming.text(&source.key).into_owned();
            plan.renaming.rename(source.id, Catalog::source_id(person, &key));
        }
        // Names have ids in them too, so they are known once everything has its id here.
        for (kind, name) in &lists {
            self.examine_names(archive, &plan, *kind, name).await?;
        }
        // Preferences name sources and types by their ids.
        let preferences = std::mem::take(&mut plan.preferences);
        let text = Value::Object(preferences).to_string();
        plan.preferences = serde_json::from_str(&plan.renaming.text(&text))
            .map_err(|error| ArchiveError::Damaged(format!("{PREFERENCES}: {error}")))?;
        // A cleared preference is not stored.
        plan.preferences.retain(|_, value| !value.is_null());
        Preferences::judge(&plan.preferences)
            .map_err(|faults| unfit(PREFERENCES, "its object", first_fault_text(faults)))?;
        Ok(plan)
    }

    async fn examine_documents(
        &self,
        archive: &Archive,
        plan: &mut Plan,
        kind: DocumentKind,
        name: &str,
    ) -> Result<(), ImportError> {
        for (number, kept) in (1_usize..).zip(archive.list::<KeptDocument>(name)?) {
            let document = plan.as_written(kind, kept?)?;
            if !plan.ids.insert(document.id) {
                return Err(ArchiveError::Damaged(format!("{name} has {} again", document.id)).into());
            }
            judge(&document).map_err(|reason| {
                let place = format!("{} ({})", element(number), document.id);
                unfit(name, &place, reason)
            })?;
            self.make_way(&mut plan.renaming, &document).await?;
            if kind == DocumentKind::File {
                self.make_way_for_content(&mut plan.renaming, &document).await?;
            }
        }
        Ok(())
    }

    /// Checks that what the archive brings takes no name from another document, here or in the archive.
    async fn examine_names(
        &self,
        archive: &Archive,
        plan: &Plan,
        kind: DocumentKind,
        name: &str,
    ) -> Result<(), ImportError> {
        let mut here = BTreeSet::new();
        for kept in archive.list::<KeptDocument>(name)? {
            here.insert(plan.renaming.of(kept?.id));
        }
        let mut names = BTreeSet::new();
        for (number, kept) in (1_usize..).zip(archive.list::<KeptDocument>(name)?) {
            let kept = kept?;
            let id = kept.id;
            let document = plan.document(kind, kept)?;
            let Some(called) = document.name.clone() else {
                continue;
            };
            // A list of files is not of one moment. Of two that were current while it was written, the one
            // that was uploaded later will be.
            if kind != DocumentKind::File && !names.insert(called.clone()) {
                let place = format!("{} ({id})", element(number));
                let reason = format!("there is another {} called {called:?}", kind.as_str());
                return Err(unfit(name, &place, reason));
            }
            let now = self.catalog.document(kind, document.id).await?;
            // A document that stays as it is here takes no name.
            let (_, Some(_)) = brought_back(document, now.as_ref(), Vec::new()) else {
                continue;
            };
            let other = self
                .catalog
                .document_named(plan.known.id, kind, &called)
                .await?
                .filter(|other| !here.contains(&other.id));
            if other.is_some() {
                return Err(ImportError::Refused(format!(
                    "there is another {} called {called:?} here; rename, move or delete one of them",
                    kind.as_str()
                )));
            }
        }
        Ok(())
    }

    /// Checks that the bytes of all files are there, but for those that are left out: what was removed for
    /// good while the archive was made, or given up, and what is harmful by the verdict on any version.
    fn examine_bytes(archive: &Archive, plan: &Plan) -> Result<(), ImportError> {
        let mut left_out: BTreeSet<Uuid> = archive.manifest.removed.iter().copied().collect();
        let mut missing: BTreeMap<Uuid, Uuid> = BTreeMap::new();
        for kept in archive.list::<KeptDocument>(FILES)? {
            let file = File::of(&plan.as_written(DocumentKind::File, kept?)?)?;
            if file.sha256.is_none() || archive.region(&content_member(file.content))?.is_some() {
                continue;
            }
            missing.entry(file.content).or_insert(file.id);
            if file.scan_state == ScanState::Infected {
                left_out.insert(file.content);
            }
        }
        missing.retain(|content, _| !left_out.contains(content));
        missing.values().next().map_or(Ok(()), |file| {
            let what = format!("the bytes of file {file} are missing");
            Err(ArchiveError::Damaged(what).into())
        })
    }

    /// The types that the archive defines, by their names there.
    async fn examine_definitions(
        &self,
        archive: &Archive,
        plan: &mut Plan,
    ) -> Result<BTreeMap<String, Arc<DataType>>, ImportError> {
        let mut own = BTreeMap::new();
        for (number, kept) in (1_usize..).zip(archive.list::<KeptDefinition>(DATA_TYPES)?) {
            let stored = kept?
                .stored(plan.known.id)
                .map_err(|error| damaged(DATA_TYPES, &error))?;
            let place = format!("{} ({})", element(number), stored.id);
            judge_version(stored.version).map_err(|reason| unfit(DATA_TYPES, &place, reason))?;
            self.make_way_for_definition(&mut plan.renaming, &stored).await?;
            let name = format!("{}/{}", stored.base, stored.id);
            let made = self.types.judge(stored).map_err(|error| {
                let reason = match error {
                    TypesError::Invalid(faults) => first_fault_text(faults),
                    error => error.to_string(),
                };
                unfit(DATA_TYPES, &place, reason)
            })?;
            own.insert(name, made);
        }
        Ok(own)
    }

    /// Checks that all records have a type here, and may be stored under it.
    async fn examine_types(
        &self,
        archive: &Archive,
        plan: &Plan,
        own: &BTreeMap<String, Arc<DataType>>,
    ) -> Result<(), ImportError> {
        for entry in &archive.manifest.members {
            let Some(name) = &entry.data_type else { continue };
            if let Some(data_type) = own.get(name) {
                if let Some(region) = archive.region(&entry.name)? {
                    Self::examine_rows(data_type, &entry.name, region).await?;
                }
                continue;
            }
            let name = plan.data_type(name);
            let found = self.types.find(plan.known.id, &name).await.ok();
            let found = found.filter(|resolved| resolved.data_type.id == TypeId::new(&name));
            let Some(found) = found else {
                return Err(ImportError::Refused(format!(
                    "{name} is no data type of this release; use the one that wrote the archive, or a newer \
                     one"
                )));
            };
            if let Some(region) = archive.region(&entry.name)? {
                Self::examine_columns(&found.data_type, &name, region.clone())?;
                Self::examine_rows(&found.data_type, &entry.name, region).await?;
            }
        }
        Ok(())
    }
}

/// The message about U+0000.
const NUL: &str = "U+0000 cannot be stored";

fn element(number: usize) -> String {
    format!("element {number}")
}

fn unfit(member: &str, place: &str, reason: impl Into<String>) -> ImportError {
    ImportError::Unfit {
        member: member.to_owned(),
        place: place.to_owned(),
        reason: reason.into(),
    }
}

fn damaged(what: &str, error: &dyn std::fmt::Display) -> ImportError {
    ArchiveError::Damaged(format!("{what}: {error}")).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::time::Instant;

    #[test]
    fn names_have_the_ids_that_what_they_name_gets_here() {
        let person = PersonId(Uuid::from_u128(1));
        let (there, here) = (Uuid::from_u128(2), Uuid::from_u128(3));
        let mut renaming = Renaming::default();
        renaming.rename(there, here);
        let plan = Plan {
            known: KnownPerson {
                id: person,
                name: None,
                preferences: None,
                created_at: Instant::from_micros(0),
            },
            preferences: Map::new(),
            renaming,
            ids: BTreeSet::new(),
        };
        let named = |kind, name: Option<String>, body: &Value| {
            let document = Document {
                kind,
                id: Uuid::from_u128(4),
                person,
                name,
                body: body.to_string(),
                version: 1,
                created_at: Instant::from_micros(0),
                updated_at: Instant::from_micros(0),
                deleted_at: None,
            };
            let kept = KeptDocument::of(document, Vec::new()).unwrap();
            plan.document(kind, kept).unwrap().name
        };
        let tag = named(DocumentKind::Tag, Some(format!("of {there}")), &json!({}));
        assert_eq!(tag, Some(format!("of {here}")));
        let file = |state: &str| {
            json!({"path": format!("/notes/{there}"), "name": "a.txt", "content_type": "text/plain",
                "size": 1, "state": state, "scan_state": "clean", "uploaded_at": 0, "archived_at": null,
                "last_scanned": null, "restored_from": null, "source_id": null, "source_name": null,
                "content": Uuid::from_u128(5), "sha256": "00"})
        };
        let place = format!("/notes/{here}/a.txt");
        // Whatever the archive says: the name follows from the place.
        for written in [format!("/notes/{there}/a.txt"), "/elsewhere".to_owned()] {
            let name = named(DocumentKind::File, Some(written.clone()), &file("uploaded"));
            assert_eq!(name.as_ref(), Some(&place));
            assert_eq!(named(DocumentKind::File, Some(written), &file("archived")), None);
        }
    }
}
