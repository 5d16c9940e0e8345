//! The background work of `almanac serve`: starts each task, in its own time and on its own threads.
//!
//! Knows which tasks there are and when each is wanted; not what they do, or what becomes of them at the end.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::data::frames;
use crate::model::cache_pool::CachePool;
use crate::people::files::Arrivals;
use crate::people::files::antivirus::Scanning;
use crate::people::purging::Purging;
use crate::people::takeout::Building;
use crate::upkeep::Upkeep;
use crate::upkeep::lease::Leases;

use super::assembly::Assembly;
use super::broken_part::NamedTask;
use super::caches;
use super::forgetting;
use super::settings::Settings;

/// All background work, each task with its name. None of them ends before `stop` is called.
pub(super) fn all(settings: &Settings, assembly: &Assembly, stop: &CancellationToken) -> Vec<NamedTask> {
    let mut tasks = beside(settings, assembly, stop);
    tasks.push(("upkeep", upkeep(settings, assembly, stop)));
    tasks
}

/// Upkeep, on the threads that run plans.
fn upkeep(settings: &Settings, assembly: &Assembly, stop: &CancellationToken) -> JoinHandle<()> {
    Upkeep::start(
        settings.upkeep,
        assembly.stores.clone(),
        assembly.app.metrics.meters.clone(),
        stop.clone(),
        assembly.computing.handle(),
    )
}

/// The background work besides upkeep, each task with its name.
fn beside(settings: &Settings, assembly: &Assembly, stop: &CancellationToken) -> Vec<NamedTask> {
    let forgetting = tokio::spawn(forgetting::run(
        Arc::clone(&assembly.app),
        assembly.stores.files.clone(),
        settings.upkeep.interval,
        stop.clone(),
    ));
    let dividing = tokio::spawn(caches::divide(pool(assembly), stop.clone()));
    let sweeping = tokio::spawn(frames::sweep(Arc::clone(&assembly.app), stop.clone()));
    let purging = purging(settings, assembly, stop).map(|task| ("the purging of what was deleted", task));
    let scanning = scanning(settings, assembly, stop).map(|task| ("the scanning of files", task));
    let building = building(settings, assembly, stop).map(|task| ("the making of exports", task));
    let arriving = arriving(settings, assembly, stop).map(|task| ("the taking in of files", task));
    let always = [
        ("the forgetting of who was erased", forgetting),
        ("the division of memory among caches", dividing),
        ("the sweeping of frames", sweeping),
    ];
    let sometimes = [purging, scanning, building, arriving].into_iter().flatten();
    sometimes.chain(always).collect()
}

/// The caches that lend each other memory: those that grow with what is stored.
fn pool(assembly: &Assembly) -> CachePool {
    let app = &assembly.app;
    CachePool::of(vec![
        app.intake.stores.snapshots.pooled(),
        app.intake.stores.finder.pooled(),
        app.questions.pooled_rollups(),
        app.files.pooled_lists(),
    ])
}

/// Removes permanently what people deleted long ago, on a node that does background work.
fn purging(settings: &Settings, assembly: &Assembly, stop: &CancellationToken) -> Option<JoinHandle<()>> {
    let app = &assembly.app;
    let purging = Purging {
        catalog: assembly.stores.catalog.clone(),
        files: app.files.clone(),
        leases: leases(assembly),
        after: settings.upkeep.purge_deleted_after,
        interval: settings.upkeep.interval,
    };
    let work = purging.run(stop.clone());
    settings.upkeep.enabled.then(|| tokio::spawn(work))
}

/// Scans files for malware, if a scanner is set.
fn scanning(settings: &Settings, assembly: &Assembly, stop: &CancellationToken) -> Option<JoinHandle<()>> {
    let scanner = settings.files.clamd.clone()?;
    let work = Scanning::new(assembly.app.files.clone(), scanner, leases(assembly)).run(stop.clone());
    Some(tokio::spawn(work))
}

/// Makes archives, on a node that does background work.
fn building(settings: &Settings, assembly: &Assembly, stop: &CancellationToken) -> Option<JoinHandle<()>> {
    let work = Building::new(assembly.app.exports.clone(), leases(assembly)).run(stop.clone());
    settings
        .upkeep
        .enabled
        .then(|| assembly.computing.handle().spawn(work))
}

/// Registers files that their senders put directly into the object store, if that is allowed.
fn arriving(settings: &Settings, assembly: &Assembly, stop: &CancellationToken) -> Option<JoinHandle<()>> {
    let work = || Arrivals::new(assembly.app.files.clone()).run(stop.clone());
    settings.sends_directly().then(|| tokio::spawn(work()))
}

/// The leases of this node.
fn leases(assembly: &Assembly) -> Leases {
    let app = &assembly.app;
    Leases::new(
        assembly.stores.catalog.clone(),
        app.ids.next().to_string(),
        app.metrics.meters.upkeep.clone(),
    )
}
