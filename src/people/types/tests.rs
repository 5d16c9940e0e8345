//! Own types by their names, however these are written.

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::model::clock::SystemClock;
use crate::model::ids::SystemIds;

const PERSON: PersonId = PersonId(Uuid::from_u128(1));
const COMPOSED: &str = "caf\u{e9}";
const DECOMPOSED: &str = "cafe\u{301}";

async fn types() -> (TempDir, Types) {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite://{}", directory.path().join("catalogue.db").display());
    let clock = Arc::new(SystemClock);
    let catalog = Catalog::open(&address, clock.clone()).await.unwrap();
    catalog.ensure_person(PERSON, None).await.unwrap();
    let registry = Arc::new(Registry::builtin().unwrap());
    let types = Types::new(registry, catalog, clock, Arc::new(SystemIds::default()), 10);
    (directory, types)
}

async fn is_found_by_both_spellings(types: &Types, own: &TypeId) {
    for name in [COMPOSED, DECOMPOSED] {
        assert_eq!(types.meant(PERSON, name).await.unwrap(), own.as_str(), "{name:?}");
        let meant = types.all_meant(PERSON, &[name.to_owned()]).await.unwrap();
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
