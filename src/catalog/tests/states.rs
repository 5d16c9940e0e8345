//! The state of what is somebody's own: another one after every change of theirs, and after nobody else's.

use sqlx::{Connection as _, Executor as _, SqliteConnection};
use uuid::Uuid;

use super::{Bench, change, one, person, tail};
use crate::catalog::documents::{Change, Changed, Document, DocumentKind};
use crate::catalog::records::{KnownPerson, KnownSource, StoredDefinition};
use crate::catalog::{Catalog, CatalogError, PersonState};
use crate::model::ids::PersonId;
use crate::model::time::Instant;

const MOMENT: Instant = Instant::from_micros(5);

/// Two people, and the states of the one who changes something.
struct Watched {
    bench: Bench,
    owner: PersonId,
    other: PersonId,
    seen: Vec<PersonState>,
}

impl Watched {
    async fn of(bench: Bench) -> Self {
        let (owner, other) = (person(), person());
        for person in [owner, other] {
            assert_eq!(bench.catalog.person_state(person).await.unwrap(), None);
            bench.catalog.ensure_person(person, None).await.unwrap();
        }
        let seen = vec![bench.catalog.person_state(owner).await.unwrap().unwrap()];
        Self {
            bench,
            owner,
            other,
            seen,
        }
    }

    /// After a change: the owner is in a state in which they never were, the other one where they were.
    async fn changed(&mut self, what: &str) {
        let state = |person| self.bench.catalog.person_state(person);
        let now = state(self.owner).await.unwrap().unwrap();
        assert!(!self.seen.contains(&now), "{what} left the state as it was");
        assert_eq!(state(self.other).await.unwrap(), self.seen.first().copied());
        self.seen.push(now);
        assert_eq!(state(self.owner).await.unwrap(), Some(now));
    }
}

#[tokio::test]
async fn every_change_of_a_persons_own_is_another_state() {
    for bench in Bench::all().await {
        let mut watched = Watched::of(bench).await;
        records(&mut watched).await;
        documents(&mut watched).await;
        definitions(&mut watched).await;
        what_is_known_of_them(&mut watched).await;
    }
}

#[tokio::test]
async fn what_another_connection_commits_is_seen_at_once() {
    let bench = Bench::sqlite().await;
    let owner = person();
    bench.catalog.ensure_person(owner, None).await.unwrap();
    let state = bench.catalog.person_state(owner).await.unwrap();
    assert_eq!(bench.catalog.person_state(owner).await.unwrap(), state);
    let mut connection = SqliteConnection::connect(&bench.address).await.unwrap();
    let changed = connection
        .execute("UPDATE ledgers SET sequence = sequence + 1")
        .await;
    assert_eq!(changed.unwrap().rows_affected(), 1);
    connection.close().await.unwrap();
    // Its checksum is that of the row before.
    let refused = bench.catalog.person_state(owner).await;
    assert!(
        matches!(refused, Err(CatalogError::Corrupt { .. })),
        "{refused:?}"
    );
}

async fn records(watched: &mut Watched) {
    for blob in [b"abc", b"def"] {
        let now = watched.bench.stamp(watched.owner).await;
        let commit = one(change(watched.owner, now, vec![tail(blob)]));
        watched.bench.catalog.commit(commit).await.unwrap();
        watched.changed("a commit").await;
    }
}

async fn documents(watched: &mut Watched) {
    let first = Document {
        kind: DocumentKind::Tag,
        id: Uuid::now_v7(),
        person: watched.owner,
        name: Some("calm".to_owned()),
        body: "{}".to_owned(),
        version: 1,
        created_at: MOMENT,
        updated_at: MOMENT,
        deleted_at: None,
    };
    let second = Document {
        version: 2,
        body: "{\"more\":1}".to_owned(),
        ..first.clone()
    };
    let (kind, person, id) = (first.kind, first.person, first.id);
    let changes = [
        Change::Insert {
            document: first,
            links: Vec::new(),
            limit: 3,
        },
        Change::Update {
            document: second,
            expected: 1,
            links: None,
        },
        Change::remove(kind, id, person, 2),
    ];
    for change in changes {
        let what = format!("{change:?}");
        let done = watched.bench.catalog.change_documents(vec![change]).await;
        assert_eq!(done.unwrap(), Changed::Done);
        watched.changed(&what).await;
    }
}

async fn definitions(watched: &mut Watched) {
    let first = StoredDefinition {
        id: Uuid::now_v7(),
        person: watched.owner,
        base: "Event".to_owned(),
        body: "{}".to_owned(),
        version: 1,
        deprecated: false,
        created_at: MOMENT,
        updated_at: MOMENT,
    };
    watched.bench.catalog.insert_definition(&first).await.unwrap();
    watched.changed("a definition").await;
    let second = StoredDefinition {
        version: 2,
        deprecated: true,
        ..first
    };
    let updated = watched.bench.catalog.update_definition(&second, 1).await;
    assert!(updated.unwrap());
    watched.changed("a changed definition").await;
}

async fn what_is_known_of_them(watched: &mut Watched) {
    let (catalog, owner) = (watched.bench.catalog.clone(), watched.owner);
    assert!(catalog.swap_preferences(owner, None, "{}").await.unwrap());
    watched.changed("preferences").await;
    let source = KnownSource {
        id: Catalog::source_id(owner, "watch"),
        key: "watch".to_owned(),
        name: None,
        added_at: MOMENT,
    };
    assert_eq!(catalog.restore_sources(owner, &[source]).await.unwrap(), 1);
    watched.changed("a source").await;
    let known = KnownPerson {
        name: Some("Ada".to_owned()),
        ..catalog.person(owner).await.unwrap().unwrap()
    };
    assert!(catalog.restore_person(&known).await.unwrap());
    watched.changed("a name").await;
}
