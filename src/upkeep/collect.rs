//! Collect: removes what nothing refers to any more.
//!
//! An object may be removed when it was retired a grace period ago, because by then nobody reads it. An
//! object that nothing names and nobody retired was left by an interrupted write, or a running write is about
//! to commit it. It is noticed, condemned after a long while, and removed in a later round: once it is
//! condemned, the catalogue refuses to name it. A catalogue that knows nothing has no garbage: nothing is
//! collected with a catalogue without people or with an unfinished rebuild, or when an improbably large part
//! of the store would go.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use futures::TryStreamExt as _;

use super::manifest::bring_up_to_date;
use super::older_catalogue::BeyondCatalogue;
use super::stores::UpkeepStores;
use crate::catalog::Subject;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::contents::{ContentKind, IncomingName, PartName};
use crate::store::folder_names::{DATA_FOLDER, INCOMING_FOLDER};
use crate::store::orphans::orphaned_pieces;
use crate::store::piece::ObjectName;

/// How long an object that nothing names is left alone: longer than any write.
pub const ORPHAN_AGE: Duration = Duration::from_hours(7);
/// How long a condemned object stays.
pub const CONDEMNED_AGE: Duration = Duration::from_mins(10);
/// How long removed objects are remembered, in case somebody still tries to name them.
const REMEMBERED_TIME: Duration = Duration::from_hours(30 * 24);
/// How long the room of a file stays after its time to arrive is over, for uploads that began before.
pub const CONTENT_PATIENCE: Duration = Duration::from_hours(1);
/// How long a repeated request is recognised.
pub const RECEIPT_AGE: Duration = Duration::from_hours(168);
/// How long what a transaction left behind is seen before it is removed: longer than anybody asks how that
/// ended.
const WITNESS_AGE: Duration = Duration::from_hours(24);
/// How many paths are checked together.
pub const PATHS_AT_ONCE: usize = 1_000;
/// More orphans than this, if they are more than half of all objects, are not garbage but a mistake.
const PROBABLE_ORPHANS: usize = 100;

/// The kinds of objects that can become orphans. A new kind of object must be added here: its folder, and how
/// to find which of its objects are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CollectedKind {
    Pieces,
    /// Of files, of exports, or of frames.
    Parts(ContentKind),
    /// Files that their senders put into the store themselves.
    Incoming,
}

impl CollectedKind {
    const ALL: [Self; 5] = [
        Self::Pieces,
        Self::Parts(ContentKind::File),
        Self::Parts(ContentKind::Export),
        Self::Parts(ContentKind::Frame),
        Self::Incoming,
    ];

    const fn folder(self) -> &'static str {
        match self {
            Self::Pieces => DATA_FOLDER,
            Self::Parts(of) => of.folder(),
            Self::Incoming => INCOMING_FOLDER,
        }
    }

    /// Whether an object in the folder has a path of this kind.
    fn is_ours(self, path: &str) -> bool {
        match self {
            Self::Pieces => ObjectName::parse(path).is_some(),
            Self::Parts(of) => PartName::parse(path).is_some_and(|name| name.of == of),
            Self::Incoming => IncomingName::parse(path).is_some(),
        }
    }

    /// The `paths`, all in the folder, that nothing names. Those that cannot be checked count as named.
    async fn orphaned(self, stores: &UpkeepStores, paths: &[String]) -> Result<Vec<String>, StoreError> {
        match self {
            Self::Pieces => orphaned_pieces(&stores.catalog, paths).await,
            Self::Parts(_) => {
                // Sorted, so that the parts of one content are adjacent and it is looked up once.
                let mut sorted = paths.to_vec();
                sorted.sort_unstable();
                stores.contents().orphaned_parts(&sorted).await
            }
            Self::Incoming => stores.contents().orphaned_uploads(paths).await,
        }
    }
}

/// The result of a search for orphans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphanSearch {
    /// Objects that were removed.
    pub removed: usize,
    /// How many of how many objects would have to go, where that is refused as improbable.
    pub refused: Option<(usize, usize)>,
    /// Whose damage was passed over.
    pub set_aside: BTreeSet<Subject>,
    /// People of whom the catalogue lacks something: nothing of theirs was condemned or removed.
    pub beyond: BeyondCatalogue,
}

