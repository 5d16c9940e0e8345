//! Documents of different kinds may have the same id: nothing of the one is the other's.

use uuid::Uuid;

use super::erasures::keep;
use super::{Bench, person};
use crate::catalog::documents::{Change, Changed, Document, DocumentKind, Link};
use crate::catalog::granting::SHARED_WITH_PERSON;
use crate::model::time::Instant;

#[tokio::test]
async fn a_document_with_the_id_of_another_one_leaves_its_links_alone() {
    for bench in Bench::all().await {
        let catalog = &bench.catalog;
        let (giver, reader) = (person(), person());
        let link = Link {
            kind: SHARED_WITH_PERSON,
            target: reader.0,
        };
        let share = keep(&bench, giver, DocumentKind::Share, "{}".to_owned(), vec![link]).await;
        let tag = Document {
            kind: DocumentKind::Tag,
            id: share,
            person: reader,
            name: None,
            body: "{}".to_owned(),
            version: 1,
            created_at: Instant::from_micros(5),
            updated_at: Instant::from_micros(5),
            deleted_at: None,
        };
        let update = Change::Update {
            document: Document {
                version: 2,
                ..tag.clone()
            },
            expected: 1,
            links: Some(Vec::new()),
        };
        let remove = Change::remove(DocumentKind::Tag, share, reader, 2);
        let insert = Change::Insert {
            document: tag,
            links: Vec::new(),
            limit: 1,
        };
        for (change, tags) in [(insert, 1), (update, 1), (remove, 0)] {
            let changed = catalog.change_documents(vec![change]).await;
            assert_eq!(changed.unwrap(), Changed::Done);
            let own = catalog.documents_of(reader, DocumentKind::Tag).await.unwrap();
            assert_eq!(own.len(), tags);
            let given = catalog.documents_of(giver, DocumentKind::Share).await.unwrap();
            assert_eq!(given.len(), 1);
            assert_eq!(catalog.grants_between(giver, reader).await.unwrap().len(), 1);
            let linked = catalog.documents_linked(SHARED_WITH_PERSON, &[reader.0]).await;
            assert_eq!(linked.unwrap(), given);
        }
    }
}

#[tokio::test]
async fn an_id_is_that_of_another_if_its_kind_or_its_owner_differs() {
    let bench = Bench::sqlite().await;
    let owner = person();
    let tag = keep(&bench, owner, DocumentKind::Tag, "{}".to_owned(), Vec::new()).await;
    for (kind, id, whose, expected) in [
        (DocumentKind::Tag, tag, owner, false),
        (DocumentKind::Tag, tag, person(), true),
        (DocumentKind::Annotation, tag, owner, true),
        (DocumentKind::Tag, Uuid::now_v7(), owner, false),
    ] {
        let found = bench.catalog.is_id_of_another(kind, id, whose).await;
        assert_eq!(found.unwrap(), expected, "{kind:?} {id} of {whose}");
    }
}
