//! A catalogue and a store are a pair or they are not served.

use futures::future::BoxFuture;
use object_store::memory::InMemory;

use super::*;
use crate::store::faults::{Fate, Fault, FaultyStore, Operation};
use crate::upkeep::check::catalogue_complaints;
use crate::upkeep::identity::{ApartError, IDENTITY_OBJECT, Pair, compare, read, settle, write};
use crate::upkeep::manifest::write_manifest;
use crate::upkeep::manifest_names::numbers;
use crate::upkeep::rebuild::rebuild;
use crate::upkeep::repair::repair;

async fn settled(bench: &Bench) -> Result<Uuid, ApartError> {
    let UpkeepStores { catalog, ids, .. } = &bench.stores;
    let settled = settle(catalog, bench.stores.objects(), ids.as_ref(), false).await;
    settled.map(|settled| settled.identity)
}

async fn insisted(bench: &Bench) -> Pair {
    let UpkeepStores { catalog, ids, .. } = &bench.stores;
    let settled = settle(catalog, bench.stores.objects(), ids.as_ref(), true).await;
    settled.unwrap()
}

/// The first one's catalogue over the second one's store.
fn crossed(one: &Bench, other: &Bench) -> Bench {
    Bench {
        stores: UpkeepStores {
            files: other.stores.files.clone(),
            ..one.stores.clone()
        },
        finder: Finder::new(other.stores.files.clone(), 1 << 20),
        clock: Arc::clone(&one.clock),
        key: one.key.clone(),
        directory: tempfile::tempdir().unwrap(),
    }
}

#[tokio::test]
async fn a_new_pair_gets_one_identity_and_keeps_it() {
    let bench = Bench::new().await;
    let (one, other) = tokio::join!(settled(&bench), settled(&bench));
    let identity = one.unwrap();
    assert_eq!(other.unwrap(), identity);
    bench.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
    assert_eq!(settled(&bench).await.unwrap(), identity);
    assert_eq!(read(bench.stores.objects()).await.unwrap(), Some(identity));
}

#[tokio::test]
async fn a_new_catalogue_does_not_take_a_store_that_has_one() {
    let (one, other) = (Bench::new().await, Bench::new().await);
    let identity = settled(&one).await.unwrap();
    // Neither has anything yet, and what the first accepts may long be in its tail alone.
    let late = crossed(&other, &one);
    for _ in 0..2 {
        let refused = settled(&late).await.unwrap_err();
        assert!(
            matches!(refused, ApartError::Taken { found } if found == identity),
            "{refused}"
        );
    }
    let compared = compare(&late.stores.catalog, late.stores.objects()).await;
    assert!(matches!(compared, Err(ApartError::Taken { .. })), "{compared:?}");
    assert_eq!(late.stores.catalog.store_identity().await.unwrap(), None);
    assert_eq!(settled(&one).await.unwrap(), identity);
    // If the first is lost, a repair makes the pair anew, and so does an operator who knows.
    let one = one.without_catalogue().await;
    assert_eq!(rebuild(&one.stores).await.unwrap().failed, [""; 0]);
    assert_eq!(settled(&one).await.unwrap(), identity);
    assert_eq!(insisted(&late).await.identity, identity);
}

#[tokio::test]
async fn a_pair_of_which_only_the_catalogue_knows_is_completed() {
    let bench = Bench::new().await;
    let (catalog, identity) = (&bench.stores.catalog, Uuid::now_v7());
    catalog.settle_store_identity(identity).await.unwrap();
    assert_eq!(settled(&bench).await.unwrap(), identity);
    assert_eq!(read(bench.stores.objects()).await.unwrap(), Some(identity));
}

/// The identity that another catalogue gives a store.
const OTHER: Uuid = Uuid::from_u128(1);

/// Has another catalogue give the store its identity just before anybody else writes there.
#[derive(Debug)]
struct OtherIsFirst(Arc<InMemory>);

#[async_trait::async_trait]
impl Fate for OtherIsFirst {
    async fn fault_for(&self, operation: Operation, _path: &str) -> Option<Fault> {
        if operation == Operation::Put {
            let objects = ObjectStorage::over(self.0.clone());
            assert_eq!(write(&objects, OTHER).await.unwrap(), OTHER);
        }
        None
    }

