//! Erasing, on every database: nobody is found or made while it is under way, and what is left is found and
//! removed.

use std::time::Duration;

use uuid::Uuid;

use super::{Bench, heart_rate, person, tail};
use crate::catalog::CatalogError;
use crate::catalog::access_log::LogEntry;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind, Link};
use crate::catalog::erasures::{Erasure, Leftover};
use crate::catalog::granting::{INVITES, MEMBER_OF, SHARED_WITH_PERSON};
use crate::catalog::records::{Commit, PartitionChange, SeenSource};
use crate::catalog::rows::id;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

pub(super) fn first_commit(person: PersonId) -> Commit {
    Commit {
        changes: vec![PartitionChange {
            person,
            data_type: heart_rate(),
            expected: None,
            add: vec![tail(b"something")],
            dead: Vec::new(),
            records_delta: 1,
            updates: 1,
        }],
        sources: vec![SeenSource {
            person,
            key: "watch".to_owned(),
            name: None,
        }],
        ..Commit::default()
    }
}

pub(super) async fn keep(
    bench: &Bench,
    owner: PersonId,
    kind: DocumentKind,
    body: String,
    links: Vec<Link>,
) -> Uuid {
    let document = Document {
        kind,
        id: Uuid::now_v7(),
        person: owner,
        name: None,
        body,
        version: 1,
        created_at: Instant::from_micros(5),
        updated_at: Instant::from_micros(5),
        deleted_at: None,
    };
    let id = document.id;
    let insert = Change::Insert {
        document,
        links,
        limit: 10,
    };
    let changed = bench.catalog.change_documents(vec![insert]).await;
    assert_eq!(changed.unwrap(), Changed::Done);
    id
}

/// The entry of a read of somebody's data.
fn read_by(actor: PersonId, person: PersonId) -> LogEntry {
    LogEntry {
        person,
        id: Uuid::now_v7(),
        at: Instant::from_micros(5),
        actor,
        body: "{}".to_owned(),
        rows: None,
        outcome: "begun".to_owned(),
    }
}

/// The erasure when it is over.
fn ended(begun: &Erasure) -> Erasure {
    Erasure {
        person: None,
        purged_at: Some(begun.begun_at),
        ended_at: Some(begun.begun_at),
        ..*begun
    }
}

/// What is left, without what other tests in the same database leave.
pub(super) async fn traces(bench: &Bench, person: PersonId) -> Vec<Leftover> {
    let mut traces = bench.catalog.traces_of(person).await.unwrap();
    traces.retain(|trace| !trace.table.starts_with("blobs"));
    traces
}

pub(super) async fn erase(bench: &Bench, erasure: &Erasure) {
    let mut attempts = 0;
    loop {
        let found = match bench.catalog.erase_own(erasure).await {
            Ok(false) => bench.catalog.erase_mentions(erasure).await,
            found => found,
        };
        match found {
            Ok(true) => {}
            Ok(false) => return,
            // Another test's people are erased at the same time, in the same database.
            Err(error) => {
                attempts += 1;
                assert!(attempts < 20, "{error}");
            }
        }
    }
}

#[tokio::test]
async fn somebody_who_is_erased_is_not_found_and_not_made_until_it_is_over() {
    for bench in Bench::all().await {
        let (one, other) = (person(), person());
        let catalog = &bench.catalog;
        catalog.commit(first_commit(one)).await.unwrap();
        let group = keep(&bench, one, DocumentKind::Group, "{}".to_owned(), Vec::new()).await;
        let link = |kind, target| vec![Link { kind, target }];
        keep(
            &bench,
            other,
            DocumentKind::Membership,
            "{}".to_owned(),
            link(MEMBER_OF, group),
        )
        .await;
        let body = format!("{{\"note\":\"{one}\"}}");
        keep(
            &bench,
            other,
            DocumentKind::Share,
            body,
            link(SHARED_WITH_PERSON, one.0),
        )
        .await;
        catalog.log_access(vec![read_by(one, other)]).await.unwrap();

        let begun = catalog.begin_erasure(one).await.unwrap();
        assert_eq!(
            catalog.begin_erasure(one).await.unwrap(),
            begun,
            "it is under way already"
        );
        assert!(catalog.partitions_of(one).await.unwrap().is_empty());
        assert!(catalog.sources_of(one).await.unwrap().is_empty());
        let refused = |outcome: Result<(), CatalogError>| {
            assert!(matches!(outcome, Err(CatalogError::Erased { .. })), "{outcome:?}");
        };
        refused(catalog.commit(first_commit(one)).await.map(drop));
        refused(catalog.hold(one).await.map(drop));
        assert!(catalog.damaged_partitions(one).await.unwrap().is_empty());
        assert!(catalog.damaged_documents(one).await.unwrap().is_empty());

        erase(&bench, &begun).await;
        assert_eq!(traces(&bench, one).await, []);
        for kind in [DocumentKind::Share, DocumentKind::Membership] {
            let left = catalog.documents_of(other, kind).await.unwrap();
            assert_eq!(left.len(), usize::from(kind == DocumentKind::Share));
        }
        assert_eq!(
            catalog.accesses(other, None, 5).await.unwrap().entries[0].actor.0,
            Uuid::nil()
        );
        refused(catalog.ensure_person(one, None).await.map(drop));
        // A read of theirs that ends only now takes nobody else's entry with it.
        let late = [one, other].map(|person| LogEntry {
            person,
            id: Uuid::now_v7(),
            at: Instant::from_micros(6),
            actor: other,
            body: "{}".to_owned(),
            rows: None,
            outcome: "answered".to_owned(),
        });
        catalog.log_access(late.into()).await.unwrap();
        let log = catalog.accesses(other, None, 5).await.unwrap();
        assert_eq!(log.entries.len(), 2);

        let over = ended(&begun);
        assert!(catalog.note_erasure(&over).await.unwrap());
        assert_eq!(
            traces(&bench, one).await,
            [],
            "not even the id of the erasure itself"
        );
        assert_eq!(catalog.erasure_of(one).await.unwrap(), Some(over));
        assert!(catalog.ensure_person(one, None).await.unwrap(), "they begin anew");
    }
}

