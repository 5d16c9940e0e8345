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

#[tokio::test]
async fn a_person_who_is_held_is_changed_by_nobody_else() {
    for bench in Bench::all().await {
        let person = person();
        let catalog = &bench.catalog;
        let first = one(change(person, 0, vec![tail(b"first")]));
        assert_eq!(catalog.commit(first).await.unwrap(), CommitOutcome::Done);
        let hold = catalog.hold(person).await.unwrap();
        let held = one(change(person, 1, vec![tail(b"held")]));
        let other = one(change(person, 1, vec![tail(b"other")]));
        let (held, other) = tokio::join!(catalog.commit_held(hold, &held), catalog.commit(other));
        assert!(held.unwrap().is_some());
        assert_eq!(other.unwrap(), CommitOutcome::Stale);
        assert_eq!(bench.partition(person, &heart_rate()).await.version, 2);
    }
}
