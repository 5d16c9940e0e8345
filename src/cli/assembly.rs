//! Puts the rooms together: makes everything that lives as long as the service, once, in one place.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::api::accepted::AcceptedTokens;
use crate::api::admission::{Admission, Room};
use crate::api::app::{App, AppState};
use crate::api::metrics::Metrics;
use crate::api::rates::Rates;
use crate::api::readiness::Readiness;
use crate::api::recent_answers::RecentAnswers;
use crate::api::repeats::Repeats;
use crate::api::settings::InterfaceSettings;
use crate::api::traces::Traces;
use crate::auth::grants::Grants;
use crate::auth::mint::Minter;
use crate::auth::tickets::Tickets;
use crate::auth::tokens::Verifier;
use crate::catalog::Catalog;
use crate::ingest::compile::CompiledTypes;
use crate::ingest::memory::BodyMemory;
use crate::ingest::pressure::TailPressure;
use crate::ingest::queue::{CommitQueue, Committer, GroupOutcome, GroupReport, QueueSettings};
use crate::ingest::stores::IntakeStores;
use crate::model::clock::Clock;
use crate::model::ids::{IdSource, SystemIds};
use crate::model::meters::{CommitMeters, UpkeepMeters};
use crate::model::registry::Registry;
use crate::people::annotations::Annotations;
use crate::people::documents::Documents;
use crate::people::files::{FileSettings, Files};
use crate::people::frames::Frames;
use crate::people::key_quota::KeyQuota;
use crate::people::reflections::Reflections;
use crate::people::sessions::Sessions;
use crate::people::sharing::Sharing;
use crate::people::sharing::access_log::AccessLog;
use crate::people::source_quota::SourceQuota;
use crate::people::tags::Tags;
use crate::people::takeout::Exports;
use crate::people::types::Types;
use crate::query::Questions;
use crate::query::engine::{Engine, EngineSettings};
use crate::query::places::geocoder::Geocoder;
use crate::query::places::geocoder::offline::Offline;
use crate::query::places::geocoder::service::Service;
use crate::store::contents::Contents;
use crate::store::files::PieceFiles;
use crate::store::objects::ObjectStorage;
use crate::store::sealing::PersonKeys;
use crate::store::snapshot::Snapshots;
use crate::upkeep::UpkeepStores;

use super::caches::CacheSizes;
use super::failed::Failed;
use super::runtimes::{self, Computing};
use super::settings::Settings;
use super::spill::{SPILL, SpillDirectory};

#[cfg(test)]
mod tests;

/// The most requests in one transaction.
const GROUP_REQUESTS: usize = 1024;
/// How many people's requests are gathered at the same time.
const PEOPLE_AT_ONCE: usize = 4;
/// How long a body waits for memory.
const BODY_MEMORY_WAIT: Duration = Duration::from_secs(10);

/// The service, ready to be served.
pub(super) struct Assembly {
    pub app: AppState,
    /// What background work reads and writes.
    pub stores: UpkeepStores,
    pub committing: JoinHandle<()>,
    /// Writes the access log.
    pub logging: JoinHandle<()>,
    /// Sends traces, if an operator collects them.
    pub sending: Option<JoinHandle<()>>,
    /// Runs plans; shut down last.
    pub computing: Computing,
    /// Where plans spill to; removed when no plan runs any more.
    pub spill: SpillDirectory,
}

/// The parts that the rooms are made from.
pub(super) struct Foundations {
    pub clock: Arc<dyn Clock>,
    pub catalog: Catalog,
    pub objects: ObjectStorage,
    /// The keys that encrypt stored data, if it is encrypted.
    pub keys: Option<Arc<PersonKeys>>,
    pub registry: Registry,
    pub verifier: Verifier,
    pub minter: Option<Minter>,
    pub tickets: Tickets,
    pub readiness: Box<dyn Readiness>,
}

