//! Puts the rooms together: makes everything that lives as long as the service, once, in one place.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::api::accepted::Accepted;
use crate::api::admission::{Admission, Room};
use crate::api::app::{App, Shared};
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
use crate::ingest::queue::{CommitQueue, Committer, GroupReport, QueueSettings};
use crate::ingest::stores::{IntakeStores, Stores};
use crate::model::clock::Clock;
use crate::model::ids::{IdSource, SystemIds};
use crate::model::meters::CommitMeters;
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
use crate::store::find::Finder;
use crate::store::objects::ObjectStorage;
use crate::store::sealing::PersonKeys;
use crate::store::snapshot::Snapshots;
use crate::store::tail::Packer;
use crate::upkeep::UpkeepStores;

use super::Failed;
use super::caches::Caches;
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
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// The service, ready to be served.
pub(super) struct Assembly {
    pub app: Shared,
    pub catalog: Catalog,
    pub snapshots: Snapshots,
    pub files: PieceFiles,
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
    let Foundations {
        clock,
        catalog,
        objects,
        keys,
        registry,
        verifier,
        minter,
        tickets,
        readiness,
    } = foundations;
    let registry = Arc::new(registry);
    let ids: Arc<dyn IdSource> = Arc::new(SystemIds::default());
    let metrics = Metrics::new();
    let caches = Caches::of(settings.queries.cache_memory);
    let files = PieceFiles::new(objects.clone(), caches.footers);
    let snapshots = Snapshots::new(catalog.clone(), caches.snapshots).opening(keys);
    let stores = Stores {
        snapshots: snapshots.clone(),
        finder: Finder::new(files.clone(), caches.filters),
        packer: Packer::default(),
    };

    let computing = runtimes::computing(settings.queries.threads)?;
    let spill = SpillDirectory::open(&settings.data_dir.join(SPILL), ids.next())?;
    let engine = Arc::new(engine(settings, &spill, &computing)?);
    let intake = IntakeStores {
        stores,
        objects: objects.clone(),
        ids: Arc::clone(&ids),
    };
    let (commits, committing) = commit_queue(settings, &catalog, &intake, metrics.meters.commits.clone())?;
    let interface = settings.interface.clone();
    let queries = admission(&interface, &metrics);
    let geocoder = geocoder(settings, &metrics)?;
    let (sharing, logging) = sharing(settings, &catalog, &clock, &ids);
    let (traces, sending) = traces(settings, &clock, &ids, &metrics)?.unzip();
    let grants = Grants::new(catalog.clone(), Arc::clone(&registry));
    let documents = Documents::new(catalog.clone(), Arc::clone(&clock), Arc::clone(&ids));
    let kept_files = kept_files(settings, &catalog, &objects, &clock, &ids);
    let kept_files = sent_directly(kept_files, settings, &metrics);
    let upkeep = UpkeepStores {
        catalog: catalog.clone(),
        snapshots: snapshots.clone(),
        files: files.clone(),
        clock: Arc::clone(&clock),
        ids: Arc::clone(&ids),
    };
    let frames = Frames::of_stores(&upkeep, settings.frames);
    let source_prefix: Arc<str> = Arc::from(interface.source_prefix.as_str());
    let exports = Exports::new(upkeep, settings.exports, Arc::clone(&source_prefix));
    let app = Arc::new(App {
        verifier,
        accepted: Accepted::default(),
        minter,
        limits: settings.limits,
        sessions: Sessions::new(
            catalog.clone(),
            Arc::clone(&clock),
            Arc::clone(&ids),
            settings.limits.sessions,
        ),
        annotations: Annotations::new(documents.clone(), settings.limits.annotations, source_prefix),
        tags: Tags::new(documents.clone(), settings.limits.tags),
        reflections: Reflections::new(documents, settings.limits.reflections),
        files: kept_files,
        exports,
        frames,
        tickets,
        uploads: Arc::new(Semaphore::new(settings.files.concurrent_uploads)),
        rates: Rates::new(interface.rates),
        source_quota: SourceQuota::new(catalog.clone(), settings.limits.sources),
        key_quota: KeyQuota::new(catalog.clone(), settings.limits.keys),
        settings: interface,
        types: Types::new(
            Arc::clone(&registry),
            catalog.clone(),
            Arc::clone(&clock),
            Arc::clone(&ids),
            settings.limits.definitions,
        ),
        compiled: CompiledTypes::new(registry),
        catalog: catalog.clone(),
        questions: Questions::new(
            Arc::clone(&engine),
            catalog.clone(),
            snapshots.clone(),
            intake.stores.finder.clone(),
            caches.of_questions(),
        ),
        intake,
        bodies: BodyMemory::new(settings.writes.body_memory, BODY_PATIENCE),
        commits,
        engine,
        clock,
        ids,
        grants,
        sharing,
        metrics,
        readiness,
        recent: RecentAnswers::new(caches.answers),
        repeats: Repeats::new(caches.repeats),
        geocoder,
        queries,
        traces,
    });
    watch_caches(&app, &files);
    Ok(Assembly {
        app,
        catalog,
        snapshots,
        files,
        committing,
        logging,
        sending,
        computing,
        spill,
    })
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

/// The files that people keep.
pub(super) fn kept_files(
    settings: &Settings,
    catalog: &Catalog,
    objects: &ObjectStorage,
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
) -> Files {
    let contents = Contents::new(
        catalog.clone(),
        objects.clone(),
        Arc::clone(clock),
        Arc::clone(ids),
    );
    let file_settings = FileSettings {
        limits: settings.limits,
        upload_lifetime: settings.files.upload_lifetime,
        scanned: settings.files.clamd.is_some(),
    };
    Files::new(
        catalog.clone(),
        contents,
        Arc::clone(clock),
        Arc::clone(ids),
        file_settings,
    )
}

/// The same, with direct uploads to the object store if the settings allow them.
fn sent_directly(files: Files, settings: &Settings, metrics: &Metrics) -> Files {
    if settings.sends_directly() {
        files.directly(metrics.meters.upkeep.clone())
    } else {
        files
    }
}

/// Shares and groups, and the task that writes the access log.
fn sharing(
    settings: &Settings,
    catalog: &Catalog,
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
) -> (Sharing, JoinHandle<()>) {
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
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
    metrics: &Metrics,
) -> Result<Option<(Traces, JoinHandle<()>)>, Failed> {
    let Some(to) = &settings.traces else {
        return Ok(None);
    };
    let (traces, to_send) = Traces::new(Arc::clone(clock), Arc::clone(ids), metrics.traces.clone());
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
        if report.overtaken > 0 {
            meters.stale.inc();
            return;
        }
        meters.requests.observe(report.requests as f64);
        meters.records.observe(report.rows as f64);
        meters.seconds.observe(report.elapsed.as_secs_f64());
        if !report.committed {
            meters.failures.inc();
        }
    })
}
