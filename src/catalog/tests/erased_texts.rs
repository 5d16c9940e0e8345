//! Whoever is erased is found in nothing that others wrote, however they wrote the id, on every database.

use serde_json::json;
use uuid::Uuid;

use super::erasures::{erase, first_commit, keep, traces};
use super::{Bench, person};
use crate::catalog::access_log::LogEntry;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind};
use crate::catalog::erasures::Leftover;
use crate::catalog::records::{Commit, CommitOutcome, Effect, SeenSource, StoredDefinition, UploadReceipt};
use crate::model::ids::{PersonId, UploadId};
use crate::model::time::Instant;

/// Somebody new, whose id has letters, so that it can be written in capitals.
fn lettered() -> PersonId {
    PersonId(Uuid::from_u128(person().0.as_u128() | 0xab))
}

fn spellings(person: PersonId) -> [String; 5] {
    let (hyphenated, simple) = (person.to_string(), person.0.simple().to_string());
    let mut mixed = hyphenated.clone();
    let last = mixed.pop().unwrap();
    mixed.push(last.to_ascii_uppercase());
    [
        hyphenated.to_uppercase(),
        simple.to_uppercase(),
        hyphenated,
        simple,
        mixed,
    ]
}

async fn tag(bench: &Bench, owner: PersonId, name: &str) {
    let document = Document {
        kind: DocumentKind::Tag,
        id: Uuid::now_v7(),
        person: owner,
        name: Some(name.to_owned()),
        body: "{}".to_owned(),
        version: 1,
        created_at: Instant::from_micros(5),
        updated_at: Instant::from_micros(5),
        deleted_at: None,
    };
    let insert = Change::Insert {
        document,
        links: Vec::new(),
        limit: 10,
    };
    let changed = bench.catalog.change_documents(vec![insert]).await;
    assert_eq!(changed.unwrap(), Changed::Done);
}

async fn define(bench: &Bench, owner: PersonId, id: Uuid, body: &serde_json::Value) {
    let definition = StoredDefinition {
        id,
        person: owner,
        base: "Event".to_owned(),
        body: body.to_string(),
        version: 1,
        deprecated: false,
        created_at: Instant::from_micros(5),
        updated_at: Instant::from_micros(5),
    };
    bench.catalog.insert_definition(&definition).await.unwrap();
}

async fn name_source(bench: &Bench, owner: PersonId, key: &str, name: String) {
    let source = SeenSource {
        person: owner,
        key: key.to_owned(),
        name: Some(name),
    };
    let commit = Commit {
        sources: vec![source],
        ..Commit::default()
    };
    let outcome = bench.catalog.commit(commit).await.unwrap();
    assert_eq!(outcome, CommitOutcome::Done);
}

/// Makes somebody name another person wherever they can: in this spelling.
async fn name_everywhere(bench: &Bench, other: PersonId, written: &str) {
    let catalog = &bench.catalog;
    let name = format!("friend of {written}");
    catalog.ensure_person(other, Some(&name)).await.unwrap();
    let preferences = json!({ "note": format!("as {written}") }).to_string();
    let swapped = catalog.swap_preferences(other, None, &preferences).await;
    assert!(swapped.unwrap());
    name_source(bench, other, "watch", format!("watch of {written}")).await;
    let upload = UploadReceipt {
        person: other,
        upload: UploadId(Uuid::now_v7()),
        key: Some((format!("sync-{written}-1"), [7; 32])),
        effect: Effect::default(),
    };
    let commit = Commit {
        uploads: vec![upload],
        ..Commit::default()
    };
    assert_eq!(catalog.commit(commit).await.unwrap(), CommitOutcome::Done);
    let messages = json!({ "name": "messages", "description": format!("messages to {written}") });
    define(bench, other, Uuid::now_v7(), &messages).await;
    tag(bench, other, written).await;
    let body = json!({ "description": format!("talked to {written}"), "with": written });
    keep(bench, other, DocumentKind::Group, body.to_string(), Vec::new()).await;
    let entry = LogEntry {
        person: other,
        id: Uuid::now_v7(),
        at: Instant::from_micros(5),
        actor: other,
        body: json!({ "types": [format!("file:/{written}/")] }).to_string(),
        rows: None,
        outcome: "answered".to_owned(),
    };
    catalog.log_access(vec![entry]).await.unwrap();
}

