//! What handlers work with: made once at start, shared by all requests, never changed.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::api::accepted::Accepted;
use crate::api::admission::Admission;
use crate::api::layers::rates::buckets::Rates;
use crate::api::metrics::Metrics;
use crate::api::readiness::Readiness;
use crate::api::recent_answers::RecentAnswers;
use crate::api::repeats::Repeats;
use crate::api::settings::InterfaceSettings;
use crate::api::traces::Traces;
use crate::auth::grants::{GrantAuthority, Grants};
use crate::auth::mint::Minter;
use crate::auth::tickets::Tickets;
use crate::auth::tokens::Verifier;
use crate::catalog::Catalog;
use crate::ingest::compile::CompiledTypes;
use crate::ingest::memory::BodyMemory;
use crate::ingest::queue::CommitQueue;
use crate::ingest::stores::IntakeStores;
use crate::model::clock::Clock;
use crate::model::ids::IdSource;
use crate::people::annotations::Annotations;
use crate::people::files::Files;
use crate::people::frames::Frames;
use crate::people::key_quota::KeyQuota;
use crate::people::limits::PersonLimits;
use crate::people::reflections::Reflections;
use crate::people::sessions::Sessions;
use crate::people::sharing::Sharing;
use crate::people::source_quota::SourceQuota;
use crate::people::tags::Tags;
use crate::people::takeout::Exports;
use crate::people::types::Types;
use crate::query::Questions;
use crate::query::engine::Engine;
use crate::query::places::geocoder::Geocoder;

/// The running service, as the interface sees it.
pub struct App {
    pub settings: InterfaceSettings,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub verifier: Verifier,
    /// Who was let in, and when nothing of theirs had changed.
    pub accepted: Accepted,
    /// Makes tokens, where they are made here.
    pub minter: Option<Minter>,
    /// How much of each thing one person may have.
    pub limits: PersonLimits,
    /// What stands behind tokens that were made here.
    pub sessions: Sessions,
    pub grants: Grants,
    /// Shares and groups, and the log of what was read.
    pub sharing: Sharing,
    pub metrics: Metrics,
    pub readiness: Box<dyn Readiness>,
    /// What can be recorded: the built-in types and each person's own.
    pub types: Types,
    pub annotations: Annotations,
    pub tags: Tags,
    pub reflections: Reflections,
    /// Types ready to decode their records.
    pub compiled: CompiledTypes,
    pub catalog: Catalog,
    /// What people keep beside their records.
    pub files: Files,
    /// Archives of everything that a person has.
    pub exports: Exports,
    /// Answers that are kept for a while.
    pub frames: Frames,
    /// Addresses to which the bytes of files are sent.
    pub tickets: Tickets,
    /// Places for files that are being sent.
    pub uploads: Arc<Semaphore>,
    /// Where bodies go.
    pub intake: IntakeStores,
    /// The memory of bodies that are on their way.
    pub bodies: BodyMemory,
    pub commits: CommitQueue,
    pub engine: Arc<Engine>,
    /// Everything stored, for those with a permit.
    pub questions: Questions<GrantAuthority>,
    /// Answers that were given a moment ago.
    pub recent: RecentAnswers,
    /// What was sent lately word for word, and how it was answered.
    pub repeats: Repeats,
    /// Names for positions.
    pub geocoder: Arc<dyn Geocoder>,
    /// How much may be asked for.
    pub rates: Rates,
    /// How many sources records may name.
    pub source_quota: SourceQuota,
    pub key_quota: KeyQuota,
    /// Places for questions.
    pub queries: Admission,
    /// Who is told what became of requests, if anybody is.
    pub traces: Option<Traces>,
}

/// The state of every route.
pub type Shared = Arc<App>;