/// Why nothing may be collected now. `None`: it may.
pub async fn forbidden(stores: &UpkeepStores) -> Result<Option<&'static str>, StoreError> {
    if !stores.catalog.knows_anything().await? {
        return Ok(Some("the catalogue knows nothing of anybody"));
    }
    let is_unfinished = stores.catalog.unfinished_rebuild().await?.is_some();
    Ok(is_unfinished.then_some("a repair of the catalogue was not finished"))
}

/// Whether there is an object that was retired at least `grace` ago.
pub async fn has_retired(stores: &UpkeepStores, grace: Duration) -> Result<bool, StoreError> {
    let limit = stores.catalog.now().await?.before(grace);
    Ok(stores.catalog.has_retired_objects(limit).await?)
}

/// Removes objects that were retired at least `grace` ago, `at_once` of them at a time, except those of whom
/// `passes_over` says so. `judge` gets how many of a person's were removed, or why none could be, and says
/// whether to go on with theirs; if it returns an error, the others have to wait. `None` stands for paths
/// that name nobody.
pub async fn remove_retired(
    stores: &UpkeepStores,
    grace: Duration,
    at_once: usize,
    passes_over: impl Fn(Option<PersonId>) -> bool + Send,
    mut judge: impl FnMut(Option<PersonId>, Result<usize, StoreError>) -> Result<bool, StoreError> + Send,
) -> Result<(), StoreError> {
    if forbidden(stores).await?.is_some() {
        return Ok(());
    }
    let limit = stores.catalog.now().await?.before(grace);
    let mut left_alone = BTreeSet::new();
    let mut after = None;
    loop {
        let retired = stores
            .catalog
            .retired_objects(limit, after.as_ref(), at_once)
            .await?;
        let Some(last) = retired.last() else {
            return Ok(());
        };
        // What stays is passed over, or it could be all that is ever seen.
        after = Some(last.clone());
        let mut by_person: BTreeMap<Option<PersonId>, Vec<String>> = BTreeMap::new();
        for object in retired {
            let person = ObjectName::parse(&object.path).map(|name| name.person);
            by_person.entry(person).or_default().push(object.path);
        }
        for (person, paths) in by_person {
            // A person who failed is not tried again for each page.
            if left_alone.contains(&person) || passes_over(person) {
                continue;
            }
            let removed = remove_retired_of(stores, person, &paths).await;
            if !judge(person, removed)? {
                left_alone.insert(person);
            }
        }
    }
}

/// Removes retired objects of one person; returns how many. Before that it updates the person's manifest,
/// which would otherwise name missing objects; where that fails, the objects stay.
async fn remove_retired_of(
    stores: &UpkeepStores,
    person: Option<PersonId>,
    paths: &[String],
) -> Result<usize, StoreError> {
    if let Some(person) = person {
        bring_up_to_date(stores, person).await?;
    }
    let orphaned = orphaned(stores, paths).await?;
    for path in &orphaned {
        stores.objects().delete(path).await?;
        stores.catalog.forget_damage(path).await?;
    }
    stores.catalog.forget_objects(paths).await?;
    Ok(orphaned.len())
}

/// Notices objects that nothing names, condemns those that were noticed long ago, and removes those that were
/// condemned in an earlier round. Leaves files alone that are not ours, and those of people of whom the store
/// knows more than the catalogue: their manifests may name them. `anyway`: the operator insists.
pub async fn remove_orphans(stores: &UpkeepStores, anyway: bool) -> Result<OrphanSearch, StoreError> {
    let mut searched = OrphanSearch::default();
    if forbidden(stores).await?.is_some() {
        return Ok(searched);
    }
    searched.beyond = BeyondCatalogue::find(&stores.catalog, stores.objects()).await?;
    let (all, orphans) = notice(stores, &searched.beyond).await?;
    if orphans > PROBABLE_ORPHANS && orphans * 2 > all && !anyway {
        searched.refused = Some((orphans, all));
        return Ok(searched);
    }
    let now = stores.catalog.now().await?;
    remove_condemned(stores, now.before(CONDEMNED_AGE), &mut searched).await?;
    loop {
        let condemned = stores.catalog.condemn_orphans(now.before(ORPHAN_AGE)).await?;
        searched.set_aside.extend(condemned.set_aside);
        if condemned.sound.is_empty() {
            break;
        }
        // Any commit that was to name one of them has done so by now.
        unmark_named(stores, &condemned.sound, &searched.beyond).await?;
    }
    stores.catalog.forget_orphans(now.before(REMEMBERED_TIME)).await?;
    Ok(searched)
}