#[tokio::test]
async fn no_text_of_others_names_who_was_erased_however_it_was_written() {
    for bench in Bench::all().await {
        let catalog = &bench.catalog;
        let gone = lettered();
        catalog.commit(first_commit(gone)).await.unwrap();
        let others = spellings(gone).map(|written| (person(), written));
        for (other, written) in &others {
            name_everywhere(&bench, *other, written).await;
        }
        let named: Vec<String> = traces(&bench, gone)
            .await
            .into_iter()
            .map(|trace| trace.table)
            .collect();
        for table in [
            "people",
            "uploads",
            "sources",
            "definitions",
            "documents",
            "access_log",
        ] {
            assert!(named.iter().any(|name| name == table), "{table}: {named:?}");
        }
        let begun = catalog.begin_erasure(gone).await.unwrap();
        erase(&bench, &begun).await;
        assert_eq!(traces(&bench, gone).await, []);
        for (other, written) in others {
            assert_eq!(
                catalog.damaged_registers(other).await.unwrap(),
                [""; 0],
                "{written}"
            );
            assert_eq!(
                catalog.damaged_documents(other).await.unwrap(),
                [""; 0],
                "{written}"
            );
            let known = catalog.person(other).await.unwrap().unwrap();
            let source = catalog.sources_of(other).await.unwrap().remove(0);
            let definition = catalog.definitions_of(other).await.unwrap().remove(0);
            let group = catalog.documents_of(other, DocumentKind::Group).await.unwrap();
            let tags = catalog.documents_of(other, DocumentKind::Tag).await.unwrap();
            let entry = catalog.accesses(other, None, 5).await.unwrap().entries.remove(0);
            assert_eq!(source.key, "watch");
            assert_eq!((definition.version, group[0].version, tags[0].version), (2, 2, 2));
            assert_eq!(tags[0].name.as_ref().unwrap().len(), written.len());
            let said: serde_json::Value = serde_json::from_str(&group[0].body).unwrap();
            assert_eq!(
                said["with"],
                json!(tags[0].name),
                "one name for who was named {written}"
            );
            for (text, begins) in [
                (known.name.unwrap(), "friend of "),
                (known.preferences.unwrap(), r#"{"note":"as "#),
                (source.name.unwrap(), "watch of "),
                (entry.body, r#"{"types":["file:/"#),
            ] {
                assert!(
                    text.starts_with(begins) && text.len() >= begins.len() + 32,
                    "{text}"
                );
            }
            let key = format!("sync-{written}-1");
            assert_eq!(catalog.upload_for_key(other, &key).await.unwrap(), None);
        }
        assert!(!catalog.erase_mentions(&begun).await.unwrap());
    }
}

#[tokio::test]
async fn what_records_of_others_refer_to_stays_and_is_told_apart() {
    for bench in Bench::all().await {
        let catalog = &bench.catalog;
        let (gone, other) = (lettered(), person());
        catalog.commit(first_commit(gone)).await.unwrap();
        let [capitals, ..] = spellings(gone);
        let key = format!("com.example.{capitals}");
        name_source(&bench, other, &key, format!("watch of {capitals}")).await;
        let property = format!("x{}", gone.0.simple());
        let described = json!({
            "name": format!("of {gone}"),
            "schema": { "properties": { (property.as_str()): { "type": "string" } } },
        });
        // An id that is given by whoever brings it back, and means no person.
        define(&bench, other, gone.0, &described).await;
        let begun = catalog.begin_erasure(gone).await.unwrap();
        erase(&bench, &begun).await;
        let stays = |table: &str| Leftover {
            table: table.to_owned(),
            rows: 1,
            stays: true,
        };
        assert_eq!(
            traces(&bench, gone).await,
            [stays("sources"), stays("definitions")]
        );
        assert!(!catalog.erase_mentions(&begun).await.unwrap(), "once is enough");
        let source = catalog.sources_of(other).await.unwrap().remove(0);
        assert_eq!(source.key, key);
        assert!(!source.name.unwrap().contains(&capitals));
        let definition = catalog.definitions_of(other).await.unwrap().remove(0);
        assert!(definition.body.contains(&property), "{}", definition.body);
        assert!(
            !definition.body.contains(&gone.to_string()),
            "{}",
            definition.body
        );
        assert_eq!(catalog.damaged_registers(other).await.unwrap(), [""; 0]);
    }
}

#[tokio::test]
async fn a_name_that_is_given_again_while_somebody_is_erased_becomes_another_one() {
    for bench in Bench::all().await {
        let catalog = &bench.catalog;
        let (gone, other) = (lettered(), person());
        catalog.commit(first_commit(gone)).await.unwrap();
        let [capitals, _, hyphenated, ..] = spellings(gone);
        tag(&bench, other, &capitals).await;
        tag(&bench, other, &hyphenated).await;
        let begun = catalog.begin_erasure(gone).await.unwrap();
        erase(&bench, &begun).await;
        for tags in [3, 4] {
            tag(&bench, other, &hyphenated).await;
            erase(&bench, &begun).await;
            assert_eq!(traces(&bench, gone).await, []);
            let kept = catalog.documents_of(other, DocumentKind::Tag).await.unwrap();
            let mut names: Vec<_> = kept.into_iter().map(|tag| tag.name.unwrap()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), tags, "{names:?}");
        }
    }
}
