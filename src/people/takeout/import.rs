//! Imports an archive: it is read whole, understood, compared with what is here, and only then brought in.
//!
//! Everything is stored under the id that it had, so reading an archive twice changes nothing the second
//! time. Records replace those with their ids, as all writes do; of mutable things the later state counts.
//! Every step is durable by itself, and another import finishes an interrupted one. Holds a chunk of records,
//! a part of a file and a line of a list, and the ids of what the person wrote.

mod examine;
mod importer;
mod judge_documents;
mod judge_rows;
mod make_way;
mod member_rows;
mod records;

use std::collections::BTreeSet;

use futures::stream;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::archive::{Archive, ArchiveError, Region};
use super::format::{
    Counts, DATA_TYPES, FILES, KeptDefinition, KeptDocument, KeptSource, NOTES, SOURCES, content_member,
};
use crate::catalog::Catalog;
use crate::catalog::documents::{Document, DocumentKind};
use crate::catalog::records::KnownSource;
use crate::model::ids::PersonId;
use crate::model::time::parse_instant;
use crate::people::attempts::ATTEMPTS;
use crate::people::documents::BroughtBack;
use crate::people::files::{File, FileState, harmful};
use examine::Plan;

pub use importer::{ImportError, Importer};

/// How many bytes of a file are read at once.
const STEP: usize = 1 << 20;

/// A progress report of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportProgress {
    /// This many members are to be read.
    Members(u64),
    Member,
}

/// What became of the things of one kind, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub new: u64,
    pub replaced: u64,
    pub same: u64,
    /// Those with a later state here.
    pub outdated: u64,
}

impl Tally {
    fn count(&mut self, outcome: BroughtBack) {
        match outcome {
            BroughtBack::New => self.new += 1,
            BroughtBack::Replaced => self.replaced += 1,
            BroughtBack::Same => self.same += 1,
            BroughtBack::Outdated => self.outdated += 1,
        }
    }

    /// The sum of all counts.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.new + self.replaced + self.same + self.outdated
    }
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    pub person: PersonId,
    /// Records in the archive.
    pub records: u64,
    pub types: u64,
    /// How many more records the person has than before.
    pub new_records: i64,
    pub sources: u64,
    pub new_sources: u64,
    pub data_types: Tally,
    pub annotations: Tally,
    pub tags: Tally,
    pub reflections: Tally,
    pub files: Tally,
    /// Bytes of files that were not here.
    pub new_bytes: u64,
    /// Preferences that were not here.
    pub new_preferences: u64,
    /// What the operator should know.
    pub notes: Vec<String>,
}

impl Importer {
    /// Brings an archive in, as `user` if one is given, otherwise as the person whose archive it is.
    pub async fn import(
        &self,
        archive: Archive,
        user: Option<PersonId>,
        tell: &(dyn Fn(ImportProgress) + Sync),
    ) -> Result<Imported, ImportError> {
        let person = user.unwrap_or(archive.manifest.person);
        if person.0.is_nil() {
            let nobody = "the archive is that of the nil id, which is nobody's; say whose it is with --user";
            return Err(ImportError::Refused(nobody.to_owned()));
        }
        let plan = Box::pin(self.examine(&archive, person)).await?;
        tell(ImportProgress::Members(archive.manifest.members.len() as u64));
        let mut imported = self.nothing_yet(&archive, person);
        let before = self.live_records(person).await?;
        Box::pin(self.bring_person(&archive, &plan, &mut imported)).await?;
        Box::pin(self.bring_notes(&archive, &plan, &mut imported)).await?;
        let told = Box::pin(self.bring_files(&archive, &plan, &mut imported, tell)).await?;
        for entry in &archive.manifest.members {
            if let Some(data_type) = &entry.data_type
                && let Some(region) = archive.region(&entry.name)?
            {
                Box::pin(self.bring_records(&plan, data_type, region)).await?;
            }
            if !told.contains(&entry.name) {
                tell(ImportProgress::Member);
            }
        }
        imported.new_records = self.live_records(person).await? - before;
        imported.new_preferences = self.bring_preferences(&plan).await?;
        Ok(imported)
    }

