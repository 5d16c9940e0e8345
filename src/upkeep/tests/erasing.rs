//! Nothing of an erased person stays, wherever the work is stopped, and nothing brings them back.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;

use super::*;
use crate::catalog::CatalogError;
use crate::catalog::access_log::LogEntry;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind, Link};
use crate::catalog::erasures::Erasure;
use crate::catalog::granting::{INVITES, MEMBER_OF, SHARED_WITH_PERSON};
use crate::catalog::records::{Effect, SeenSource, UploadReceipt};
use crate::catalog::test_databases::files_with;
use crate::model::erasure::ErasureMark;
use crate::model::ids::UploadId;
use crate::store::StoreError;
use crate::upkeep::check::{catalogue_complaints, older_complaints};
use crate::upkeep::collect::{CONDEMNED_AGE, ORPHAN_AGE, remove_orphans};
use crate::upkeep::erase::{ERASURE_LENGTH, erase, heed_notes};
use crate::upkeep::erasure_check::traces_left;
use crate::upkeep::erasure_notes::remember;
use crate::upkeep::lost_manifests::complaints;
use crate::upkeep::manifest::{write_changed, write_manifest};
use crate::upkeep::manifest_names::{manifest_path, numbers};
use crate::upkeep::rebuild::rebuild;

fn document(kind: DocumentKind, person: PersonId, name: Option<&str>, body: String) -> Document {
    Document {
        kind,
        id: Uuid::now_v7(),
        person,
        name: name.map(str::to_owned),
        body,
        version: 1,
        created_at: SystemClock.now(),
        updated_at: SystemClock.now(),
        deleted_at: None,
    }
}

async fn keep(bench: &Bench, document: &Document, links: Vec<Link>) {
    let insert = Change::Insert {
        document: document.clone(),
        links,
        limit: 100,
    };
    let changed = bench.stores.catalog.change_documents(vec![insert]).await;
    assert_eq!(changed.unwrap(), Changed::Done);
}

fn entry(bench: &Bench, person: PersonId, actor: PersonId) -> LogEntry {
    LogEntry {
        person,
        id: Uuid::now_v7(),
        at: bench.clock.now(),
        actor,
        body: format!("{{\"allowed_svc_userids\":[\"{actor}\",\"{person}\"]}}"),
        rows: Some(3),
        outcome: "answered".to_owned(),
    }
}

/// Somebody with some of everything, who shares with a friend and is shared with. The friend.
pub(super) async fn friends(bench: &Bench) -> PersonId {
    let (person, friend) = (bench.key.person, PersonId(Uuid::now_v7()));
    let catalog = &bench.stores.catalog;
    bench.put(&many(0, 20, LAST_DAY_OF_2023), true).await;
    bench.put(&many(100, 20, LAST_DAY_OF_2023), false).await;
    bench.delete(&[record(1), record(101)]).await;
    let upload = UploadReceipt {
        person,
        upload: UploadId(Uuid::now_v7()),
        key: Some(("again".to_owned(), [7; 32])),
        effect: Effect::default(),
    };
    let commit = Commit {
        uploads: vec![upload],
        ..Commit::default()
    };
    assert_eq!(catalog.commit(commit).await.unwrap(), CommitOutcome::Done);
    catalog.ensure_person(friend, None).await.unwrap();

    let tag = document(DocumentKind::Tag, person, Some("tea"), "{}".to_owned());
    keep(bench, &tag, Vec::new()).await;
    let group = document(DocumentKind::Group, person, None, "{}".to_owned());
    keep(bench, &group, Vec::new()).await;
    let membership = document(DocumentKind::Membership, friend, Some("theirs"), "{}".to_owned());
    let member_of = |target| {
        vec![Link {
            kind: MEMBER_OF,
            target,
        }]
    };
    keep(bench, &membership, member_of(group.id)).await;
    for (from, to) in [(person, friend), (friend, person)] {
        let share = document(DocumentKind::Share, from, None, "{}".to_owned());
        let with = Link {
            kind: SHARED_WITH_PERSON,
            target: to.0,
        };
        keep(bench, &share, vec![with]).await;
    }
    let body = format!("{{\"invited\":[\"{person}\",\"{friend}\"]}}");
    let inviting = document(DocumentKind::Group, friend, None, body);
    let invites = Link {
        kind: INVITES,
        target: person.0,
    };
    keep(bench, &inviting, vec![invites]).await;
    let entries = [(person, friend), (friend, person)].map(|(of, by)| entry(bench, of, by));
    catalog.log_access(entries.into()).await.unwrap();

    let objects = bench.stores.objects();
    for path in [
        format!("files/{person}/{}/{}", Uuid::now_v7(), Uuid::now_v7()),
        format!("exports/{person}/archive.zip"),
        format!("data/{person}/HeartRate/2023/left-by-a-crash"),
    ] {
        objects.put(&path, Bytes::from_static(b"bytes")).await.unwrap();
        catalog.notice_orphans(std::slice::from_ref(&path)).await.unwrap();
        catalog.note_damage(&path, "a flipped bit").await.unwrap();
    }
    for whose in [person, friend] {
        assert!(write_manifest(&bench.stores, whose).await.unwrap());
    }
    friend
}