#[tokio::test]
async fn memberships_go_with_the_groups_of_who_is_erased_and_with_no_other() {
    let bench = Bench::sqlite().await;
    let [erased, owner, member] = [person(), person(), person()];
    let catalog = &bench.catalog;
    let joined = async |member, group| {
        let link = Link {
            kind: MEMBER_OF,
            target: group,
        };
        keep(
            &bench,
            member,
            DocumentKind::Membership,
            "{}".to_owned(),
            vec![link],
        )
        .await;
    };
    let group_of = async |owner| keep(&bench, owner, DocumentKind::Group, "{}".to_owned(), Vec::new()).await;
    let (gone, damaged) = (group_of(erased).await, group_of(owner).await);
    joined(member, gone).await;
    joined(member, damaged).await;
    // It is not found any more, like one that was removed.
    let mut session = catalog.database.write().await.unwrap();
    let sql = "UPDATE documents SET kind = 'astray' WHERE document = $1";
    let changed = session.execute(sql.to_owned(), vec![id(damaged)]).await;
    assert_eq!(changed.unwrap(), 1);
    session.commit().await.unwrap();

    let begun = catalog.begin_erasure(erased).await.unwrap();
    erase(&bench, &begun).await;
    let left = catalog.links_by(member, MEMBER_OF).await.unwrap();
    let left: Vec<Uuid> = left.iter().map(|link| link.target).collect();
    assert_eq!(left, [damaged]);
    let memberships = catalog.documents_of(member, DocumentKind::Membership).await;
    assert_eq!(memberships.unwrap().len(), 1);
    // Somebody may have been joining when the erasure began.
    joined(owner, gone).await;
    erase(&bench, &begun).await;
    assert_eq!(catalog.links_by(owner, MEMBER_OF).await.unwrap(), []);
    assert!(catalog.note_erasure(&ended(&begun)).await.unwrap());
    let mut session = catalog.database.read().await.unwrap();
    let sql = "SELECT name FROM meta WHERE name LIKE 'erase:%'";
    let facts = session.fetch(sql.to_owned(), Vec::new()).await.unwrap();
    assert!(facts.is_empty(), "nothing of it stays noted");
    session.commit().await.unwrap();
}

#[tokio::test]
async fn links_to_who_is_erased_go_whatever_their_kind() {
    for bench in Bench::all().await {
        let (one, other) = (person(), person());
        let catalog = &bench.catalog;
        catalog.commit(first_commit(one)).await.unwrap();
        let kinds = [
            (DocumentKind::Share, SHARED_WITH_PERSON),
            (DocumentKind::Group, INVITES),
            (DocumentKind::Tag, "about"),
        ];
        for (document, kind) in kinds {
            let target = one.0;
            let links = vec![Link { kind, target }];
            keep(&bench, other, document, "{}".to_owned(), links).await;
        }
        let begun = catalog.begin_erasure(one).await.unwrap();
        erase(&bench, &begun).await;
        assert_eq!(traces(&bench, one).await, []);
        for (document, _) in kinds {
            let left = catalog.documents_of(other, document).await.unwrap();
            assert_eq!(left.len(), 1, "{document:?}");
        }
    }
}

