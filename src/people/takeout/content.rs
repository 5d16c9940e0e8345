//! Writes the content of an archive in order: records first, then files and everything else that records
//! refer to, so that whatever a record names is included, even if it came while the archive was made. The
//! manifest comes last.
//!
//! Reads page by page; holds a page, a row group, and one manifest entry for each member.

use std::collections::HashMap;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::export::ExportError;
use super::exports::Exports;
use super::format::{
    ACCESS_LOG, AGREEMENTS, ArchiveContents, Counts, DATA_TYPES, ElementError, FORMAT, FORMAT_VERSION,
    KeptAccess, KeptDefinition, KeptDocument, KeptLink, KeptMembership, KeptPerson, KeptSource, MANIFEST,
    MemberEntry, NOTES, PERSON, PREFERENCES, README, README_TEXT, SOURCES,
};
use super::outlet::Outlet;
use super::zip::{COMMENT, Packing, TooLong, ZipWriter};
use crate::catalog::documents::{Document, DocumentCursor, DocumentKind};
use crate::model::hexadecimal::hexadecimal;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::people::sharing::groups::Membership;
use crate::store::StoreError;

/// How many documents, or entries of the access log, are read at once.
const PAGE: usize = 256;
/// How many bytes of text are compressed together.
const TEXT_BYTES: usize = 256 << 10;
/// The announced bound of a text that is no list; none comes near it.
const MOST_TEXT: u64 = 1 << 31;
/// The announced bound of a list: nothing limits how long an access log becomes.
const MOST_LIST: u64 = u64::MAX;
/// How many members every archive has.
const ALWAYS: u64 = 6 + NOTES.len() as u64 + AGREEMENTS.len() as u64 + 1;

impl From<TooLong> for ExportError {
    fn from(error: TooLong) -> Self {
        Self::Store(StoreError::Rows {
            detail: error.to_string(),
        })
    }
}

/// Writes an archive of everything that `person` has.
pub(super) async fn write_archive(
    exports: &Exports,
    person: PersonId,
    outlet: Outlet<'_, '_>,
) -> Result<(), ExportError> {
    let moment = exports.stores.clock.now();
    let mut archive = Archive::begun(exports, person, outlet, moment);
    archive.text(README, README_TEXT.as_bytes()).await?;
    let types = exports.stores.catalog.partitions_of(person).await?;
    archive.total += types.len() as u64;
    for summary in types {
        Box::pin(archive.records(&summary.data_type)).await?;
    }
    Box::pin(archive.files()).await?;
    archive.notes().await?;
    archive.agreements().await?;
    archive.definitions().await?;
    archive.sources().await?;
    archive.person().await?;
    archive.end(moment.to_rfc3339()).await
}

/// An archive being written.
pub(super) struct Archive<'a, 'e> {
    pub exports: &'a Exports,
    pub person: PersonId,
    outlet: Outlet<'a, 'e>,
    zip: ZipWriter,
    members: Vec<MemberEntry>,
    pub counts: Counts,
    pub left_out: Vec<String>,
    /// The contents that were removed for good while the archive was made.
    pub removed: Vec<Uuid>,
    /// The expected number of members, as far as it is known.
    pub total: u64,
}

/// A list being written into a member.
pub(super) struct List {
    text: Vec<u8>,
    count: u64,
}

impl<'a, 'e> Archive<'a, 'e> {
    /// An archive without members, begun at `moment`.
    pub(super) fn begun(
        exports: &'a Exports,
        person: PersonId,
        outlet: Outlet<'a, 'e>,
        moment: Instant,
    ) -> Self {
        Self {
            exports,
            person,
            outlet,
            zip: ZipWriter::new(moment),
            members: Vec::new(),
            counts: Counts::default(),
            left_out: Vec::new(),
            removed: Vec::new(),
            total: ALWAYS,
        }
    }

    /// Begins a member of at most `most` bytes.
    pub(super) async fn begin(&mut self, name: &str, packing: Packing, most: u64) -> Result<(), ExportError> {
        self.members.push(MemberEntry {
            name: name.to_owned(),
            bytes: 0,
            sha256: String::new(),
            data_type: None,
            count: None,
        });
        let head = self.zip.begin(name, packing, most);
        self.outlet.write(head).await
    }

