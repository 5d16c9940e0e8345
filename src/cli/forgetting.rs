//! Forgetting: when somebody was erased, each node drops what it holds in memory.
//!
//! Every node checks for itself, whether or not it does background work, because nobody else can reach its
//! memory. All of it is dropped, not only the person's part: erasures are rare, caches fill again by
//! themselves, and a search might overlook something.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::api::app::{App, AppState};
use crate::catalog::erasures::Erasure;
use crate::catalog::{CatalogError, Sound, Subject};
use crate::model::erasure::ErasureMark;
use crate::model::time::Instant;
use crate::store::files::PieceFiles;
use crate::upkeep::erase::ends_at;
use crate::upkeep::pause::paused;

/// The shortest pause; shorter ones are lengthened to this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// An erasure is under way for longer than this. A node that has not looked for as long, because it was
/// suspended or cut off, may have missed one.
const LONGEST_GAP: Duration = Duration::from_hours(1);

/// For which erasures everything was dropped.
#[derive(Default)]
struct Forgotten {
    /// When erasures were last looked for.
    looked_at: Option<Instant>,
    /// With when the store was last searched.
    searched: HashSet<(ErasureMark, Instant)>,
    /// Whose nobody can tell how far they are.
    damaged: BTreeSet<Subject>,
}

/// Checks regularly whether somebody was erased, until `stop` is called.
pub(super) async fn run(app: AppState, files: PieceFiles, interval: Duration, stop: CancellationToken) {
    let mut forgotten = Forgotten::default();
    while paused(&stop, interval.max(SHORTEST_PAUSE)).await {
        if let Err(error) = look(&app, &files, interval, &mut forgotten).await {
            tracing::warn!(%error, "could not check for erasures; will check again");
        }
    }
}

/// Looks for erasures whose data is gone from the store: whatever is read from now on is without it. Such
/// erasures stay under way for hours, so that no node can miss one. One whose row is damaged may be that far.
async fn look(
    app: &App,
    files: &PieceFiles,
    interval: Duration,
    forgotten: &mut Forgotten,
) -> Result<(), CatalogError> {
    let now = app.clock.now();
    let gap = LONGEST_GAP.max(interval.saturating_mul(2));
    let may_have_missed = forgotten.looked_at.is_some_and(|last| last.after(gap) < now);
    let Sound {
        sound: under_way,
        set_aside: damaged,
    } = app.catalog.sound_erasures_under_way().await?;
    let searched = last_searches(&under_way);
    // Once for each, or damage that stays would leave everybody without caches.
    let is_newly_damaged = !damaged.is_subset(&forgotten.damaged);
    if is_newly_damaged {
        tracing::error!("an erasure is damaged, so nobody goes on with it; run `almanac check`");
    }
    // Also once more where one is no longer under way: its last search may have found something.
    if may_have_missed || is_newly_damaged || searched != forgotten.searched {
        forget_all(app, files);
    }
    *forgotten = Forgotten {
        looked_at: Some(now),
        searched,
        damaged,
    };
    Ok(())
}

/// When the store was last searched for each erasure: what a question that was under way kept after
/// everything was dropped goes with the next search. Hours after the beginning no such question can run: from
/// then on one search counts like another, since damage may hold an erasure open for days, and each round
/// searches.
fn last_searches(under_way: &[Erasure]) -> HashSet<(ErasureMark, Instant)> {
    let last_search = |erasure: &Erasure| {
        let searched_at = erasure.purged_at?.min(ends_at(erasure.begun_at));
        Some((erasure.mark, searched_at))
    };
    under_way.iter().filter_map(last_search).collect()
}

/// Drops what is held in memory. Every part of the application stands here, so that none can be added without
/// a word on what it holds: those that are passed over hold nothing that anybody wrote.
fn forget_all(app: &App, files: &PieceFiles) {
    let App {
        verifier,
        accepted,
        sessions,
        types,
        annotations,
        compiled,
        catalog,
        files: kept_files,
        intake,
        questions,
        recent,
        repeats,
        geocoder,
        settings: _,
        clock: _,
        ids: _,
        minter: _,
        limits: _,
        grants: _,
        sharing: _,
        metrics: _,
        readiness: _,
        tags: _,
        reflections: _,
        exports: _,
        frames: _,
        tickets: _,
        uploads: _,
        bodies: _,
        commits: _,
        engine: _,
        rates: _,
        source_quota: _,
        key_quota: _,
        queries: _,
        traces: _,
    } = app;
    // What others read through comes first, or they would take from it again what they have just dropped.
    catalog.forget_all();
    files.objects().forget_all();
    files.forget_all();
    intake.stores.snapshots.forget_all();
    intake.stores.finder.forget_all();
    questions.forget_all();
    kept_files.forget_all();
    types.forget_all();
    annotations.forget_all();
    sessions.forget_all();
    compiled.forget_all();
    verifier.forget_all();
    accepted.forget_all();
    geocoder.forget_all();
    recent.forget_all();
    repeats.forget_all();
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::ids::PersonId;
    use crate::upkeep::erase::ERASURE_LENGTH;

    #[test]
    fn searches_count_until_an_erasure_could_end_and_those_after_that_as_one() {
        let begun_at = Instant::from_micros(0);
        let after = |time: Duration| {
            let erasure = Erasure {
                mark: ErasureMark::of(PersonId(Uuid::from_u128(1))),
                person: None,
                begun_at,
                purged_at: Some(begun_at.after(time)),
                ended_at: None,
            };
            last_searches(&[erasure])
        };
        let minute = Duration::from_mins(1);
        assert_ne!(after(minute), after(minute * 2));
        assert_ne!(after(minute), after(ERASURE_LENGTH));
        assert_eq!(after(ERASURE_LENGTH), after(ERASURE_LENGTH + minute));
    }
}