#[tokio::test]
async fn all_that_names_somebody_is_found_by_one_look_that_nobody_waits_for() {
    let bench = Bench::sqlite().await;
    let (one, other) = (person(), person());
    let catalog = &bench.catalog;
    catalog.commit(first_commit(one)).await.unwrap();
    catalog.ensure_person(other, None).await.unwrap();
    // More than one step changes.
    let entries = (0..150).map(|_| read_by(one, other)).collect();
    catalog.log_access(entries).await.unwrap();
    let begun = catalog.begin_erasure(one).await.unwrap();
    while catalog.erase_own(&begun).await.unwrap() {}
    assert!(catalog.erase_mentions(&begun).await.unwrap());
    assert_eq!(traces(&bench, one).await, []);

    let writing = catalog.database.write().await.unwrap();
    let look = catalog.erase_mentions(&begun);
    let looked = tokio::time::timeout(Duration::from_mins(1), look).await;
    assert!(!looked.expect("a look waits for no writer").unwrap());
    writing.rollback().await.unwrap();
}

#[tokio::test]
async fn who_goes_on_with_an_erasure_too_late_takes_nothing_from_somebody_who_began_anew() {
    for bench in Bench::all().await {
        let (one, other) = (person(), person());
        let catalog = &bench.catalog;
        catalog.commit(first_commit(one)).await.unwrap();
        let begun = catalog.begin_erasure(one).await.unwrap();
        erase(&bench, &begun).await;
        assert_eq!(catalog.still_under_way(&begun).await.unwrap(), Some(begun));
        let over = ended(&begun);
        assert!(catalog.note_erasure(&over).await.unwrap());
        assert_eq!(catalog.still_under_way(&begun).await.unwrap(), None);

        bench.pass(Duration::from_millis(5)).await;
        catalog.commit(first_commit(one)).await.unwrap();
        let body = format!("{{\"note\":\"{one}\"}}");
        let with = vec![Link {
            kind: SHARED_WITH_PERSON,
            target: one.0,
        }];
        keep(&bench, other, DocumentKind::Share, body, with).await;
        catalog.log_access(vec![read_by(one, other)]).await.unwrap();
        let stored = traces(&bench, one).await;
        let goes_on_too_late = async || {
            assert!(!catalog.erase_own(&begun).await.unwrap());
            assert!(!catalog.erase_mentions(&begun).await.unwrap());
            let looked = Erasure {
                purged_at: Some(begun.begun_at),
                ..begun
            };
            for progress in [looked, over] {
                assert!(!catalog.note_erasure(&progress).await.unwrap());
            }
        };
        goes_on_too_late().await;
        assert_eq!(traces(&bench, one).await, stored);
        assert_eq!(catalog.erasure_of(one).await.unwrap(), Some(over));

        // Nor does it get in the way of their next erasure.
        let again = catalog.begin_erasure(one).await.unwrap();
        assert!(again.begun_at > begun.begun_at, "{again:?}");
        let stored = traces(&bench, one).await;
        goes_on_too_late().await;
        let remembered = Erasure {
            person: None,
            ..begun
        };
        catalog.enter_erasure(&remembered).await.unwrap();
        assert_eq!(traces(&bench, one).await, stored);
        assert_eq!(catalog.erasure_of(one).await.unwrap(), Some(again));
        erase(&bench, &again).await;
        assert_eq!(traces(&bench, one).await, []);
    }
}

#[tokio::test]
async fn who_is_made_at_the_same_moment_is_erased_or_refused() {
    for bench in Bench::all().await {
        for _ in 0..10 {
            let one = person();
            let catalog = bench.catalog.clone();
            let (begun, first, second) = tokio::join!(
                catalog.begin_erasure(one),
                catalog.commit(first_commit(one)),
                catalog.commit(first_commit(one)),
            );
            let begun = begun.unwrap();
            for outcome in [first, second] {
                assert!(
                    matches!(outcome, Ok(_) | Err(CatalogError::Erased { .. })),
                    "{outcome:?}"
                );
            }
            assert!(catalog.partitions_of(one).await.unwrap().is_empty());
            erase(&bench, &begun).await;
            assert_eq!(traces(&bench, one).await, []);
        }
    }
}

#[tokio::test]
async fn deletions_are_noticed_once_and_forgotten_when_they_are_done() {
    for bench in Bench::all().await {
        let one = person();
        let catalog = &bench.catalog;
        catalog.commit(first_commit(one)).await.unwrap();
        let noticed = async || {
            while catalog.notice_deletions().await.unwrap() > 0 {}
            let all = catalog.deletions_before(Instant::MAX).await.unwrap().sound;
            all.into_iter().find(|deletion| deletion.person == one)
        };
        assert_eq!(noticed().await, None);
        let piece = bench.partition(one, &heart_rate()).await.pieces[0].id;
        let mut commit = first_commit(one);
        commit.changes[0].add.clear();
        commit.changes[0].dead = vec![(piece, super::record())];
        catalog.commit(commit).await.unwrap();
        let first = noticed().await.unwrap();
        bench.pass(Duration::from_millis(5)).await;
        assert_eq!(noticed().await, Some(first.clone()));
        catalog.forget_deletion(&first).await.unwrap();
        let again = noticed().await.unwrap();
        assert!(
            again.noticed_at > first.noticed_at,
            "its dead rows are still there"
        );
    }
}