    pub(super) async fn add(&mut self, bytes: Bytes) -> Result<(), ExportError> {
        let packed = self.zip.add(bytes)?;
        self.outlet.write(packed).await
    }

    /// Ends the member, with its data type and its number of records or elements.
    pub(super) async fn end_member(
        &mut self,
        data_type: Option<&str>,
        count: Option<u64>,
    ) -> Result<(), ExportError> {
        let (tail, member) = self.zip.end()?;
        if let Some(entry) = self.members.last_mut() {
            entry.bytes = member.bytes;
            entry.sha256 = hexadecimal(&member.sha256);
            entry.data_type = data_type.map(str::to_owned);
            entry.count = count;
        }
        self.outlet.write(tail).await?;
        let done = self.members.len() as u64;
        self.total = self.total.max(done + 1);
        self.outlet.tell(done, self.total).await
    }

    /// Gives up the member: the archive does not name it.
    pub(super) fn give_up_member(&mut self) {
        self.members.pop();
        self.zip.give_up();
    }

    async fn text(&mut self, name: &str, text: &[u8]) -> Result<(), ExportError> {
        self.begin(name, Packing::Deflated, MOST_TEXT).await?;
        self.add(Bytes::copy_from_slice(text)).await?;
        self.end_member(None, None).await
    }

    async fn object(&mut self, name: &str, value: &impl Serialize) -> Result<(), ExportError> {
        let mut text = serde_json::to_vec_pretty(value).map_err(unwritable)?;
        text.push(b'\n');
        self.text(name, &text).await
    }

    pub(super) async fn begin_list(&mut self, name: &str) -> Result<List, ExportError> {
        self.begin(name, Packing::Deflated, MOST_LIST).await?;
        Ok(List {
            text: b"[".to_vec(),
            count: 0,
        })
    }

    pub(super) async fn element(
        &mut self,
        list: &mut List,
        element: &impl Serialize,
    ) -> Result<(), ExportError> {
        list.text
            .extend_from_slice(if list.count == 0 { b"\n" } else { b",\n" });
        serde_json::to_writer(&mut list.text, element).map_err(unwritable)?;
        list.count += 1;
        if list.text.len() >= TEXT_BYTES {
            self.add(std::mem::take(&mut list.text).into()).await?;
        }
        Ok(())
    }

    pub(super) async fn end_list(&mut self, mut list: List) -> Result<u64, ExportError> {
        list.text.extend_from_slice(b"\n]\n");
        self.add(list.text.into()).await?;
        self.end_member(None, Some(list.count)).await?;
        Ok(list.count)
    }

    async fn notes(&mut self) -> Result<(), ExportError> {
        for (kind, name) in NOTES {
            self.documents(kind, name).await?;
        }
        Ok(())
    }

    /// Writes the agreements with others, and the access log.
    async fn agreements(&mut self) -> Result<(), ExportError> {
        for (kind, name) in AGREEMENTS {
            self.documents(kind, name).await?;
        }
        let mut list = self.begin_list(ACCESS_LOG).await?;
        let mut before = None;
        loop {
            let catalog = &self.exports.stores.catalog;
            let page = catalog.accesses(self.person, before, PAGE).await?;
            before = page.entries.last().map(|oldest| oldest.id);
            for entry in page.entries {
                let kept = KeptAccess {
                    id: entry.id,
                    at: entry.at.to_rfc3339(),
                    actor: entry.actor,
                    rows: entry.rows,
                    outcome: entry.outcome,
                    body: RawValue::from_string(entry.body).map_err(unwritable)?,
                };
                self.element(&mut list, &kept).await?;
            }
            if page.is_last {
                break;
            }
        }
        self.counts.accesses = self.end_list(list).await?;
        Ok(())
    }

    async fn documents(&mut self, kind: DocumentKind, name: &str) -> Result<(), ExportError> {
        let mut list = self.begin_list(name).await?;
        let mut pages = DocumentPages::of(kind);
        while let Some(page) = pages.next(self.exports, self.person).await? {
            let ids: Vec<Uuid> = page.iter().map(|document| document.id).collect();
            let mut links: HashMap<Uuid, Vec<KeptLink>> = HashMap::new();
            for link in self.exports.stores.catalog.links_of(&ids).await? {
                links.entry(link.document).or_default().push(KeptLink {
                    kind: link.kind,
                    target: link.target,
                });
            }
            for document in page {
                let links = links.remove(&document.id).unwrap_or_default();
                let document = match kind {
                    DocumentKind::Membership => as_the_member_sees(document)?,
                    _ => document,
                };
                let kept = KeptDocument::of(document, links).map_err(unreadable)?;
                self.element(&mut list, &kept).await?;
            }
        }
        let count = self.end_list(list).await?;
        if let Some(counted) = self.counts.of(kind) {
            *counted = count;
        }
        Ok(())
    }

