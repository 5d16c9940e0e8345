//! What a transaction leaves behind, by which its end can be found out.

use super::*;
use crate::catalog::witness::{ask, testify};

#[tokio::test]
async fn whoever_asks_first_makes_sure_that_it_never_happens() {
    for bench in Bench::all().await {
        let witness = Uuid::new_v4();
        for _ in 0..2 {
            assert!(!ask(&bench.catalog.database, witness).await.unwrap());
        }
        let mut session = bench.catalog.database.write().await.unwrap();
        assert!(testify(&mut session, witness, true).await.is_err());
    }
}

#[tokio::test]
async fn whoever_asks_waits_for_what_is_on_its_way() {
    for bench in Bench::all().await {
        let witness = Uuid::new_v4();
        let mut session = bench.catalog.database.write().await.unwrap();
        testify(&mut session, witness, true).await.unwrap();
        let (happened, committed) = tokio::join!(ask(&bench.catalog.database, witness), async {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            session.commit().await
        });
        committed.unwrap();
        assert!(happened.unwrap());
    }
}

#[tokio::test]
async fn witnesses_that_nobody_can_ask_for_are_forgotten() {
    let bench = Bench::sqlite().await;
    for _ in 0..300 {
        let session = bench.catalog.database.write().await.unwrap();
        bench.catalog.conclude(session).await.unwrap();
    }
    let count = "SELECT COUNT(*) FROM commits".to_owned();
    let rows = bench.catalog.database.fetch(count, Vec::new()).await.unwrap();
    assert!(rows[0].int(0).unwrap() <= 128);
}

async fn witnesses(catalog: &Catalog) -> i64 {
    let count = "SELECT COUNT(*) FROM commits".to_owned();
    let rows = catalog.database.fetch(count, Vec::new()).await.unwrap();
    rows[0].int(0).unwrap()
}

#[tokio::test]
async fn a_process_that_ends_in_order_leaves_no_witness() {
    let bench = Bench::sqlite().await;
    let ends = Catalog::open(&bench.address, bench.clock.clone()).await.unwrap();
    for _ in 0..100 {
        let session = ends.database.write().await.unwrap();
        ends.conclude(session).await.unwrap();
    }
    assert!(witnesses(&bench.catalog).await > 0);
    ends.close().await;
    assert_eq!(witnesses(&bench.catalog).await, 0);
}

#[tokio::test]
async fn witnesses_of_a_process_that_was_killed_are_removed_once_they_were_seen_for_long_enough() {
    let bench = Bench::sqlite().await;
    let (day, at_once) = (std::time::Duration::from_hours(24), std::time::Duration::ZERO);
    let conclude = async || {
        let killed = Catalog::open(&bench.address, bench.clock.clone()).await.unwrap();
        let session = killed.database.write().await.unwrap();
        killed.conclude(session).await.unwrap();
    };
    assert!(!ask(&bench.catalog.database, Uuid::new_v4()).await.unwrap());
    conclude().await;
    for age in [at_once, day, day] {
        bench.catalog.forget_left_behind(age).await.unwrap();
        assert_eq!(witnesses(&bench.catalog).await, 2, "they were seen just now");
    }
    conclude().await;
    bench.catalog.forget_left_behind(at_once).await.unwrap();
    assert_eq!(
        witnesses(&bench.catalog).await,
        2,
        "one that was not seen, and one that forbids"
    );
    bench.catalog.forget_left_behind(at_once).await.unwrap();
    assert_eq!(
        witnesses(&bench.catalog).await,
        1,
        "what must never happen never will"
    );
}

#[tokio::test]
async fn a_person_who_is_held_is_changed_by_nobody_else() {
    for bench in Bench::all().await {
        let person = person();
        let catalog = &bench.catalog;
        let first = one(change(person, NOTHING, vec![tail(b"first")]));
        assert_eq!(catalog.commit(first).await.unwrap(), CommitOutcome::Done);
        let before = bench.stamp(person).await;
        let hold = catalog.hold(person).await.unwrap();
        let held = one(change(person, before, vec![tail(b"held")]));
        let other = one(change(person, before, vec![tail(b"other")]));
        let (held, other) = tokio::join!(catalog.commit_held(hold, &held), catalog.commit(other));
        assert!(held.unwrap().is_some());
        assert_eq!(other.unwrap(), CommitOutcome::Stale);
        assert_eq!(bench.partition(person, &heart_rate()).await.stamp.version, 2);
    }
}