pub(super) fn assemble(settings: &Settings, foundations: Foundations) -> Result<Assembly, Failed> {
    let metrics = Metrics::new();
    let caches = CacheSizes::of(settings.queries.cache_memory);
    let (stores, intake) = open_storage(&foundations, &caches);
    let compute = open_compute(settings, stores.ids.next())?;
    let commits = metrics.meters.commits.clone();
    let (commits, committing) = commit_queue(settings, &stores.catalog, &intake, commits)?;
    let geocoder = geocoder(settings, &metrics)?;
    let (sharing, logging) = sharing(settings, &stores);
    let (traces, sending) = traces(settings, &stores, &metrics)?.unzip();
    let registry = Arc::new(foundations.registry);
    let people = people_services(settings, &stores, &registry, &metrics.meters.upkeep, &caches);
    let app = Arc::new(App {
        verifier: foundations.verifier,
        accepted: AcceptedTokens::default(),
        minter: foundations.minter,
        limits: settings.limits,
        sessions: people.sessions,
        annotations: people.annotations,
        tags: people.tags,
        reflections: people.reflections,
        files: people.files,
        exports: people.exports,
        frames: people.frames,
        tickets: foundations.tickets,
        uploads: Arc::new(Semaphore::new(settings.files.concurrent_uploads)),
        rates: Rates::new(settings.interface.rates),
        source_quota: SourceQuota::new(stores.catalog.clone(), settings.limits.sources),
        key_quota: KeyQuota::new(stores.catalog.clone(), settings.limits.keys),
        queries: admission(&settings.interface, &metrics),
        settings: settings.interface.clone(),
        types: people.types,
        grants: Grants::new(stores.catalog.clone(), Arc::clone(&registry)),
        compiled: CompiledTypes::new(registry).keeping(caches.compiled_types),
        catalog: stores.catalog.clone(),
        questions: Questions::new(
            Arc::clone(&compute.engine),
            stores.catalog.clone(),
            stores.snapshots.clone(),
            intake.stores.finder.clone(),
            caches.of_questions(),
        ),
        intake,
        bodies: BodyMemory::new(settings.writes.body_memory, BODY_MEMORY_WAIT),
        commits,
        engine: compute.engine,
        clock: Arc::clone(&stores.clock),
        ids: Arc::clone(&stores.ids),
        sharing,
        metrics,
        readiness: foundations.readiness,
        recent: RecentAnswers::new(caches.answers),
        repeats: Repeats::new(caches.repeats),
        geocoder,
        traces,
    });
    watch_caches(&app, &stores.files);
    Ok(Assembly {
        app,
        stores,
        committing,
        logging,
        sending,
        computing: compute.computing,
        spill: compute.spill,
    })
}

/// The catalogue and the store as background work uses them, and as writes do, with one set of caches.
fn open_storage(foundations: &Foundations, caches: &CacheSizes) -> (UpkeepStores, IntakeStores) {
    let snapshots = Snapshots::new(foundations.catalog.clone(), caches.snapshots);
    let stores = UpkeepStores {
        catalog: foundations.catalog.clone(),
        snapshots: snapshots.opening(foundations.keys.clone()),
        files: PieceFiles::new(foundations.objects.clone(), caches.footers),
        clock: Arc::clone(&foundations.clock),
        ids: Arc::new(SystemIds::default()),
    };
    let (snapshots, files) = (stores.snapshots.clone(), stores.files.clone());
    let intake = IntakeStores::new(snapshots, files, caches.filters, Arc::clone(&stores.ids));
    (stores, intake)
}

/// What runs plans: threads, a place to spill to, and the engine that uses both.
struct Compute {
    computing: Computing,
    spill: SpillDirectory,
    engine: Arc<Engine>,
}

/// `process` names what this process spills.
fn open_compute(settings: &Settings, process: Uuid) -> Result<Compute, Failed> {
    let computing = runtimes::computing(settings.queries.threads)?;
    let spill = SpillDirectory::open(&settings.data_dir.join(SPILL), process)?;
    let engine = Arc::new(engine(settings, &spill, &computing)?);
    Ok(Compute {
        computing,
        spill,
        engine,
    })
}

/// What people have besides records.
struct PeopleServices {
    sessions: Sessions,
    types: Types,
    annotations: Annotations,
    tags: Tags,
    reflections: Reflections,
    files: Files,
    frames: Frames,
    exports: Exports,
}

fn people_services(
    settings: &Settings,
    stores: &UpkeepStores,
    registry: &Arc<Registry>,
    meters: &UpkeepMeters,
    caches: &CacheSizes,
) -> PeopleServices {
    let UpkeepStores {
        catalog, clock, ids, ..
    } = stores;
    let documents = Documents::new(catalog.clone(), Arc::clone(clock), Arc::clone(ids));
    let source_prefix: Arc<str> = Arc::from(settings.interface.source_prefix.as_str());
    let limits = &settings.limits;
    PeopleServices {
        sessions: Sessions::new(
            catalog.clone(),
            Arc::clone(clock),
            Arc::clone(ids),
            limits.sessions,
        )
        .keeping_ends(caches.session_ends),
        types: Types::new(
            Arc::clone(registry),
            catalog.clone(),
            Arc::clone(clock),
            Arc::clone(ids),
            limits.definitions,
        )
        .keeping(caches.types, caches.type_lists),
        annotations: Annotations::new(
            documents.clone(),
            limits.annotations,
            Arc::clone(&source_prefix),
            caches.annotations,
        ),
        tags: Tags::new(documents.clone(), limits.tags),
        reflections: Reflections::new(documents, limits.reflections),
        files: kept_files(
            settings,
            catalog,
            stores.contents(),
            clock,
            ids,
            settings.sends_directly().then(|| meters.clone()),
        )
        .keeping_lists(caches.file_lists),
        frames: Frames::of_stores(stores, settings.frames),
        exports: Exports::new(stores.clone(), settings.exports, source_prefix),
    }
}