    fn later(&self, _work: BoxFuture<'static, ()>) {}
}

#[tokio::test]
async fn a_store_that_another_catalogue_has_taken_meanwhile_is_not_served() {
    let beneath = Arc::new(InMemory::new());
    let store = FaultyStore::new(beneath.clone(), Arc::new(OtherIsFirst(beneath)));
    let objects = ObjectStorage::over(Arc::new(store));
    let bench = Bench::over(tempfile::tempdir().unwrap(), objects).await;
    let (catalog, identity) = (&bench.stores.catalog, Uuid::now_v7());
    catalog.settle_store_identity(identity).await.unwrap();
    assert_eq!(read(bench.stores.objects()).await.unwrap(), None);
    let refused = settled(&bench).await.unwrap_err();
    let ApartError::Different { expected, found } = refused else {
        panic!("{refused}");
    };
    assert_eq!((expected, found), (identity, OTHER));
}

#[tokio::test]
async fn two_installations_are_told_apart() {
    let (one, other) = (Bench::new().await, Bench::new().await);
    for bench in [&one, &other] {
        settled(bench).await.unwrap();
        bench.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
    }
    let crossed = crossed(&one, &other);
    assert!(matches!(
        settled(&crossed).await,
        Err(ApartError::Different { .. })
    ));
    let expected = read(other.stores.objects()).await.unwrap();
    assert_eq!(Some(insisted(&crossed).await.identity), expected);
    assert_eq!(settled(&crossed).await.ok(), expected);
}

#[tokio::test]
async fn an_empty_catalogue_over_a_store_with_data_is_refused_with_identity_or_without() {
    let bench = Bench::new().await;
    bench.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
    let bench = bench.without_catalogue().await;
    assert!(matches!(settled(&bench).await, Err(ApartError::Empty)));
    write(bench.stores.objects(), Uuid::now_v7()).await.unwrap();
    assert!(matches!(settled(&bench).await, Err(ApartError::Empty)));
    // A person who was made to have a token for does not make it another.
    let catalog = &bench.stores.catalog;
    catalog.ensure_person(bench.key.person, None).await.unwrap();
    assert!(matches!(settled(&bench).await, Err(ApartError::Empty)));
    insisted(&bench).await;
    settled(&bench).await.unwrap();
}

#[tokio::test]
async fn a_catalogue_that_knows_people_is_refused_over_a_store_that_is_empty() {
    let bench = Bench::new().await;
    settled(&bench).await.unwrap();
    bench.put(&many(0, 10, LAST_DAY_OF_2023), false).await;
    let empty = Bench::new().await;
    let crossed = crossed(&bench, &empty);
    assert!(matches!(
        settled(&crossed).await,
        Err(ApartError::Nameless { .. })
    ));
}

#[tokio::test]
async fn an_installation_from_before_is_adopted_if_its_objects_are_there() {
    let bench = Bench::new().await;
    for piece in 0..40 {
        bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
    }
    assert_eq!(read(bench.stores.objects()).await.unwrap(), None);
    let other = Bench::new().await;
    other.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
    let crossed = crossed(&bench, &other);
    assert!(matches!(settled(&crossed).await, Err(ApartError::Foreign)));
    // One that was lost does not make it another store.
    let lost = bench.paths().await.0[0].clone();
    bench.stores.objects().delete(&lost).await.unwrap();
    let identity = settled(&bench).await.unwrap();
    assert_eq!(settled(&bench).await.unwrap(), identity);
}

#[tokio::test]
async fn a_rebuild_that_is_unfinished_and_a_store_that_cannot_be_read_are_refused() {
    let bench = Bench::new().await;
    bench.stores.catalog.begin_rebuild().await.unwrap();
    assert!(matches!(
        settled(&bench).await,
        Err(ApartError::Unfinished { .. })
    ));
    bench.stores.catalog.finish_rebuild().await.unwrap();
    bench
        .stores
        .objects()
        .put(IDENTITY_OBJECT, "{}".into())
        .await
        .unwrap();
    assert!(matches!(
        settled(&bench).await,
        Err(ApartError::Unreadable { .. })
    ));
}

#[tokio::test]
async fn an_operator_who_knows_ends_a_rebuild_that_cannot_be_finished() {
    let bench = Bench::new().await;
    let identity = settled(&bench).await.unwrap();
    bench.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
    let catalog = &bench.stores.catalog;
    catalog.begin_rebuild().await.unwrap();
    assert!(matches!(
        settled(&bench).await,
        Err(ApartError::Unfinished { .. })
    ));
    assert_eq!(catalogue_complaints(catalog).await.unwrap().len(), 1);
    let insisted = insisted(&bench).await;
    assert_eq!((insisted.identity, insisted.given_up.len()), (identity, 1));
    // Once is enough, and a backup is whole again.
    assert_eq!(settled(&bench).await.unwrap(), identity);
    assert_eq!(catalogue_complaints(catalog).await.unwrap(), [""; 0]);
}

/// Content that a damaged identity may have.
const DAMAGED: [&str; 3] = ["", "{\"store\":\"0191", "{\"store\":\"no uuid\"}"];

async fn damage_identity(bench: &Bench, content: &'static str) {
    let objects = bench.stores.objects();
    objects.replace(IDENTITY_OBJECT, content.into()).await.unwrap();
    let refused = settled(bench).await.unwrap_err();
    assert!(matches!(refused, ApartError::Unreadable { .. }), "{refused}");
    let told = refused.to_string();
    assert!(
        told.contains("check --repair") && told.contains("ALMANAC_ADOPT_STORE"),
        "{told}"
    );
}

#[tokio::test]
async fn a_damaged_identity_is_that_of_the_catalogue_again_after_a_repair_or_for_an_operator_who_knows() {
    let bench = Bench::new().await;
    bench.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
    let identity = settled(&bench).await.unwrap();
    for content in DAMAGED {
        damage_identity(&bench, content).await;
        assert_eq!(insisted(&bench).await.identity, identity);
        damage_identity(&bench, content).await;
        assert_eq!(repair(&bench.stores).await.unwrap().len(), 1);
        assert_eq!(settled(&bench).await.unwrap(), identity);
    }
    // Nor does a lost catalogue depend on it.
    bench
        .stores
        .objects()
        .replace(IDENTITY_OBJECT, "".into())
        .await
        .unwrap();
    let bench = bench.without_catalogue().await;
    assert_eq!(rebuild(&bench.stores).await.unwrap().failed, [""; 0]);
    settled(&bench).await.unwrap();
}

#[tokio::test]
async fn a_repair_gives_no_identity_to_the_store_of_another_catalogue() {
    let (one, other) = (Bench::new().await, Bench::new().await);
    for bench in [&one, &other] {
        settled(bench).await.unwrap();
        bench.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
    }
    let crossed = crossed(&one, &other);
    damage_identity(&crossed, "").await;
    assert_eq!(repair(&crossed.stores).await.unwrap(), [""; 0]);
    assert!(matches!(
        settled(&crossed).await,
        Err(ApartError::Unreadable { .. })
    ));
}

#[tokio::test]
async fn a_repair_writes_no_manifest_into_a_store_that_is_another_ones_or_empty() {
    let (one, other, empty) = (Bench::new().await, Bench::new().await, Bench::new().await);
    for bench in [&one, &other] {
        settled(bench).await.unwrap();
        bench.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
        assert!(write_manifest(&bench.stores, bench.key.person).await.unwrap());
    }
    for stranger in [&other, &empty] {
        let crossed = crossed(&one, stranger);
        assert_eq!(repair(&crossed.stores).await.unwrap(), [""; 0]);
        let objects = stranger.stores.objects();
        assert_eq!(numbers(objects, one.key.person).await.unwrap(), [0; 0]);
    }
    assert_eq!(
        numbers(other.stores.objects(), other.key.person).await.unwrap(),
        [1]
    );
    // Its own store has what it had, and the catalogue counts no others.
    assert_eq!(repair(&one.stores).await.unwrap(), [""; 0]);
    assert_eq!(numbers(one.stores.objects(), one.key.person).await.unwrap(), [1]);
}

#[tokio::test]
async fn a_repair_gives_an_identity_to_an_empty_store_only_if_the_catalogue_is_empty_too() {
    let bench = Bench::new().await;
    let identity = settled(&bench).await.unwrap();
    let objects = bench.stores.objects();
    objects.delete(IDENTITY_OBJECT).await.unwrap();
    assert_eq!(repair(&bench.stores).await.unwrap().len(), 1);
    assert_eq!(read(objects).await.unwrap(), Some(identity));
    // What is in the tail is in no object.
    bench.put(&many(0, 10, LAST_DAY_OF_2023), false).await;
    objects.delete(IDENTITY_OBJECT).await.unwrap();
    assert_eq!(repair(&bench.stores).await.unwrap(), [""; 0]);
    assert_eq!(read(objects).await.unwrap(), None);
    let refused = settled(&bench).await.unwrap_err();
    assert!(matches!(refused, ApartError::Nameless { .. }), "{refused}");
    assert!(refused.to_string().contains("check --repair"), "{refused}");
}
