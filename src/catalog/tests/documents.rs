//! What a person writes: all changes of a transaction or none, names once, limits kept, and a lost row
//! noticed.

use std::collections::BTreeMap;

use proptest::prelude::*;
use uuid::Uuid;

use super::{Bench, person};
use crate::catalog::documents::{Change, Changed, Document, DocumentKind, Link};
use crate::catalog::granting::{MEMBER_OF, SHARED_WITH_PERSON};
use crate::catalog::{Catalog, CatalogError, Subject};
use crate::model::ids::PersonId;
use crate::model::time::Instant;

fn tag(person: PersonId, name: &str, body: &str) -> Document {
    Document {
        kind: DocumentKind::Tag,
        id: Uuid::now_v7(),
        person,
        name: Some(name.to_owned()),
        body: body.to_owned(),
        version: 1,
        created_at: Instant::from_micros(5),
        updated_at: Instant::from_micros(5),
        deleted_at: None,
    }
}

fn insert(document: &Document, links: Vec<Link>) -> Change {
    Change::Insert {
        document: document.clone(),
        links,
        limit: 3,
    }
}

#[tokio::test]
async fn a_document_is_found_by_its_id_its_name_its_owner_and_its_links() {
    for bench in Bench::all().await {
        let (owner, target) = (person(), Uuid::now_v7());
        let document = tag(owner, "calm", "{}");
        let link = Link {
            kind: "about",
            target,
        };
        let done = bench
            .catalog
            .change_documents(vec![insert(&document, vec![link])])
            .await;
        assert_eq!(done.unwrap(), Changed::Done);
        let catalog = &bench.catalog;
        let found = catalog.document(DocumentKind::Tag, document.id).await.unwrap();
        assert_eq!(found.as_ref(), Some(&document));
        let found = catalog
            .document_named(owner, DocumentKind::Tag, "calm")
            .await
            .unwrap();
        assert_eq!(found.as_ref(), Some(&document));
        let found = catalog.documents_of(owner, DocumentKind::Tag).await.unwrap();
        assert_eq!(found, std::slice::from_ref(&document));
        let found = catalog
            .documents_linked("about", &[Uuid::now_v7(), target])
            .await
            .unwrap();
        assert_eq!(found, [document]);
        assert!(
            catalog
                .documents_linked("other", &[target])
                .await
                .unwrap()
                .is_empty()
        );
    }
}

/// A document with a link to `target`.
async fn inserted_about(catalog: &Catalog, target: Uuid) -> Document {
    let document = tag(person(), "calm", "{}");
    let link = Link {
        kind: "about",
        target,
    };
    let changed = catalog
        .change_documents(vec![insert(&document, vec![link])])
        .await;
    assert_eq!(changed.unwrap(), Changed::Done);
    document
}

/// Changes a row of a document behind the catalogue's back.
async fn damage(catalog: &Catalog, table: &str, change: &str, document: Uuid) {
    let mut session = catalog.database.write().await.unwrap();
    let sql = format!("UPDATE {table} SET {change} WHERE document = $1");
    let values = vec![super::super::rows::id(document)];
    assert_eq!(session.execute(sql, values).await.unwrap(), 1);
    session.commit().await.unwrap();
}