    async fn definitions(&mut self) -> Result<(), ExportError> {
        let mut list = self.begin_list(DATA_TYPES).await?;
        for stored in self.exports.stores.catalog.definitions_of(self.person).await? {
            let kept = KeptDefinition::of(stored).map_err(unreadable)?;
            self.element(&mut list, &kept).await?;
        }
        self.counts.data_types = self.end_list(list).await?;
        Ok(())
    }

    async fn sources(&mut self) -> Result<(), ExportError> {
        let mut list = self.begin_list(SOURCES).await?;
        for source in self.exports.stores.catalog.sources_of(self.person).await? {
            self.element(&mut list, &KeptSource::of(source)).await?;
        }
        self.counts.sources = self.end_list(list).await?;
        Ok(())
    }

    async fn person(&mut self) -> Result<(), ExportError> {
        let Some(known) = self.exports.stores.catalog.person(self.person).await? else {
            return Err(StoreError::corrupt(format!("person {} is gone", self.person)).into());
        };
        self.object(PERSON, &KeptPerson::of(&known)).await?;
        let preferences = known.preferences.unwrap_or_else(|| "{}".to_owned());
        self.text(PREFERENCES, preferences.as_bytes()).await
    }

    /// Writes the manifest, the directory, and the digest of everything.
    pub(super) async fn end(mut self, created_at: String) -> Result<(), ExportError> {
        let manifest = ArchiveContents {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            person: self.person,
            created_at,
            source_prefix: self.exports.source_prefix.to_string(),
            counts: self.counts.clone(),
            left_out: std::mem::take(&mut self.left_out),
            removed: std::mem::take(&mut self.removed),
            members: std::mem::take(&mut self.members),
        };
        let mut text = serde_json::to_vec_pretty(&manifest).map_err(unwritable)?;
        text.push(b'\n');
        let most = MOST_TEXT.max(text.len() as u64);
        let head = self.zip.begin(MANIFEST, Packing::Deflated, most);
        self.outlet.write(head).await?;
        self.add(text.into()).await?;
        let (tail, _) = self.zip.end()?;
        self.outlet.write(tail).await?;
        let members = manifest.members.len() as u64 + 1;
        self.outlet.write(self.zip.finish()).await?;
        let comment = format!("{COMMENT}{}", self.outlet.digest());
        self.outlet.write(comment.into()).await?;
        self.outlet.tell(members, members).await
    }
}

/// A person's documents of one kind, page by page.
pub(super) struct DocumentPages {
    kind: DocumentKind,
    after: Option<DocumentCursor>,
}

impl DocumentPages {
    pub(super) const fn of(kind: DocumentKind) -> Self {
        Self { kind, after: None }
    }

    pub(super) async fn next(
        &mut self,
        exports: &Exports,
        person: PersonId,
    ) -> Result<Option<Vec<Document>>, ExportError> {
        let catalog = &exports.stores.catalog;
        let page = catalog
            .documents_after(person, self.kind, self.after, PAGE)
            .await?;
        let Some(last) = page.last() else {
            return Ok(None);
        };
        self.after = Some((last.created_at, last.id));
        Ok(Some(page))
    }
}

/// A membership without what the group's owner noted in it about the member, and without when they did.
fn as_the_member_sees(membership: Document) -> Result<Document, ExportError> {
    let Membership {
        group, participant, ..
    } = Membership::of(&membership)?;
    let kept = KeptMembership { group, participant };
    Ok(Document {
        body: serde_json::to_string(&kept).map_err(unwritable)?,
        version: 1,
        updated_at: membership.created_at,
        ..membership
    })
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
pub(super) fn unreadable(error: ElementError) -> ExportError {
    StoreError::corrupt(format!("something that the person wrote: {error}")).into()
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn unwritable(error: serde_json::Error) -> ExportError {
    StoreError::Rows {
        detail: error.to_string(),
    }
    .into()
}
