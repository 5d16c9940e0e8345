//! Forgetting: when somebody was erased, each node drops what it holds in memory.
//!
//! Every node checks for itself, whether or not it does background work, because nobody else can reach its
//! memory. All of it is dropped, not only the person's part: erasures are rare, caches fill again by
//! themselves, and a search might overlook something.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::api::app::{App, AppState};
use crate::catalog::{CatalogError, Subject, WithDamage};
use crate::model::erasure::ErasureMark;
use crate::model::time::Instant;
use crate::store::files::PieceFiles;
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
    purged: HashSet<(ErasureMark, Instant)>,
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
    let WithDamage {
        sound: under_way,
        set_aside: damaged,
    } = app.catalog.sound_erasures_under_way().await?;
    let purged: HashSet<(ErasureMark, Instant)> = under_way
        .iter()
        .filter(|erasure| erasure.purged_at.is_some())
        .map(|erasure| (erasure.mark, erasure.begun_at))
        .collect();
    // Once for each, or damage that stays would leave everybody without caches.
    let is_newly_damaged = !damaged.is_subset(&forgotten.damaged);
    if is_newly_damaged {
        tracing::error!("an erasure is damaged, so nobody goes on with it; run `almanac check`");
    }
    if may_have_missed || is_newly_damaged || !purged.is_subset(&forgotten.purged) {
        files.objects().forget_all();
        app.geocoder.forget_all();
        app.questions.forget_all();
        app.recent.forget_all();
        app.repeats.forget_all();
        app.accepted.forget_all();
        app.intake.stores.finder.forget_all();
        app.intake.stores.snapshots.forget_all();
        files.forget_all();
        app.files.forget_all();
        app.sessions.forget_all();
        app.types.forget_all();
        app.annotations.forget_all();
        app.compiled.forget_all();
        app.verifier.forget_all();
        app.catalog.forget_all();
    }
    *forgotten = Forgotten {
        looked_at: Some(now),
        purged,
        damaged,
    };
    Ok(())
}