/// Somebody who shares with the person, and whose manifest says so.
pub(super) async fn sharing_friend(bench: &Bench) -> PersonId {
    let (person, friend) = (bench.key.person, PersonId(Uuid::now_v7()));
    bench.put(&many(0, 3, LAST_DAY_OF_2023), true).await;
    bench.stores.catalog.ensure_person(friend, None).await.unwrap();
    let share = document(DocumentKind::Share, friend, None, "{}".to_owned());
    let with = Link {
        kind: SHARED_WITH_PERSON,
        target: person.0,
    };
    keep(bench, &share, vec![with]).await;
    assert!(write_manifest(&bench.stores, friend).await.unwrap());
    friend
}

/// Runs work for so many steps and drops it then, which is what a kill leaves of it. `None`: it did not come
/// to its end.
async fn killed_after<T>(steps: usize, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut left = steps;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(context).map(Some)
    })
    .await
}

/// Begins an erasure as the person does.
pub(super) async fn begin(bench: &Bench) {
    let erasure = bench
        .stores
        .catalog
        .begin_erasure(bench.key.person)
        .await
        .unwrap();
    remember(bench.stores.objects(), &erasure).await.unwrap();
}

/// Goes on with erasures for so many steps; whether there was nothing more to do.
pub(super) async fn go_on(bench: &Bench, steps: usize) -> bool {
    let work = async {
        for erasure in bench.stores.catalog.erasures_under_way().await? {
            erase(&bench.stores, &erasure).await?;
        }
        Ok::<(), StoreError>(())
    };
    let ended = killed_after(steps, work).await;
    ended.is_some_and(|outcome| {
        outcome.unwrap();
        true
    })
}

pub(super) async fn left(bench: &Bench) -> Vec<String> {
    let spill = bench.directory.path().join("spill");
    let remains = traces_left(&bench.stores, bench.key.person, &spill)
        .await
        .unwrap();
    remains.left
}

/// The database's files in which `text` is found.
pub(super) fn database_files_with(bench: &Bench, text: &str) -> Vec<PathBuf> {
    files_with(bench.directory.path(), text)
}

#[tokio::test]
async fn nothing_of_an_erased_person_stays_and_others_keep_what_is_theirs() {
    let bench = Bench::new().await;
    let friend = friends(&bench).await;
    assert!(left(&bench).await.len() > 15, "{:#?}", left(&bench).await);
    begin(&bench).await;
    let catalog = &bench.stores.catalog;
    assert!(
        catalog.grants_to(friend).await.unwrap().is_empty(),
        "before anything is removed"
    );
    assert!(bench.visible().await.is_empty());
    assert!(go_on(&bench, usize::MAX).await);
    assert_eq!(left(&bench).await, [""; 0]);
    assert_eq!(catalogue_complaints(catalog).await.unwrap(), [""; 0]);
    // The friend has their share, which nobody is given, and no membership in what is gone.
    let count = async |kind| catalog.documents_of(friend, kind).await.unwrap().len();
    assert_eq!(
        (
            count(DocumentKind::Share).await,
            count(DocumentKind::Membership).await
        ),
        (1, 0)
    );
    let groups = catalog.documents_of(friend, DocumentKind::Group).await.unwrap();
    assert_eq!(groups[0].body, format!("{{\"invited\":[\"{friend}\"]}}"));
    let log = catalog.accesses(friend, None, 10).await.unwrap().entries;
    assert_eq!((log.len(), log[0].actor), (1, PersonId(Uuid::nil())));
    assert_eq!(numbers(bench.stores.objects(), friend).await.unwrap().len(), 1);
    assert_eq!(catalog.people_ids().await.unwrap(), [friend]);
}

