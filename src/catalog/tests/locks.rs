//! What somebody who stalls in a transaction keeps others from. On a server only: SQLite's writers wait for
//! each other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::access_log::LogEntry;
use super::super::database::Patience;
use super::super::ledgers::create_people;
use super::super::rows::id;
use super::*;

/// Less than anybody waits for a lock.
const SOON: Duration = Duration::from_secs(5);

/// A catalogue on a server, if one is at hand.
async fn on_a_server() -> Option<Bench> {
    let mut benches = Bench::all().await.into_iter();
    benches.find(|bench| bench.address.starts_with("postgres"))
}

#[tokio::test]
async fn who_changes_a_person_keeps_nobody_from_what_is_about_them() {
    let Some(bench) = on_a_server().await else { return };
    let (catalog, owner) = (&bench.catalog, person());
    catalog.ensure_person(owner, None).await.unwrap();
    let mut stalled = catalog.database.write().await.unwrap();
    let locked = format!("SELECT person FROM people WHERE person = $1{}", stalled.locking());
    stalled.fetch(locked, vec![id(owner.0)]).await.unwrap();
    let entry = LogEntry {
        person: owner,
        id: Uuid::now_v7(),
        at: Clock::now(&*bench.clock),
        actor: person(),
        body: "{}".to_owned(),
        rows: None,
        outcome: "begun".to_owned(),
    };
    let logged = tokio::time::timeout(SOON, catalog.log_access(vec![entry])).await;
    logged.unwrap().unwrap();
    stalled.rollback().await.unwrap();
}

#[tokio::test]
async fn a_commit_for_several_does_not_wait_for_who_creates_somebody() {
    let Some(bench) = on_a_server().await else { return };
    let (catalog, now) = (&bench.catalog, Clock::now(&*bench.clock));
    let mut stalled = catalog.database.write().await.unwrap();
    let created = create_people(&mut stalled, &[person()], None, now, Patience::Waits).await;
    assert_eq!(created.unwrap(), 1);
    let commit = one(change(person(), NOTHING, vec![tail(b"of somebody new")]));
    let together = tokio::time::timeout(SOON, catalog.commit_together(&commit)).await;
    let refused = together.unwrap().unwrap_err();
    assert!(matches!(refused, CatalogError::Contended { .. }), "{refused}");
    stalled.rollback().await.unwrap();
}

#[tokio::test]
async fn who_waits_for_one_person_takes_up_one_connection() {
    let Some(bench) = on_a_server().await else { return };
    let owner = person();
    bench.catalog.ensure_person(owner, None).await.unwrap();
    let stalled = bench.catalog.change_of(&BTreeSet::from([owner])).await.unwrap();
    let node = Catalog::open_with(&bench.address, bench.clock.clone(), 3)
        .await
        .unwrap();
    let changes = (0..8).map(|_| node.swap_preferences(owner, None, "{}"));
    let others = async {
        // Until all of them wait.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let read = tokio::time::timeout(SOON, node.person_exists(owner)).await;
        stalled.rollback().await.unwrap();
        read
    };
    let (changed, read) = tokio::join!(futures::future::join_all(changes), others);
    assert!(read.unwrap().unwrap());
    let changed: Vec<bool> = changed.into_iter().map(Result::unwrap).collect();
    assert_eq!(
        changed.iter().filter(|changed| **changed).count(),
        1,
        "{changed:?}"
    );
    node.close().await;
}
