//! `almanac check`: verifies that everything stored is what was written. Works beside a running service with
//! the same settings.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use crate::catalog::Catalog;
use crate::catalog::erasures::Erasure;
use crate::model::ids::PersonId;
use crate::upkeep::UpkeepStores;
use crate::upkeep::check::{CheckProgress, CheckTotals, check};
use crate::upkeep::erase;
use crate::upkeep::erasure_check::{TracesLeft, traces_left};
use crate::upkeep::rebuild::rebuild;
use crate::upkeep::repair::{give_up_lost, overwrite_given_up, repair};

use super::failed::Failed;
use super::progress::Progress;
use super::settings::Settings;
use super::spill::SPILL;
use super::standard_output::print;
use super::{data_directory, installation, runtimes, stores};

/// What a check repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repairs {
    Nothing,
    WhatCanBeRebuilt,
    /// And gives up the rows that the catalogue has lost.
    AcceptingLoss,
}

pub fn run(settings: &Settings, repairs: Repairs) -> Result<(), Failed> {
    let runtime = runtimes::many_threads()?;
    runtime.block_on(check_all(settings, repairs))
}

/// Cuts off what follows damage in the catalogue's log, if no running service needs it.
fn cut_damaged_log(settings: &Settings) -> Result<(), Failed> {
    if data_directory::served(&settings.data_dir).by_another {
        return Ok(());
    }
    let cut = Catalog::cut_damaged_log(&settings.database_url).map_err(Failed::from_error)?;
    cut.map_or(Ok(()), |line| print(&format!("repair: {line}\n")))
}

async fn check_all(settings: &Settings, repairs: Repairs) -> Result<(), Failed> {
    let repair = repairs != Repairs::Nothing;
    let stores = if repair {
        installation::repairable(settings).await?;
        cut_damaged_log(settings)?;
        stores::to_repair(settings).await?
    } else {
        installation::begun(settings)?;
        stores::to_go_through(settings).await?
    };
    let mut left_wrong = 0;
    if repair {
        match repaired(settings, &stores, repairs).await {
            Ok(wrong) => left_wrong = wrong,
            Err(failed) => {
                stores.catalog.close().await;
                return Err(failed);
            }
        }
    }
    let progress = Progress::new("objects");
    let unprinted = Mutex::new(None);
    let tell = |told: CheckProgress| match told {
        CheckProgress::Objects(total) => progress.expect(total),
        CheckProgress::Object => progress.advance(),
        CheckProgress::Wrong(what) => {
            if let Err(failed) = progress.aside(|| print(&format!("wrong: {what}\n"))) {
                *unprinted.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed);
            }
        }
    };
    let checked = check(&stores, &tell).await;
    progress.finish();
    stores.catalog.close().await;
    if let Some(failed) = unprinted.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failed);
    }
    let mut checked = checked.map_err(stores::not_gone_through)?;
    checked.wrong += left_wrong;
    conclude(checked)
}

/// Makes a lost catalogue anew, and with a whole one what the store has lost. Returns how many things are
/// wrong that no check knows of: damaged ones that were left out of the catalogue, and bytes that were given
/// up and are not overwritten.
async fn repaired(settings: &Settings, stores: &UpkeepStores, repairs: Repairs) -> Result<usize, Failed> {
    let rebuilt = rebuild(stores).await.map_err(Failed::from_error)?;
    if let Some(store) = rebuilt.store {
        // Where only a setting was missing, there are two from now on.
        print(&format!(
            "repair: from now on this is the catalogue of the object store {store}; no other one may be used \
             with it\n"
        ))?;
    }
    for line in rebuilt.done.iter().chain(&rebuilt.failed) {
        print(&format!("repair: {line}\n"))?;
    }
    for line in &rebuilt.wrong {
        print(&format!("wrong: {line}\n"))?;
    }
    if !rebuilt.failed.is_empty() {
        return Err(Failed::because(format!(
            "the repair is not finished, {} people are missing: run `almanac check --repair` again",
            rebuilt.failed.len()
        )));
    }
    let mut wrong = rebuilt.wrong.len();
    if repairs == Repairs::AcceptingLoss {
        accept_loss(stores).await?;
        if let Err(error) = overwrite_given_up(stores).await {
            print(&format!(
                "wrong: removed bytes are not overwritten in the catalogue's files yet, which the next \
                 `almanac check --repair --accept-loss` does: {error}\n"
            ))?;
            wrong += 1;
        }
    }
    stores::mark_if_paired(settings, stores).await?;
    for line in repair(stores).await.map_err(stores::not_gone_through)? {
        print(&format!("repair: {line}\n"))?;
    }
    Ok(wrong)
}

/// Gives up what is lost, and prints each as it is done: what comes after may fail.
async fn accept_loss(stores: &UpkeepStores) -> Result<(), Failed> {
    let unprinted = Cell::new(None);
    let tell = |line: String| {
        if let Err(failed) = print(&format!("repair: {line}\n")) {
            unprinted.set(Some(failed));
        }
    };
    let given_up = give_up_lost(stores, &tell).await;
    match unprinted.take() {
        Some(failed) => Err(failed),
        None => given_up.map_err(stores::not_gone_through),
    }
}

/// `almanac check --erased`: is anything left of a person?
pub fn run_erased(settings: &Settings, person: PersonId) -> Result<(), Failed> {
    let runtime = runtimes::one_thread()?;
    runtime.block_on(check_erased(settings, person))
}

async fn check_erased(settings: &Settings, person: PersonId) -> Result<(), Failed> {
    installation::needed(settings)?;
    let stores = stores::to_go_through(settings).await?;
    let spill = settings.data_dir.join(SPILL);
    let remains = Box::pin(traces_left(&stores, person, &spill)).await;
    let now = stores.catalog.now().await;
    stores.catalog.close().await;
    let TracesLeft { erasure, left, stays } = remains.map_err(Failed::from_error)?;
    let now = now.map_err(Failed::from_error)?;
    print(&match erasure {
        None => format!("no erasure of {person} is known\n"),
        Some(Erasure {
            begun_at,
            ended_at: Some(ended_at),
            ..
        }) => format!("the erasure began {begun_at} and was over {ended_at}\n"),
        Some(Erasure { begun_at, .. }) => format!(
            "the erasure began {begun_at} and is under way; until it is over, not before {}, the catalogue \
             keeps the id, to look once more\n",
            erase::ends_by(begun_at, now)
        ),
    })?;
    for what in &stays {
        print(&format!("stays: {what}\n"))?;
    }
    for what in &left {
        print(&format!("left: {what}\n"))?;
    }
    match left.len() {
        0 => print("nothing is left\n"),
        count => Err(Failed::because(things(count, "left"))),
    }
}

fn conclude(checked: CheckTotals) -> Result<(), Failed> {
    let CheckTotals {
        people,
        partitions,
        objects,
        tail_pieces,
        wrong,
    } = checked;
    print(&format!(
        "looked at {people} people, {partitions} partitions, {objects} objects and {tail_pieces} pieces of \
         the tail\n"
    ))?;
    match wrong {
        0 => print("nothing is wrong\n"),
        count => Err(Failed::because(things(count, "wrong"))),
    }
}

/// That so many things are `wrong` or `left`.
pub(super) fn things(count: usize, state: &str) -> String {
    match count {
        1 => format!("1 thing is {state}"),
        many => format!("{many} things are {state}"),
    }
}