/// Makes the service's metrics show what its caches hold.
fn watch_caches(app: &App, files: &PieceFiles) {
    let meters = &app.metrics.meters.caches;
    app.intake.stores.snapshots.watched_by(meters);
    files.watched_by(meters);
    app.intake.stores.finder.watched_by(meters);
    app.questions.watched_by(meters);
    app.recent.watched_by(meters);
    app.repeats.watched_by(meters);
    app.annotations.watched_by(meters);
    app.files.watched_by(meters);
    app.sessions.watched_by(meters);
    app.types.watched_by(meters);
    app.compiled.watched_by(meters);
}

/// Limits the questions that run and wait.
fn admission(interface: &InterfaceSettings, metrics: &Metrics) -> Admission {
    let all = Room {
        places: interface.concurrent_queries,
        seats: interface.waiting_queries,
    };
    let of_one_person = Room {
        places: interface.person_queries,
        seats: interface.waiting_queries.div_ceil(2),
    };
    Admission::new(
        all,
        of_one_person,
        interface.queue_patience,
        metrics.meters.reads.clone(),
    )
}

/// The queue of writes, and the task that commits them.
pub(super) fn commit_queue(
    settings: &Settings,
    catalog: &Catalog,
    intake: &IntakeStores,
    meters: CommitMeters,
) -> Result<(CommitQueue, JoinHandle<()>), Failed> {
    let committer = Committer {
        catalog: catalog.clone(),
        shared: intake.clone(),
        tail: TailPressure::new(catalog.clone(), settings.writes.tail_limit),
        report: reporter(meters),
    };
    let queue = QueueSettings {
        waiting: settings.writes.waiting,
        waiting_bytes: settings.writes.body_memory,
        group: GROUP_REQUESTS,
        window: settings.writes.commit_window,
        size: settings.writes.commit_size,
        at_once: PEOPLE_AT_ONCE,
    };
    if catalog.is_written_by_the_caller() {
        CommitQueue::start_apart(queue, committer).map_err(Failed::from_error)
    } else {
        Ok(CommitQueue::start(queue, committer))
    }
}

/// The files that people keep. `direct`: counts those that were sent directly to the object store, if they
/// may be.
pub(super) fn kept_files(
    settings: &Settings,
    catalog: &Catalog,
    contents: Contents,
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
    direct: Option<UpkeepMeters>,
) -> Files {
    let file_settings = FileSettings {
        limits: settings.limits,
        upload_lifetime: settings.files.upload_lifetime,
        scanned: settings.files.clamd.is_some(),
    };
    let files = Files::new(
        catalog.clone(),
        contents,
        Arc::clone(clock),
        Arc::clone(ids),
        file_settings,
    );
    match direct {
        Some(meters) => files.directly(meters),
        None => files,
    }
}

/// Shares and groups, and the task that writes the access log.
fn sharing(settings: &Settings, stores: &UpkeepStores) -> (Sharing, JoinHandle<()>) {
    let UpkeepStores {
        catalog, clock, ids, ..
    } = stores;
    let (log, logging) = AccessLog::start(catalog.clone(), Arc::clone(clock), Arc::clone(ids));
    let sharing = Sharing::new(
        catalog.clone(),
        Arc::clone(clock),
        Arc::clone(ids),
        log,
        settings.limits,
    );
    (sharing, logging)
}

/// The collector of traces, and the task that sends them.
fn traces(
    settings: &Settings,
    stores: &UpkeepStores,
    metrics: &Metrics,
) -> Result<Option<(Traces, JoinHandle<()>)>, Failed> {
    let Some(to) = &settings.traces else {
        return Ok(None);
    };
    let (traces, to_send) = Traces::new(
        Arc::clone(&stores.clock),
        Arc::clone(&stores.ids),
        metrics.traces.clone(),
    );
    let sending = to_send.sent_as(to).map_err(Failed::from_error)?;
    Ok(Some((traces, tokio::spawn(sending.run()))))
}

fn geocoder(settings: &Settings, metrics: &Metrics) -> Result<Arc<dyn Geocoder>, Failed> {
    Ok(match &settings.geocoder {
        Some(service) => {
            Arc::new(Service::new(service, metrics.meters.geocoder.clone()).map_err(Failed::from_error)?)
        }
        None => Arc::new(Offline::default()),
    })
}

fn engine(settings: &Settings, spill: &SpillDirectory, computing: &Computing) -> Result<Engine, Failed> {
    let engine = EngineSettings {
        memory: settings.queries.memory_limit,
        spill: spill.path().to_owned(),
        spill_limit: settings.queries.spill_limit,
        deadline: settings.interface.query_deadline,
        total_deadline: settings.upkeep.grace_period,
    };
    Engine::new(&engine, computing.handle().clone()).map_err(Failed::from_error)
}

fn reporter(meters: CommitMeters) -> Box<dyn Fn(GroupReport) + Send + Sync> {
    Box::new(move |report| {
        if matches!(report.outcome, GroupOutcome::Overtaken(_)) {
            meters.stale.inc();
            return;
        }
        meters.requests.observe(report.requests as f64);
        meters.records.observe(report.rows as f64);
        meters.seconds.observe(report.elapsed.as_secs_f64());
        if report.outcome == GroupOutcome::Failed {
            meters.failures.inc();
        }
    })
}