    fn nothing_yet(&self, archive: &Archive, person: PersonId) -> Imported {
        let manifest = &archive.manifest;
        let mut notes: Vec<String> = manifest
            .left_out
            .iter()
            .map(|what| format!("the archive does not hold {what}"))
            .collect();
        if *manifest.source_prefix != *self.source_prefix {
            notes.push(format!(
                "records name their annotations as {}.annotation..., which is nothing here: set \
                 ALMANAC_SOURCE_PREFIX to {}",
                manifest.source_prefix, manifest.source_prefix
            ));
        }
        let counts = &manifest.counts;
        notes.extend(not_brought_back(counts));
        Imported {
            person,
            records: counts.records,
            types: counts.types,
            new_records: 0,
            sources: counts.sources,
            new_sources: 0,
            data_types: Tally::default(),
            annotations: Tally::default(),
            tags: Tally::default(),
            reflections: Tally::default(),
            files: Tally::default(),
            new_bytes: 0,
            new_preferences: 0,
            notes,
        }
    }

    /// Brings in what records refer to: the person, their sources, and their own types.
    async fn bring_person(
        &self,
        archive: &Archive,
        plan: &Plan,
        imported: &mut Imported,
    ) -> Result<(), ImportError> {
        self.catalog.restore_person(&plan.known).await?;
        let mut sources = Vec::new();
        for source in archive.list::<KeptSource>(SOURCES)? {
            let source = source?;
            let key = plan.renaming.text(&source.key).into_owned();
            sources.push(KnownSource {
                id: Catalog::source_id(plan.known.id, &key),
                key,
                name: source.name,
                added_at: parse_instant(&source.added_at)
                    .map_err(|error| ArchiveError::Damaged(format!("{SOURCES}: {error}")))?,
            });
        }
        imported.new_sources = self.catalog.restore_sources(plan.known.id, &sources).await? as u64;
        for kept in archive.list::<KeptDefinition>(DATA_TYPES)? {
            let stored = plan.definition(kept?)?;
            imported.data_types.count(self.types.bring_back(stored).await?);
        }
        Ok(())
    }

    async fn bring_notes(
        &self,
        archive: &Archive,
        plan: &Plan,
        imported: &mut Imported,
    ) -> Result<(), ImportError> {
        for (kind, name) in NOTES {
            let mut tally = Tally::default();
            for kept in archive.list::<KeptDocument>(name)? {
                tally.count(self.documents.bring_back(plan.document(kind, kept?)?).await?);
            }
            match kind {
                DocumentKind::Annotation => imported.annotations = tally,
                DocumentKind::Tag => imported.tags = tally,
                _ => imported.reflections = tally,
            }
        }
        Ok(())
    }

    /// Brings back files. Returns the members with bytes that it reported, including those that it left
    /// alone.
    async fn bring_files(
        &self,
        archive: &Archive,
        plan: &Plan,
        imported: &mut Imported,
        tell: &(dyn Fn(ImportProgress) + Sync),
    ) -> Result<BTreeSet<String>, ImportError> {
        let removed: BTreeSet<Uuid> = archive.manifest.removed.iter().copied().collect();
        let mut told = BTreeSet::new();
        // The current versions come last: a name that has passed from one version to another is free by then.
        for are_current in [false, true] {
            for kept in archive.list::<KeptDocument>(FILES)? {
                let kept = kept?;
                let of_archive = File::of(&plan.as_written(DocumentKind::File, kept.clone())?)?;
                let is_current = of_archive.state == FileState::Uploaded;
                if is_current != are_current || removed.contains(&of_archive.content) {
                    continue;
                }
                let document = plan.document(DocumentKind::File, kept)?;
                let member = content_member(of_archive.content);
                let region = archive.region(&member)?;
                let has_bytes = region.is_some();
                self.bring_file(document, region, imported).await?;
                if has_bytes && told.insert(member) {
                    tell(ImportProgress::Member);
                }
            }
        }
        Ok(told)
    }

