//! One node at a time.

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::upkeep::lease::Leases;

#[tokio::test]
async fn a_job_runs_on_one_node_at_a_time() {
    let bench = Bench::new().await;
    let node = |name: &str| Leases::new(bench.stores.catalog.clone(), name.to_owned());
    let (first, second, stop) = (node("first"), node("second"), CancellationToken::new());
    let (begun, has_begun) = oneshot::channel();
    let (finish, may_finish) = oneshot::channel();
    let work = async {
        begun.send(()).unwrap();
        may_finish.await.unwrap();
        Ok(1)
    };
    let other = async {
        has_begun.await.unwrap();
        assert_eq!(second.alone("flush", &stop, async { Ok(2) }).await.unwrap(), None);
        assert_eq!(
            second.alone("compact", &stop, async { Ok(3) }).await.unwrap(),
            Some(3)
        );
        finish.send(()).unwrap();
    };
    let (done, ()) = tokio::join!(first.alone("flush", &stop, work), other);
    assert_eq!(done.unwrap(), Some(1));
    assert_eq!(
        second.alone("flush", &stop, async { Ok(4) }).await.unwrap(),
        Some(4)
    );
}

#[tokio::test]
async fn work_that_is_stopped_gives_its_lease_back() {
    let bench = Bench::new().await;
    let node = |name: &str| Leases::new(bench.stores.catalog.clone(), name.to_owned());
    let stop = CancellationToken::new();
    let endless = async {
        stop.cancel();
        std::future::pending::<Result<(), crate::store::StoreError>>().await
    };
    assert_eq!(node("first").alone("flush", &stop, endless).await.unwrap(), None);
    assert_eq!(
        node("second")
            .alone("flush", &CancellationToken::new(), async { Ok(1) })
            .await
            .unwrap(),
        Some(1)
    );
}

#[tokio::test]
async fn the_lease_of_a_node_that_died_ends_by_itself() {
    let bench = Bench::new().await;
    assert!(
        bench
            .stores
            .catalog
            .acquire_lease("flush", "dead", Duration::from_secs(30))
            .await
            .unwrap()
    );
    let leases = Leases::new(bench.stores.catalog.clone(), "alive".to_owned());
    let stop = CancellationToken::new();
    assert_eq!(leases.alone("flush", &stop, async { Ok(1) }).await.unwrap(), None);
    bench.pass(Duration::from_secs(31));
    assert_eq!(
        leases.alone("flush", &stop, async { Ok(1) }).await.unwrap(),
        Some(1)
    );
}