#[tokio::test]
async fn the_key_of_a_friends_source_stays_and_is_not_left() {
    let bench = Bench::new().await;
    let friend = friends(&bench).await;
    let source = SeenSource {
        person: friend,
        key: format!("com.example.{}", bench.key.person).to_uppercase(),
        name: None,
    };
    let commit = Commit {
        sources: vec![source],
        ..Commit::default()
    };
    let outcome = bench.stores.catalog.commit(commit).await.unwrap();
    assert_eq!(outcome, CommitOutcome::Done);
    begin(&bench).await;
    assert!(go_on(&bench, usize::MAX).await);
    let remains = traces_left(&bench.stores, bench.key.person, bench.directory.path()).await;
    let stays = remains.unwrap().stays;
    assert_eq!(left(&bench).await, [""; 0]);
    assert_eq!(stays.len(), 2, "{stays:?}");
    assert_eq!(stays[0], "catalogue: table sources: 1 rows");
    assert!(
        stays[1].starts_with(&format!("store: people/{friend}/")),
        "{stays:?}"
    );
}

#[tokio::test]
async fn damage_among_what_is_a_friends_keeps_nothing_of_the_person_and_no_other_friend_waiting() {
    for table in ["documents", "folders"] {
        let bench = Bench::new().await;
        let friend = friends(&bench).await;
        let person = bench.key.person;
        let other = PersonId(Uuid::max());
        let catalog = &bench.stores.catalog;
        catalog.ensure_person(other, None).await.unwrap();
        catalog.request_manifest(other).await.unwrap();
        let of_friend = format!("WHERE hex(person) = '{}'", friend.0.simple()).to_uppercase();
        let damage = async |step: i64| {
            let sql = format!("UPDATE {table} SET checksum = checksum + {step} {of_friend}");
            tamper(&bench, &sql).await;
        };
        damage(1).await;
        begin(&bench).await;
        bench.pass(ERASURE_LENGTH);
        for _ in 0..2 {
            let erasure = catalog.erasures_under_way().await.unwrap().remove(0);
            let refused = erase(&bench.stores, &erasure).await;
            assert!(refused.is_err_and(|error| error.is_damage()), "{table}");
        }
        let of_person = left(&bench).await;
        for what in &of_person {
            let is_said_of = ["people/", "links", "documents", "access_log"];
            assert!(
                is_said_of.iter().any(|said| what.contains(said)),
                "{table}: {of_person:#?}"
            );
        }
        let waiting = catalog.people_needing_manifest(None, None).await.unwrap().sound;
        assert!(
            waiting.iter().all(|notice| notice.person != other),
            "{table}: {waiting:?}"
        );
        damage(-1).await;
        assert!(go_on(&bench, usize::MAX).await);
        assert_eq!(left(&bench).await, [""; 0], "{table}");
        assert_eq!(catalog.erasures_under_way().await.unwrap(), []);
        assert!(numbers(bench.stores.objects(), person).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_manifest_that_cannot_be_replaced_and_does_not_name_the_person_is_no_matter_of_the_erasure() {
    let bench = Bench::new().await;
    friends(&bench).await;
    let other = PersonId(Uuid::now_v7());
    let catalog = &bench.stores.catalog;
    catalog.ensure_person(other, None).await.unwrap();
    let tag = document(DocumentKind::Tag, other, Some("tea"), "{}".to_owned());
    keep(&bench, &tag, Vec::new()).await;
    assert!(write_manifest(&bench.stores, other).await.unwrap());
    catalog.request_manifest(other).await.unwrap();
    let sql = format!(
        "UPDATE documents SET checksum = checksum + 1 WHERE person = x'{}'",
        other.0.simple()
    );
    tamper(&bench, &sql).await;
    assert!(write_changed(&bench.stores, other).await.is_err());
    begin(&bench).await;
    bench.pass(ERASURE_LENGTH);
    assert!(go_on(&bench, usize::MAX).await);
    assert_eq!(left(&bench).await, [""; 0]);
    assert_eq!(catalog.erasures_under_way().await.unwrap(), []);
    assert_eq!(numbers(bench.stores.objects(), other).await.unwrap(), [1]);
}

#[tokio::test]
async fn a_manifest_that_names_the_person_goes_although_a_row_of_the_friend_is_lost() {
    let bench = Bench::new().await;
    let friend = friends(&bench).await;
    let tag = document(DocumentKind::Tag, friend, Some("tea"), "{}".to_owned());
    keep(&bench, &tag, Vec::new()).await;
    tamper(
        &bench,
        "DELETE FROM documents WHERE kind = 'tag' AND name = 'tea'",
    )
    .await;
    assert!(write_changed(&bench.stores, friend).await.is_err());
    begin(&bench).await;
    bench.pass(ERASURE_LENGTH);
    assert!(go_on(&bench, usize::MAX).await);
    assert_eq!(left(&bench).await, [""; 0]);
    let catalog = &bench.stores.catalog;
    assert_eq!(catalog.erasures_under_way().await.unwrap(), []);
    assert_eq!(numbers(bench.stores.objects(), friend).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_erasure_that_is_killed_at_any_step_is_completed() {
    let mut steps = 1;
    loop {
        let bench = Bench::new().await;
        let friend = friends(&bench).await;
        begin(&bench).await;
        let is_through = go_on(&bench, steps).await;
        assert_eq!(
            bench.stores.catalog.damaged_documents(friend).await.unwrap(),
            [""; 0],
            "after {steps} steps"
        );
        assert!(go_on(&bench, usize::MAX).await);
        assert_eq!(left(&bench).await, [""; 0], "after {steps} steps");
        assert_eq!(
            catalogue_complaints(&bench.stores.catalog).await.unwrap(),
            [""; 0]
        );
        if is_through {
            // How many there are depends on what the disk does at the same time.
            assert!(steps > 20, "there are steps to be killed at");
            return;
        }
        // Every one of the first, where most happens at once, and every few of the many that come.
        steps += 1 + steps / 8;
    }
}

#[tokio::test]
async fn a_catalogue_that_is_lost_at_any_step_brings_nobody_back() {
    for steps in [0, 10, 20, 40, 80, 160, usize::MAX] {
        let bench = Bench::new().await;
        let friend = friends(&bench).await;
        begin(&bench).await;
        go_on(&bench, steps).await;
        let bench = bench.without_catalogue().await;
        let rebuilt = rebuild(&bench.stores).await.unwrap();
        assert_eq!(rebuilt.failed, [""; 0]);
        assert!(go_on(&bench, usize::MAX).await);
        let catalog = &bench.stores.catalog;
        assert_eq!(
            catalog.people_ids().await.unwrap(),
            [friend],
            "{steps} steps: {rebuilt:?}"
        );
        assert_eq!(left(&bench).await, [""; 0], "{steps} steps");
        let refused = catalog.ensure_person(bench.key.person, None).await;
        assert!(matches!(refused, Err(CatalogError::Erased { .. })));
    }
}

/// Loses the catalogue, makes another one from the store and completes what is under way; nothing is left.
async fn rebuilt_and_completed(bench: Bench, friend: PersonId) {
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert_eq!(rebuilt.failed, [""; 0]);
    assert!(go_on(&bench, usize::MAX).await);
    assert_eq!(left(&bench).await, [""; 0]);
    assert_eq!(numbers(bench.stores.objects(), friend).await.unwrap().len(), 1);
    assert_eq!(bench.stores.catalog.people_ids().await.unwrap(), [friend]);
}

#[tokio::test]
async fn a_catalogue_that_is_lost_between_two_manifests_of_a_friend_leaves_the_first_to_nobody() {
    let bench = Bench::new().await;
    let friend = friends(&bench).await;
    begin(&bench).await;
    let catalog = &bench.stores.catalog;
    let erasure = catalog.erasures_under_way().await.unwrap().remove(0);
    while catalog.erase_own(&erasure).await.unwrap() {}
    while catalog.erase_mentions(&erasure).await.unwrap() {}
    assert!(write_manifest(&bench.stores, friend).await.unwrap());
    assert_eq!(numbers(bench.stores.objects(), friend).await.unwrap(), [2, 1]);
    rebuilt_and_completed(bench, friend).await;
}

#[tokio::test]
async fn an_erasure_that_nobody_went_on_with_in_its_time_is_done_after_the_catalogue_was_lost() {
    let bench = Bench::new().await;
    let friend = friends(&bench).await;
    begin(&bench).await;
    bench.pass(2 * ERASURE_LENGTH);
    rebuilt_and_completed(bench, friend).await;
}

#[tokio::test]
async fn a_rebuild_that_is_killed_at_any_step_forgets_no_erasure() {
    for steps in [1, 5, 10, 20, 40, 80, 160] {
        let bench = Bench::new().await;
        let friend = friends(&bench).await;
        begin(&bench).await;
        let bench = bench.without_catalogue().await;
        killed_after(steps, rebuild(&bench.stores)).await;
        rebuilt_and_completed(bench, friend).await;
    }
}

/// This store with another catalogue in place of its own.
async fn with_catalogue(bench: Bench, file: &Path) -> Bench {
    bench.stores.catalog.close().await;
    let address = format!("sqlite://{}", file.display());
    let catalog = Catalog::open(&address, bench.clock.clone()).await.unwrap();
    let stores = UpkeepStores {
        snapshots: Snapshots::new(catalog.clone(), 1 << 20),
        catalog,
        ..bench.stores.clone()
    };
    Bench { stores, ..bench }
}

/// Begins erasures that the store remembers; returns how many were left alone.
async fn left_alone_by_heeding(bench: &Bench) -> usize {
    let mut left_alone = 0;
    let judge = |_, outcome: Result<(), StoreError>| {
        left_alone += usize::from(outcome.is_err_and(|error| error.is_damage()));
        Ok(())
    };
    heed_notes(&bench.stores, |_| false, judge).await.unwrap();
    left_alone
}

#[tokio::test]
async fn a_catalogue_from_before_is_told_by_the_store() {
    let bench = Bench::new().await;
    let friend = friends(&bench).await;
    let before = bench.directory.path().join("before.sqlite");
    bench.stores.catalog.copy_to(&before).await.unwrap();
    begin(&bench).await;
    assert!(go_on(&bench, usize::MAX).await);
    let bench = with_catalogue(bench, &before).await;
    assert_eq!(bench.stores.catalog.people_ids().await.unwrap().len(), 2);
    // Whoever writes a manifest before that is read must not seem to say that the person began anew.
    let written = write_changed(&bench.stores, bench.key.person).await;
    assert!(written.is_err_and(|error| error.is_damage()));
    for _ in 0..2 {
        assert_eq!(left_alone_by_heeding(&bench).await, 0);
    }
    assert!(go_on(&bench, usize::MAX).await);
    assert_eq!(left(&bench).await, [""; 0]);
    assert_eq!(bench.stores.catalog.people_ids().await.unwrap(), [friend]);
}

/// Somebody who was erased and began anew, with a catalogue from before that.
async fn began_anew_since() -> Bench {
    let bench = Bench::new().await;
    friends(&bench).await;
    let before = bench.directory.path().join("before.sqlite");
    bench.stores.catalog.copy_to(&before).await.unwrap();
    begin(&bench).await;
    bench.pass(ERASURE_LENGTH);
    assert!(go_on(&bench, usize::MAX).await);
    bench.pass(Duration::from_secs(1));
    bench.put(&many(900, 3, LAST_DAY_OF_2023), true).await;
    assert!(write_manifest(&bench.stores, bench.key.person).await.unwrap());
    with_catalogue(bench, &before).await
}

#[tokio::test]
async fn a_catalogue_from_before_erases_nobody_who_began_anew_since() {
    let bench = began_anew_since().await;
    let (person, objects) = (bench.key.person, bench.stores.objects().clone());
    let stored = bench.paths().await.1;
    assert!(!stored.is_empty());
    let is_named = |told: &[String]| {
        let about = told.iter().filter(|told| told.contains("older than the store"));
        about.count() == 1
    };
    assert!(is_named(&complaints(&bench.stores, person).await.unwrap()));
    for _ in 0..4 {
        assert_eq!(left_alone_by_heeding(&bench).await, 1);
        let written = write_changed(&bench.stores, person).await;
        assert!(written.is_err_and(|error| error.is_damage()));
        bench.pass(ORPHAN_AGE + CONDEMNED_AGE);
        remove_orphans(&bench.stores, true).await.unwrap();
    }
    let catalog = &bench.stores.catalog;
    assert_eq!(catalog.erasures_under_way().await.unwrap(), []);
    let told = older_complaints(catalog, &objects).await.unwrap();
    assert!(
        told.iter().any(|told| told.contains(&person.to_string())),
        "{told:?}"
    );
    assert_eq!(bench.paths().await.1, stored);
    // Nor where it cannot be told.
    let path = manifest_path(person, numbers(&objects, person).await.unwrap()[0]);
    let content = objects.get(&path).await.unwrap();
    objects
        .replace(&path, Bytes::from_static(b"damaged"))
        .await
        .unwrap();
    assert_eq!(left_alone_by_heeding(&bench).await, 1);
    assert_eq!(catalog.erasures_under_way().await.unwrap(), []);
    objects.replace(&path, content).await.unwrap();
    // The operator decides for the manifests.
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert_eq!(rebuilt.failed, [""; 0]);
    assert_eq!(bench.visible().await.len(), 3, "{rebuilt:?}");
}

#[tokio::test]
async fn whose_note_cannot_be_heeded_keeps_no_other_from_being_heeded() {
    let bench = began_anew_since().await;
    let (catalog, person) = (&bench.stores.catalog, bench.key.person);
    let stranger = PersonId(Uuid::now_v7());
    let erasure = Erasure {
        mark: ErasureMark::of(stranger),
        person: None,
        begun_at: bench.clock.now(),
        purged_at: None,
        ended_at: None,
    };
    remember(bench.stores.objects(), &erasure).await.unwrap();
    let judge = |_, outcome| outcome;
    let heeded = heed_notes(&bench.stores, |_| false, judge).await;
    assert!(heeded.is_err_and(|error| error.is_damage()));
    assert!(catalog.erasure_of(stranger).await.unwrap().is_some());
    let passes_over = |mark: ErasureMark| mark == ErasureMark::of(person);
    heed_notes(&bench.stores, passes_over, judge).await.unwrap();
    assert_eq!(catalog.erasure_of(person).await.unwrap(), None);
}

#[tokio::test]
async fn who_began_anew_is_erased_if_the_operator_decides_for_a_catalogue_from_before() {
    let bench = began_anew_since().await;
    let (person, objects) = (bench.key.person, bench.stores.objects());
    for number in numbers(objects, person).await.unwrap() {
        objects.delete(&manifest_path(person, number)).await.unwrap();
    }
    assert_eq!(left_alone_by_heeding(&bench).await, 0);
    assert!(go_on(&bench, usize::MAX).await);
    assert_eq!(left(&bench).await, [""; 0]);
}

#[tokio::test]
async fn what_was_under_way_is_refused_and_what_arrives_late_goes_too() {
    let bench = Bench::new().await;
    friends(&bench).await;
    let snapshot = bench.snapshot().await;
    begin(&bench).await;
    let change = PartitionChange {
        person: bench.key.person,
        data_type: bench.key.data_type.clone(),
        expected: Some(snapshot.stamp),
        add: vec![tail::piece(PieceId(Uuid::now_v7()), &rows(&many(500, 5, LAST_DAY_OF_2023)), 1).unwrap()],
        dead: Vec::new(),
        records_delta: 5,
        updates: 5,
    };
    let commit = || Commit {
        changes: vec![change.clone()],
        ..Commit::default()
    };
    let catalog = &bench.stores.catalog;
    let refused = catalog.commit(commit()).await;
    assert!(matches!(refused, Err(CatalogError::Erased { .. })), "{refused:?}");
    assert!(go_on(&bench, usize::MAX).await);
    let refused = catalog.commit(commit()).await;
    assert!(matches!(refused, Err(CatalogError::Erased { .. })), "{refused:?}");
    // An object that somebody was still writing, and a read of somebody else's data that ends only now.
    let late = format!("data/{}/HeartRate/2023/late", bench.key.person);
    bench.stores.objects().put(&late, Bytes::new()).await.unwrap();
    let other = PersonId(Uuid::now_v7());
    catalog.ensure_person(other, None).await.unwrap();
    catalog
        .log_access(vec![entry(&bench, other, bench.key.person)])
        .await
        .unwrap();
    assert_eq!(left(&bench).await.len(), 2, "{:?}", left(&bench).await);
    bench.pass(Duration::from_secs(15));
    assert!(go_on(&bench, usize::MAX).await);
    assert_eq!(left(&bench).await, [""; 0], "somebody looks again soon");
    bench.stores.objects().put(&late, Bytes::new()).await.unwrap();
    bench.pass(ERASURE_LENGTH);
    assert!(go_on(&bench, usize::MAX).await);
    assert_eq!(left(&bench).await, [""; 0]);
    assert!(catalog.erasures_under_way().await.unwrap().is_empty());
}

#[tokio::test]
async fn who_comes_back_when_it_is_over_begins_with_nothing() {
    let bench = Bench::new().await;
    friends(&bench).await;
    begin(&bench).await;
    assert!(go_on(&bench, usize::MAX).await);
    bench.pass(ERASURE_LENGTH.saturating_sub(Duration::from_secs(1)));
    assert!(go_on(&bench, usize::MAX).await);
    let catalog = bench.stores.catalog.clone();
    let again = catalog.ensure_person(bench.key.person, None).await;
    assert!(matches!(again, Err(CatalogError::Erased { .. })));
    bench.pass(Duration::from_secs(1));
    assert!(go_on(&bench, usize::MAX).await);
    bench.put(&many(900, 3, LAST_DAY_OF_2023), true).await;
    assert_eq!(bench.visible().await.len(), 3);
    // What they have now is theirs, and not taken for what was left.
    bench.pass(ERASURE_LENGTH);
    assert!(go_on(&bench, usize::MAX).await);
    assert!(write_manifest(&bench.stores, bench.key.person).await.unwrap());
    catalog.close().await;
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert_eq!(rebuilt.failed, [""; 0]);
    assert_eq!(bench.visible().await.len(), 3, "{rebuilt:?}");
    // And can be erased again.
    begin(&bench).await;
    assert!(go_on(&bench, usize::MAX).await);
    assert_eq!(left(&bench).await, [""; 0]);
}

#[tokio::test]
async fn an_erasure_that_began_under_a_clock_ahead_ends_in_the_usual_time_after_it_was_put_right() {
    let bench = Bench::new().await;
    friends(&bench).await;
    let right = bench.clock.now();
    bench.pass(Duration::from_hours(24 * 400));
    begin(&bench).await;
    assert!(go_on(&bench, usize::MAX).await);
    bench.clock.set(right);
    assert!(go_on(&bench, usize::MAX).await);
    // When that was noticed is noted anew if the note is damaged.
    let noticed = "WHERE name LIKE 'erase:noticed:%'";
    tamper(
        &bench,
        &format!("UPDATE meta SET checksum = checksum + 1 {noticed}"),
    )
    .await;
    assert!(go_on(&bench, usize::MAX).await);
    let catalog = &bench.stores.catalog;
    let is_over = async || {
        let erasure = catalog.erasure_of(bench.key.person).await.unwrap();
        erasure.is_some_and(|erasure| erasure.is_over())
    };
    bench.pass(ERASURE_LENGTH.saturating_sub(Duration::from_secs(1)));
    assert!(go_on(&bench, usize::MAX).await);
    assert!(!is_over().await);
    bench.pass(Duration::from_secs(1));
    assert!(go_on(&bench, usize::MAX).await);
    assert!(is_over().await);
    assert_eq!(left(&bench).await, [""; 0]);
    // The note in the store has the date of then, and is known.
    assert_eq!(left_alone_by_heeding(&bench).await, 0);
    assert!(is_over().await);
}

#[tokio::test]
async fn whatever_is_planted_is_found() {
    let bench = Bench::new().await;
    let friend = friends(&bench).await;
    begin(&bench).await;
    assert!(go_on(&bench, usize::MAX).await);
    let (person, objects, catalog) = (bench.key.person, bench.stores.objects(), &bench.stores.catalog);
    let found = async |what: &str| {
        let left = left(&bench).await;
        assert!(left.iter().any(|line| line.contains(what)), "{what}: {left:?}");
    };
    for folder in ["people", "data", "files", "exports", "anywhere"] {
        let path = format!("{folder}/{person}/planted");
        objects.put(&path, Bytes::new()).await.unwrap();
        found(&path).await;
        objects.delete(&path).await.unwrap();
        objects
            .remove_empty_folders(&format!("{folder}/{person}"))
            .await
            .unwrap();
    }
    let spill = bench.directory.path().join("spill/process");
    std::fs::create_dir_all(&spill).unwrap();
    for (directory, name) in [
        (spill, "rows"),
        (bench.directory.path().join("objects/staging"), "part"),
    ] {
        let path = directory.join(name);
        std::fs::write(&path, "rows").unwrap();
        let old = std::time::SystemTime::now() - Duration::from_hours(1);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(old).unwrap();
        found(name).await;
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(left(&bench).await, [""; 0]);
    catalog
        .log_access(vec![entry(&bench, friend, person)])
        .await
        .unwrap();
    found("access_log: 1").await;
    assert!(write_manifest(&bench.stores, friend).await.unwrap());
    found("names the person").await;
    let note = document(DocumentKind::Tag, friend, Some("a"), format!("\"{person}\""));
    keep(&bench, &note, Vec::new()).await;
    found("documents: 1").await;
    catalog
        .note_damage(&format!("data/{person}/x"), "")
        .await
        .unwrap();
    found("meta: 1").await;
}

#[tokio::test]
async fn what_a_killed_process_was_writing_is_gone_with_the_first_search() {
    let bench = Bench::new().await;
    friends(&bench).await;
    let staging = bench.directory.path().join("objects/staging");
    let write = |name: &str| {
        let file = std::fs::File::create(staging.join(name)).unwrap();
        let old = std::time::SystemTime::now() - Duration::from_mins(1);
        file.set_modified(old).unwrap();
        file
    };
    let being_written = write("of-one-that-lives");
    being_written.lock().unwrap();
    drop(write("of-one-that-was-killed"));
    begin(&bench).await;
    assert!(go_on(&bench, usize::MAX).await);
    assert!(staging.join("of-one-that-lives").exists());
    assert!(!staging.join("of-one-that-was-killed").exists());
}

#[tokio::test]
async fn what_sqlite_deleted_is_not_in_its_files_either() {
    let bench = Bench::new().await;
    friends(&bench).await;
    let secret = "what nobody else should ever read";
    let tag = document(DocumentKind::Tag, bench.key.person, Some(secret), "{}".to_owned());
    keep(&bench, &tag, Vec::new()).await;
    assert!(!database_files_with(&bench, secret).is_empty());
    begin(&bench).await;
    assert!(go_on(&bench, usize::MAX).await);
    let found = database_files_with(&bench, secret);
    assert!(found.is_empty(), "{found:?}");
}