/// Whoever asks what is linked to `target` is told of damage.
async fn refuses(catalog: &Catalog, target: Uuid) {
    let refused = catalog.documents_linked("about", &[target]).await;
    assert!(
        matches!(refused, Err(CatalogError::Corrupt { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_is_damaged_is_set_aside_for_jobs_and_an_error_for_everybody_else() {
    let bench = Bench::sqlite().await;
    let (catalog, target) = (&bench.catalog, Uuid::now_v7());
    let mut documents = Vec::new();
    for _ in 0..3 {
        documents.push(inserted_about(catalog, target).await);
    }
    documents.sort_by_key(|document| document.id);
    let [one, other, sound] = documents.as_slice() else {
        panic!("there are three");
    };
    let found = async || {
        catalog
            .sound_documents_linked(DocumentKind::Tag, "about", target)
            .await
            .unwrap()
    };
    assert_eq!(found().await.sound, documents);
    for (table, damaged) in [("documents", one), ("links", other)] {
        damage(catalog, table, "checksum = checksum + 1", damaged.id).await;
        refuses(catalog, target).await;
    }
    let found = found().await;
    assert_eq!(found.sound, std::slice::from_ref(sound));
    let owners = [one, other].map(|document| Subject::Person(document.person));
    assert_eq!(found.set_aside, std::collections::BTreeSet::from(owners));
}

#[tokio::test]
async fn a_linked_document_is_not_passed_over_where_its_kind_is_damaged() {
    let bench = Bench::sqlite().await;
    let (catalog, target) = (&bench.catalog, Uuid::now_v7());
    let document = inserted_about(catalog, target).await;
    let found = catalog.documents_linked("about", &[target]).await.unwrap();
    assert_eq!(found, std::slice::from_ref(&document));
    damage(catalog, "documents", "kind = 'tug'", document.id).await;
    refuses(catalog, target).await;
}

#[tokio::test]
async fn a_change_that_fails_takes_the_others_with_it() {
    for bench in Bench::all().await {
        let owner = person();
        let first = tag(owner, "one", "1");
        let catalog = &bench.catalog;
        catalog
            .change_documents(vec![insert(&first, vec![])])
            .await
            .unwrap();
        let taken = vec![
            insert(&tag(owner, "two", "2"), vec![]),
            insert(&tag(owner, "one", "3"), vec![]),
        ];
        let outcome = catalog.change_documents(taken).await.unwrap();
        assert!(matches!(outcome, Changed::NameTaken { name, .. } if name == "one"));
        let stale = Change::remove(DocumentKind::Tag, first.id, owner, 7);
        let outcome = catalog
            .change_documents(vec![insert(&tag(owner, "two", "2"), vec![]), stale])
            .await;
        assert_eq!(outcome.unwrap(), Changed::Overtaken);
        let foreign = Change::remove(DocumentKind::Tag, first.id, person(), 1);
        let outcome = catalog.change_documents(vec![foreign]).await.unwrap();
        assert_eq!(outcome, Changed::Overtaken, "the document of somebody else");
        assert_eq!(
            catalog.documents_of(owner, DocumentKind::Tag).await.unwrap(),
            [first]
        );
    }
}

#[tokio::test]
async fn nothing_is_changed_by_who_expects_other_documents_than_there_are() {
    for bench in Bench::all().await {
        let (catalog, owner) = (&bench.catalog, person());
        let expect = async || {
            let stamp = catalog
                .each_document(owner, DocumentKind::Tag, drop)
                .await
                .unwrap();
            Change::Expect {
                kind: DocumentKind::Tag,
                person: owner,
                stamp,
            }
        };
        let change = async |changes| catalog.change_documents(changes).await.unwrap();
        let none = expect().await;
        let (first, second) = (tag(owner, "one", "1"), tag(owner, "two", "2"));
        let done = change(vec![none.clone(), insert(&first, vec![])]).await;
        assert_eq!(done, Changed::Done);
        let one = expect().await;
        let outcome = change(vec![none, insert(&second, vec![])]).await;
        assert_eq!(outcome, Changed::Overtaken);
        let changed = Change::Update {
            document: Document {
                version: 2,
                ..first.clone()
            },
            expected: 1,
            links: None,
        };
        assert_eq!(change(vec![changed]).await, Changed::Done);
        let outcome = change(vec![one, insert(&second, vec![])]).await;
        assert_eq!(outcome, Changed::Overtaken, "as many, but another version");
        let found = catalog.documents_of(owner, DocumentKind::Tag).await.unwrap();
        assert_eq!((found.len(), found[0].version), (1, 2));
    }
}

#[tokio::test]
async fn however_many_documents_there_are_each_is_shown_once_oldest_first() {
    for bench in Bench::all().await {
        let owner = person();
        let tags: Vec<Document> = (0..2500)
            .map(|number| tag(owner, &number.to_string(), ""))
            .collect();
        let changes = tags.iter().map(|document| Change::Insert {
            document: document.clone(),
            links: vec![],
            limit: u64::MAX,
        });
        let done = bench.catalog.change_documents(changes.collect()).await.unwrap();
        assert_eq!(done, Changed::Done);
        let mut shown = Vec::new();
        let look = |document: Document| shown.push((document.created_at, document.id));
        bench
            .catalog
            .each_document(owner, DocumentKind::Tag, look)
            .await
            .unwrap();
        let mut expected: Vec<_> = tags.iter().map(|tag| (tag.created_at, tag.id)).collect();
        expected.sort();
        assert_eq!(shown, expected);
    }
}

#[tokio::test]
async fn a_lost_or_damaged_link_is_noticed_however_many_documents_there_are() {
    for change in [
        "DELETE FROM links WHERE document = $1",
        "UPDATE links SET person = document WHERE document = $1",
        "UPDATE links SET document = target WHERE document = $1",
        "UPDATE links SET kind = 'astray' WHERE document = $1",
    ] {
        let bench = Bench::sqlite().await;
        let (catalog, owner) = (&bench.catalog, person());
        let tags: Vec<Document> = (0..1500)
            .map(|number| tag(owner, &number.to_string(), ""))
            .collect();
        let link = Link {
            kind: "about",
            target: Uuid::now_v7(),
        };
        let changes = tags.iter().enumerate().map(|(number, document)| Change::Insert {
            document: document.clone(),
            links: if number < 2 {
                vec![link.clone()]
            } else {
                Vec::new()
            },
            limit: u64::MAX,
        });
        let done = catalog.change_documents(changes.collect()).await.unwrap();
        assert_eq!(done, Changed::Done);
        let found = catalog.documents_of(owner, DocumentKind::Tag).await.unwrap();
        assert_eq!(found.len(), tags.len());
        let mut session = catalog.database.write().await.unwrap();
        let values = vec![super::super::rows::id(tags[0].id)];
        assert_eq!(session.execute(change.to_owned(), values).await.unwrap(), 1);
        session.commit().await.unwrap();
        let refused = catalog.documents_of(owner, DocumentKind::Tag).await;
        assert!(
            matches!(refused, Err(CatalogError::Corrupt { .. })),
            "{change}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn nobody_has_more_than_the_limit() {
    for bench in Bench::all().await {
        let owner = person();
        for name in ["a", "b", "c"] {
            let change = insert(&tag(owner, name, ""), vec![]);
            bench.catalog.change_documents(vec![change]).await.unwrap();
        }
        let change = insert(&tag(owner, "d", ""), vec![]);
        let outcome = bench.catalog.change_documents(vec![change]).await.unwrap();
        let limit = Changed::LimitReached {
            kind: DocumentKind::Tag,
            limit: 3,
        };
        assert_eq!(outcome, limit);
        let change = insert(&tag(owner, "b", ""), vec![]);
        let outcome = bench.catalog.change_documents(vec![change]).await.unwrap();
        let taken = Changed::NameTaken {
            kind: DocumentKind::Tag,
            name: "b".to_owned(),
        };
        assert_eq!(outcome, taken, "a name that exists is told however full it is");
    }
}

#[tokio::test]
async fn of_two_who_race_for_a_name_one_gets_it() {
    for bench in Bench::all().await {
        let owner = person();
        let racers = (0..8).map(|_| {
            let catalog = bench.catalog.clone();
            let change = Change::Insert {
                document: tag(owner, "mine", ""),
                links: vec![],
                limit: 100,
            };
            tokio::spawn(async move { catalog.change_documents(vec![change]).await.unwrap() })
        });
        let outcomes = futures::future::join_all(racers).await;
        let won = outcomes
            .into_iter()
            .filter(|outcome| *outcome.as_ref().unwrap() == Changed::Done);
        assert_eq!(won.count(), 1);
    }
}

#[tokio::test]
async fn a_document_that_vanished_is_an_error_and_not_an_absence() {
    let bench = Bench::sqlite().await;
    let owner = person();
    let (first, second) = (tag(owner, "one", ""), tag(owner, "two", ""));
    let changes = vec![insert(&first, vec![]), insert(&second, vec![])];
    bench.catalog.change_documents(changes).await.unwrap();
    let mut session = bench.catalog.database.write().await.unwrap();
    session
        .execute("DELETE FROM documents WHERE name = 'one'".to_owned(), vec![])
        .await
        .unwrap();
    session.commit().await.unwrap();
    assert!(
        bench
            .catalog
            .documents_of(owner, DocumentKind::Tag)
            .await
            .is_err()
    );
    let complaints = bench.catalog.damaged_documents(owner).await.unwrap();
    assert_eq!(complaints.len(), 1, "{complaints:?}");
}

/// One step of a person who writes.
#[derive(Clone, Debug)]
enum Step {
    Insert(u8),
    Rename(u8, u8),
    Remove(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6_u8).prop_map(Step::Insert),
        (0..6_u8, 0..6_u8).prop_map(|(from, to)| Step::Rename(from, to)),
        (0..6_u8).prop_map(Step::Remove),
    ]
}

/// Makes a link lead nowhere.
const ASTRAY: &str = "kind = 'astray'";

/// Inserts a document of `owner` with one link, which `damage` then changes.
async fn damaged_link(
    catalog: &Catalog,
    owner: PersonId,
    kind: DocumentKind,
    link: Link,
    damage: &str,
) -> Document {
    let document = Document {
        kind,
        ..tag(owner, "linked", "{}")
    };
    let sql = format!("UPDATE links SET {damage} WHERE kind = '{}'", link.kind);
    let done = catalog
        .change_documents(vec![insert(&document, vec![link])])
        .await;
    assert_eq!(done.unwrap(), Changed::Done);
    let mut session = catalog.database.write().await.unwrap();
    session.execute(sql, Vec::new()).await.unwrap();
    session.commit().await.unwrap();
    document
}

#[tokio::test]
async fn a_membership_whose_link_is_damaged_is_not_taken_for_one_that_never_was() {
    for damage in [ASTRAY, "target = randomblob(16)", "person = randomblob(16)"] {
        let bench = Bench::sqlite().await;
        let (owner, reader) = (person(), person());
        let link = Link {
            kind: MEMBER_OF,
            target: Uuid::new_v4(),
        };
        damaged_link(&bench.catalog, reader, DocumentKind::Membership, link, damage).await;
        let refused = bench.catalog.grants_between(owner, reader).await;
        assert!(
            matches!(refused, Err(CatalogError::Corrupt { .. })),
            "{damage}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn the_owner_of_a_share_whose_link_is_damaged_learns_of_it_and_no_stranger() {
    let bench = Bench::sqlite().await;
    let (owner, stranger) = (person(), person());
    let link = Link {
        kind: SHARED_WITH_PERSON,
        target: person().0,
    };
    let share = damaged_link(&bench.catalog, owner, DocumentKind::Share, link, ASTRAY).await;
    let seen = bench.catalog.links_of(&[share.id]).await;
    assert!(matches!(seen, Err(CatalogError::Corrupt { .. })), "{seen:?}");
    // Nor does it matter for what others share with the owner.
    for (giver, reader) in [(owner, stranger), (stranger, owner)] {
        let grants = bench.catalog.grants_between(giver, reader).await.unwrap();
        assert_eq!(grants, []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Names lead to the same documents as in a map that refuses a key twice, after any steps.
    #[test]
    fn documents_are_a_map_by_name(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let bench = Bench::sqlite().await;
            let owner = person();
            let mut model: BTreeMap<String, Document> = BTreeMap::new();
            for step in steps {
                let (changes, expected) = match step {
                    Step::Insert(name) => {
                        let document = tag(owner, &name.to_string(), "");
                        let change = Change::Insert {
                            document: document.clone(),
                            links: vec![],
                            limit: 100,
                        };
                        let free = !model.contains_key(&name.to_string());
                        if free {
                            model.insert(name.to_string(), document);
                        }
                        (vec![change], free)
                    }
                    Step::Rename(from, to) => {
                        let Some(found) = model.get(&from.to_string()).cloned() else {
                            continue;
                        };
                        let document = Document {
                            name: Some(to.to_string()),
                            version: found.version + 1,
                            ..found.clone()
                        };
                        let change = Change::Update {
                            document: document.clone(),
                            expected: found.version,
                            links: None,
                        };
                        let free = from == to || !model.contains_key(&to.to_string());
                        if free {
                            model.remove(&from.to_string());
                            model.insert(to.to_string(), document);
                        }
                        (vec![change], free)
                    }
                    Step::Remove(name) => {
                        let Some(found) = model.remove(&name.to_string()) else {
                            continue;
                        };
                        let (id, expected) = (found.id, found.version);
                        (
                            vec![Change::remove(DocumentKind::Tag, id, owner, expected)],
                            true,
                        )
                    }
                };
                let outcome = bench.catalog.change_documents(changes).await.unwrap();
                assert_eq!(outcome == Changed::Done, expected);
            }
            let mut found = bench
                .catalog
                .documents_of(owner, DocumentKind::Tag)
                .await
                .unwrap();
            found.sort_by(|one, other| one.name.cmp(&other.name));
            let expected: Vec<Document> = model.into_values().collect();
            assert_eq!(found, expected);
        });
    }
}
