//! Permits: people read all of their own, and nothing of others unasked.

use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::model::clock::SystemClock;

fn range() -> TimeRange {
    TimeRange::new(Instant::from_micros(0), Instant::from_micros(1_000)).unwrap()
}

fn heart_rate() -> TypeId {
    TypeId(Arc::from("HeartRate"))
}

async fn grants() -> (tempfile::TempDir, Grants) {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite://{}", directory.path().join("catalogue.db").display());
    let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
    (
        directory,
        Grants::new(catalog, Arc::new(Registry::builtin().unwrap())),
    )
}

#[tokio::test]
async fn a_person_reads_the_whole_range_of_their_own() {
    let person = PersonId(Uuid::from_u128(1));
    let reader = Reader::for_tests(person);
    let (_directory, grants) = grants().await;
    let permit = grants
        .windows(&reader, person, &heart_rate(), range())
        .await
        .unwrap();
    assert_eq!(permit.owner(), person);
    assert_eq!(permit.data_type(), &heart_rate());
    assert_eq!(permit.windows().as_slice(), [range()]);
    assert!(reader.disclosures().given().is_empty());
}

#[tokio::test]
async fn another_person_is_refused_for_rows_and_for_listings() {
    let reader = Reader::for_tests(PersonId(Uuid::from_u128(1)));
    let other = PersonId(Uuid::from_u128(2));
    let (_directory, grants) = grants().await;
    assert!(matches!(
        grants.windows(&reader, other, &heart_rate(), range()).await,
        Err(Denied::Refused(_))
    ));
    assert!(matches!(
        grants.readable_types(&reader, other, range()).await,
        Err(Denied::Refused(_))
    ));
}

#[tokio::test]
async fn a_listing_of_ones_own_shows_every_type() {
    let person = PersonId(Uuid::from_u128(1));
    let (_directory, grants) = grants().await;
    let permit = grants
        .readable_types(&Reader::for_tests(person), person, range())
        .await
        .unwrap();
    assert_eq!(permit.windows_of(&heart_rate()), Some(Windows::new([range()])));
}

mod model;
