//! Own types by their names, however these are written.

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::catalog::test_databases::address_in;
use crate::model::clock::SystemClock;
use crate::model::ids::SystemIds;
use crate::people::condition::Condition;
use crate::people::documents::BroughtBack;

const PERSON: PersonId = PersonId(Uuid::from_u128(1));
const COMPOSED: &str = "caf\u{e9}";
const DECOMPOSED: &str = "cafe\u{301}";

async fn types() -> (TempDir, Types) {
    let directory = tempfile::tempdir().unwrap();
    let address = address_in(directory.path());
    let clock = Arc::new(SystemClock);
    let catalog = Catalog::open(&address, clock.clone()).await.unwrap();
    catalog.ensure_person(PERSON, None).await.unwrap();
    let registry = Arc::new(Registry::builtin().unwrap());
    let types = Types::new(registry, catalog, clock, Arc::new(SystemIds::default()), 10);
    (directory, types)
}

async fn is_found_by_both_spellings(types: &Types, own: &TypeId) {
    for name in [COMPOSED, DECOMPOSED] {
        assert_eq!(
            types.resolve_name(PERSON, name).await.unwrap(),
            own.as_str(),
            "{name:?}"
        );
        let meant = types.resolve_names(PERSON, &[name.to_owned()]).await.unwrap();
        assert_eq!(meant, [own.to_string()], "{name:?}");
    }
}

#[tokio::test]
async fn a_name_is_kept_composed_and_found_in_either_spelling() {
    let (_directory, types) = types().await;
    let body = json!({"name": DECOMPOSED});
    let own = types.create(PERSON, Base::Event, &body).await.unwrap().data_type;
    assert_eq!(own.name, COMPOSED);
    is_found_by_both_spellings(&types, &own.id).await;
}

#[tokio::test]
async fn a_name_that_was_stored_as_it_was_sent_is_found_too() {
    let (_directory, types) = types().await;
    let body = json!({"name": "tea"});
    let own = types.create(PERSON, Base::Event, &body).await.unwrap();
    let older = StoredDefinition {
        id: Uuid::from_u128(2),
        body: own.definition.body.replace("tea", DECOMPOSED),
        ..own.definition
    };
    assert_eq!(types.bring_back(older.clone()).await.unwrap(), BroughtBack::New);
    let own = types.own(PERSON, older.id).await.unwrap().unwrap().data_type;
    assert_eq!(own.name, DECOMPOSED);
    is_found_by_both_spellings(&types, &own.id).await;
}

#[tokio::test]
async fn all_own_types_are_read_again_only_where_one_of_them_changed() {
    let (_directory, types) = types().await;
    let all = async || types.all_own(PERSON).await.unwrap();
    assert_eq!(all().await.iter().count(), 0);
    types
        .create(PERSON, Base::Event, &json!({"name": "tea"}))
        .await
        .unwrap();
    let read = all().await;
    assert_eq!(read.iter().count(), 1);
    assert!(Arc::ptr_eq(&read, &all().await));
    // Something else of theirs changes.
    assert!(types.catalog.swap_preferences(PERSON, None, "{}").await.unwrap());
    assert!(Arc::ptr_eq(&read, &all().await));
    types
        .create(PERSON, Base::Event, &json!({"name": "mate"}))
        .await
        .unwrap();
    assert_eq!(all().await.iter().count(), 2);
}

#[tokio::test]
async fn changes_that_leave_their_digest_as_it_was_are_seen() {
    let (_directory, types) = types().await;
    let body = json!({"name": "tea"});
    let tea = types.create(PERSON, Base::Event, &body).await.unwrap().definition;
    let mat = StoredDefinition {
        id: Uuid::from_u128(2),
        body: tea.body.replace("tea", "mat"),
        ..tea.clone()
    };
    assert_eq!(types.bring_back(mat.clone()).await.unwrap(), BroughtBack::New);
    assert_eq!(types.all_own(PERSON).await.unwrap().live().count(), 2);
    // Another node archives both at one moment: of both rows the same bits change.
    for stored in [tea, mat] {
        let archived = StoredDefinition {
            version: 2,
            deprecated: true,
            ..stored
        };
        assert!(types.catalog.update_definition(&archived, 1).await.unwrap());
    }
    assert_eq!(types.all_own(PERSON).await.unwrap().live().count(), 0);
    assert_eq!(types.resolve_name(PERSON, "tea").await.unwrap(), "tea");
}

#[tokio::test]
async fn a_type_is_kept_once_however_often_it_changes_and_weighs_what_was_made_of_it() {
    let (_directory, types) = types().await;
    let body = json!({"name": "tea"});
    let own = types.create(PERSON, Base::Event, &body).await.unwrap();
    let id = own.definition.id;
    let made = types.own(PERSON, id).await.unwrap().unwrap().data_type;
    assert!(Arc::ptr_eq(&made, &own.data_type), "it is kept");
    for number in 0..20 {
        let body = json!({"name": format!("tea {number}")});
        types
            .change(PERSON, Base::Event, id, &body, &Condition::NONE)
            .await
            .unwrap();
    }
    assert_eq!(types.made.len(), 1);
    assert!(types.made.weight() >= made.memory() as u64);
    let now = types.own(PERSON, id).await.unwrap().unwrap().data_type;
    assert_eq!(now.name, "tea 19");
}

#[tokio::test]
async fn what_is_kept_of_own_types_stays_within_its_limit() {
    let (_directory, types) = types().await;
    let types = types.keeping(30_000, 30_000);
    let mut memory = 0;
    for number in 0..10 {
        let body = json!({"name": format!("tea {number}")});
        let own = types.create(PERSON, Base::Event, &body).await.unwrap();
        memory += own.data_type.memory() as u64;
        assert_eq!(types.all_own(PERSON).await.unwrap().iter().count(), number + 1);
        assert!(types.made.weight() <= 30_000);
        assert!(types.lists.weight() <= 30_000);
    }
    assert!(memory > 30_000, "{memory}");
    let types = types.keeping(1 << 20, 1 << 20);
    let all = types.all_own(PERSON).await.unwrap();
    assert!(types.lists.weight() >= memory);
    assert!(Arc::ptr_eq(&all, &types.all_own(PERSON).await.unwrap()));
}