/// Removes what interrupted uploads and removed objects left in the store, and receipts that are too old to
/// be needed.
pub async fn remove_remains(stores: &UpkeepStores) -> Result<(), StoreError> {
    stores.objects().clear_interrupted_uploads(ORPHAN_AGE).await?;
    for kind in CollectedKind::ALL {
        stores
            .objects()
            .remove_quiet_folders(kind.folder(), ORPHAN_AGE)
            .await?;
    }
    let now = stores.catalog.now().await?;
    stores.catalog.forget_uploads(now.before(RECEIPT_AGE)).await?;
    stores.catalog.forget_left_behind(WITNESS_AGE).await?;
    Ok(())
}

/// Notices orphans among all objects; returns how many objects there are, and how many are orphans. Retired
/// objects are none: it is known why nothing names them, and they are removed when their time is over. Those
/// that a rebuild kept do not count at all: they say nothing of whether this is the right catalogue.
async fn notice(stores: &UpkeepStores, beyond: &BeyondCatalogue) -> Result<(usize, usize), StoreError> {
    let (mut all, mut orphans) = (0, 0);
    for kind in CollectedKind::ALL {
        let mut listed = stores.objects().list(kind.folder())?;
        let mut seen = Vec::new();
        loop {
            let object = listed.try_next().await?;
            let is_end = object.is_none();
            seen.extend(object.map(|object| object.path).filter(|path| kind.is_ours(path)));
            if seen.len() >= PATHS_AT_ONCE || is_end {
                all += seen.len();
                let orphaned = kind.orphaned(stores, &std::mem::take(&mut seen)).await?;
                let orphaned = stores.catalog.not_retired(orphaned).await?;
                let found = orphaned.len();
                let mut orphaned = stores.catalog.not_kept(orphaned).await?;
                all -= found - orphaned.len();
                orphans += orphaned.len();
                orphaned.retain(|path| !beyond.owns(path));
                stores.catalog.notice_orphans(&orphaned).await?;
            }
            if is_end {
                break;
            }
        }
    }
    Ok((all, orphans))
}

async fn remove_condemned(
    stores: &UpkeepStores,
    moment: Instant,
    searched: &mut OrphanSearch,
) -> Result<(), StoreError> {
    loop {
        let condemned = stores.catalog.condemned_before(moment).await?;
        searched.set_aside.extend(condemned.set_aside);
        if condemned.sound.is_empty() {
            return Ok(());
        }
        let orphaned = unmark_named(stores, &condemned.sound, &searched.beyond).await?;
        for path in &orphaned {
            stores.objects().delete(path).await?;
        }
        stores.catalog.note_removed(&orphaned).await?;
        searched.removed += orphaned.len();
    }
}

/// The condemned objects that nothing names, in the catalogue or beyond it; the others are no longer
/// condemned.
async fn unmark_named(
    stores: &UpkeepStores,
    condemned: &[String],
    beyond: &BeyondCatalogue,
) -> Result<Vec<String>, StoreError> {
    let mut orphaned = orphaned(stores, condemned).await?;
    orphaned.retain(|path| !beyond.owns(path));
    let gone: HashSet<&String> = orphaned.iter().collect();
    let named: Vec<String> = condemned
        .iter()
        .filter(|path| !gone.contains(path))
        .cloned()
        .collect();
    stores.catalog.unmark_orphans(&named).await?;
    Ok(orphaned)
}

/// The `paths` that nothing names.
async fn orphaned(stores: &UpkeepStores, paths: &[String]) -> Result<Vec<String>, StoreError> {
    let mut orphaned = Vec::new();
    for kind in CollectedKind::ALL {
        let of_kind: Vec<String> = paths.iter().filter(|path| kind.is_ours(path)).cloned().collect();
        orphaned.extend(kind.orphaned(stores, &of_kind).await?);
    }
    Ok(orphaned)
}
