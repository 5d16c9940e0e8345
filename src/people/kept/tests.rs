//! What is kept is right, shown on SQLite and, where `ALMANAC_TEST_POSTGRES_URL` names one, on a PostgreSQL
//! database.

use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::catalog::documents::{Change, Changed, Document};
use crate::catalog::test_databases::databases_at_hand;
use crate::model::clock::ManualClock;
use crate::model::time::Instant;

const NOW: Instant = Instant::from_micros(1_700_000_000_000_000);
const KIND: DocumentKind = DocumentKind::Session;

/// Two nodes upon one catalogue, whose clock stands still, and what the first one keeps.
struct Bench {
    nodes: [Catalog; 2],
    kept: Kept<Vec<Document>>,
    person: PersonId,
    _directory: TempDir,
}

impl Bench {
    async fn all() -> Vec<Self> {
        let mut benches = Vec::new();
        for (directory, address) in databases_at_hand() {
            benches.push(Self::open(directory, &address).await);
        }
        benches
    }

    async fn open(directory: TempDir, address: &str) -> Self {
        let node = async || {
            Catalog::open(address, Arc::new(ManualClock::at(NOW)))
                .await
                .unwrap()
        };
        Self {
            nodes: [node().await, node().await],
            kept: Kept::of(KIND, 1 << 10),
            person: PersonId(Uuid::new_v4()),
            _directory: directory,
        }
    }

    fn document(&self, body: &str) -> Document {
        Document {
            kind: KIND,
            id: Uuid::new_v4(),
            person: self.person,
            name: None,
            body: body.to_owned(),
            version: 1,
            created_at: NOW,
            updated_at: NOW,
            deleted_at: None,
        }
    }

    /// What another node does in one transaction.
    async fn change(&self, changes: Vec<Change>) {
        let changed = self.nodes[1].change_documents(changes).await.unwrap();
        assert_eq!(changed, Changed::Done);
    }

    async fn read(&self) {
        let catalog = &self.nodes[0];
        let state = self.kept.state(catalog, self.person).await;
        let mut documents = Vec::new();
        let each = |document| documents.push(document);
        let stamp = catalog.each_document(self.person, KIND, each).await.unwrap();
        let told = catalog.document_stamp(self.person, KIND).await.unwrap();
        assert_eq!(told, stamp);
        self.kept
            .keep(self.person, (state, stamp), Arc::new(documents), 1);
    }

    async fn current(&self) -> Option<Arc<Vec<Document>>> {
        self.kept.current(&self.nodes[0], self.person).await.unwrap()
    }
}

fn insert(document: &Document) -> Change {
    Change::Insert {
        document: document.clone(),
        links: Vec::new(),
        limit: 100,
    }
}

fn update(document: &Document, body: &str) -> Change {
    Change::Update {
        document: Document {
            body: body.to_owned(),
            version: 2,
            ..document.clone()
        },
        expected: 1,
        links: None,
    }
}

#[tokio::test]
async fn what_is_kept_outlives_changes_of_everything_else() {
    for bench in Bench::all().await {
        assert!(bench.current().await.is_none(), "nothing is kept of nobody");
        bench.read().await;
        assert!(bench.current().await.is_none(), "there is no such person yet");
        let document = bench.document("old");
        bench.change(vec![insert(&document)]).await;
        bench.read().await;
        let made = bench.current().await.unwrap();
        assert_eq!(*made, std::slice::from_ref(&document));
        for kind in [DocumentKind::Tag, DocumentKind::Reflection] {
            let other = Document {
                kind,
                ..bench.document("")
            };
            bench.change(vec![insert(&other)]).await;
            assert!(Arc::ptr_eq(&bench.current().await.unwrap(), &made));
        }
        bench.change(vec![update(&document, "new")]).await;
        assert!(bench.current().await.is_none());
        bench.read().await;
        assert_eq!(bench.current().await.unwrap()[0].body, "new");
        bench.kept.forget_all();
        assert!(bench.current().await.is_none());
    }
}

#[tokio::test]
async fn changes_that_leave_the_same_digest_are_noticed() {
    for bench in Bench::all().await {
        // The same change of two documents at one moment: in the exclusive or of their checksums it is none.
        let documents = [bench.document("old"), bench.document("old")];
        bench.change(documents.iter().map(insert).collect()).await;
        bench.read().await;
        let updates = documents.iter().map(|document| update(document, "new"));
        bench.change(updates.collect()).await;
        assert!(bench.current().await.is_none());
    }
}

#[tokio::test]
async fn a_document_in_place_of_another_one_is_noticed() {
    for bench in Bench::all().await {
        let document = bench.document("old");
        bench.change(vec![insert(&document)]).await;
        bench.read().await;
        let other = bench.document("old");
        bench.change(vec![document.removal(), insert(&other)]).await;
        assert!(bench.current().await.is_none());
        bench.read().await;
        assert_eq!(*bench.current().await.unwrap(), [other]);
    }
}

#[tokio::test]
async fn two_pasts_that_count_alike_are_not_the_same_state() {
    let (one, other) = (&Bench::all().await[0], &Bench::all().await[0]);
    for bench in [one, other] {
        let document = Document {
            person: one.person,
            ..bench.document("theirs")
        };
        bench.change(vec![insert(&document)]).await;
    }
    let person_states = [one, other].map(|bench| bench.nodes[0].person_state(one.person));
    let [first, second] = futures::future::join_all(person_states).await.try_into().unwrap();
    assert_eq!(first.unwrap(), second.unwrap());
    let states = [one, other].map(|bench| bench.nodes[0].document_state(one.person, KIND));
    let [first, second] = futures::future::join_all(states).await.try_into().unwrap();
    assert!(first.is_some() && first != second, "{first:?}");
}
