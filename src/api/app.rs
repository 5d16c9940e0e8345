//! What handlers work with: made once at start, shared by all requests, never changed.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::api::accepted::AcceptedTokens;
use crate::api::admission::Admission;
use crate::api::metrics::Metrics;
use crate::api::rates::Rates;
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
    /// The tokens that were accepted, and in which state of their person.
    pub accepted: AcceptedTokens,
    /// Makes tokens, if this service issues its own.
    pub minter: Option<Minter>,
    /// How much one person may have of each thing.
    pub limits: PersonLimits,
    /// The sessions of tokens that were made here.
    pub sessions: Sessions,
    pub grants: Grants,
    /// Shares and groups, and the log of what others read.
    pub sharing: Sharing,
    pub metrics: Metrics,
    pub readiness: Box<dyn Readiness>,
    /// What can be recorded: the built-in types and each person's own.
    pub types: Types,
    pub annotations: Annotations,
    pub tags: Tags,
    pub reflections: Reflections,
    /// Types with their decoders compiled.
    pub compiled: CompiledTypes,
    pub catalog: Catalog,
    /// What people keep beside their records.
    pub files: Files,
    /// Archives of everything that a person has.
    pub exports: Exports,
    /// Answers that are kept for a while.
    pub frames: Frames,
    /// Signed addresses to which the bytes of files are sent.
    pub tickets: Tickets,
    /// Limits how many files are uploaded at the same time.
    pub uploads: Arc<Semaphore>,
    /// The stores that records are written to.
    pub intake: IntakeStores,
    /// The memory for bodies that are being received or committed.
    pub bodies: BodyMemory,
    pub commits: CommitQueue,
    pub engine: Arc<Engine>,
    /// Answers questions about everything stored, given a permit.
    pub questions: Questions<GrantAuthority>,
    /// Recent answers, for the same question asked again.
    pub recent: RecentAnswers,
    /// Recent requests, word for word, and how they were answered.
    pub repeats: Repeats,
    /// Names for positions.
    pub geocoder: Arc<dyn Geocoder>,
    /// How many requests and bytes are allowed in a minute.
    pub rates: Rates,
    /// How many sources the records of one person may name.
    pub source_quota: SourceQuota,
    pub key_quota: KeyQuota,
    /// Admits questions to a limited number of places.
    pub queries: Admission,
    /// Sends traces of requests, if an operator collects them.
    pub traces: Option<Traces>,
}

/// The state of every route.
pub type AppState = Arc<App>;