    /// Brings back a version of a file, with its bytes if they are not here yet.
    async fn bring_file(
        &self,
        mut document: Document,
        region: Option<Region>,
        imported: &mut Imported,
    ) -> Result<(), ImportError> {
        let file = File::of(&document)?;
        let mut taken = None;
        if file.sha256.is_some() && !self.files.has_bytes(file.content).await? {
            if let Some(region) = region {
                let content = self.take_in(&file, region).await?;
                imported.new_bytes += content.length;
                taken = Some(content);
            } else {
                // They were left out because of what was found in a version that has them.
                document = harmful(&document)?;
            }
        }
        let outcome = self.files.bring_back(document, taken).await?;
        imported.files.count(outcome);
        Ok(())
    }

    async fn take_in(
        &self,
        file: &File,
        region: Region,
    ) -> Result<crate::store::contents::Content, ImportError> {
        let steps = stream::unfold(0, move |at| {
            let region = region.clone();
            async move {
                let read = tokio::task::spawn_blocking(move || region.bytes(at, STEP)).await;
                match read.map_err(std::io::Error::other).and_then(|read| read) {
                    Ok(bytes) if bytes.is_empty() => None,
                    Ok(bytes) => {
                        let next = at + bytes.len() as u64;
                        Some((Ok(bytes), next))
                    }
                    Err(error) => Some((Err(error), u64::MAX)),
                }
            }
        });
        let sha256 = file.sha256.as_deref().unwrap_or_default();
        let taken = self
            .files
            .take_in(file.person, file.content, sha256, Box::pin(steps));
        Ok(taken.await?)
    }

    /// Adds preferences that the person does not have here; existing ones stay.
    async fn bring_preferences(&self, plan: &Plan) -> Result<u64, ImportError> {
        let person = plan.known.id;
        for _ in 0..ATTEMPTS {
            let before = self
                .catalog
                .person(person)
                .await?
                .and_then(|known| known.preferences);
            let mut members: Map<String, Value> = match before.as_deref().map(serde_json::from_str) {
                Some(Ok(members)) => members,
                Some(Err(_)) => return Ok(0),
                None => Map::new(),
            };
            let mut new = 0;
            for (name, value) in &plan.preferences {
                if !members.contains_key(name) {
                    members.insert(name.clone(), value.clone());
                    new += 1;
                }
            }
            if new == 0 {
                return Ok(0);
            }
            let text = Value::Object(members).to_string();
            if self
                .catalog
                .swap_preferences(person, before.as_deref(), &text)
                .await?
            {
                return Ok(new);
            }
        }
        Ok(0)
    }

    async fn live_records(&self, person: PersonId) -> Result<i64, ImportError> {
        let partitions = self.catalog.partitions_of(person).await?;
        Ok(partitions.iter().map(|partition| partition.records).sum())
    }
}

/// What stays in the archive because it concerns others, in words.
fn not_brought_back(counts: &Counts) -> Option<String> {
    let Counts {
        shares,
        groups,
        memberships,
        ..
    } = *counts;
    let has_any = [shares, groups, memberships].iter().any(|count| *count > 0);
    has_any.then(|| {
        format!(
            "not brought back, because they concern others: {shares} data shares, {groups} groups, \
             {memberships} memberships"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_concerns_others_is_told_whatever_numbers_an_archive_states() {
        assert_eq!(not_brought_back(&Counts::default()), None);
        let counts = Counts {
            shares: u64::MAX,
            groups: u64::MAX,
            memberships: 1,
            ..Counts::default()
        };
        let told = not_brought_back(&counts).unwrap_or_default();
        assert!(
            told.ends_with(&format!("{0} data shares, {0} groups, 1 memberships", u64::MAX)),
            "{told}"
        );
    }
}
