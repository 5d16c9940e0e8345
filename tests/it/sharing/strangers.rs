//! How long a refusal takes says nothing: whose data is not shared cannot be told from who does not exist.

use std::time::{Duration, Instant};

use serde_json::Value;
use uuid::Uuid;

use super::matrix::{Route, Whose, routes};
use super::{share, share_of};
use crate::harness::{Person, heart_rate, id, instant, person};

/// Pairs of requests for each route.
const PAIRS: usize = 40;

async fn time_of(route: &Route, reader: &Person, whose: Uuid, status: u16) -> Duration {
    let begun = Instant::now();
    route.ask(reader, &Whose::Person(whose)).await.must_be(status);
    begun.elapsed()
}

/// How often one of `these` took longer than one of `those`, from 0 to 1: a half if nothing tells them apart.
fn share_of_longer(these: &[Duration], those: &[Duration]) -> f64 {
    let score = |this: &Duration, that: &Duration| match this.cmp(that) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    };
    let sum: f64 = these
        .iter()
        .flat_map(|this| those.iter().map(move |that| score(this, that)))
        .sum();
    sum / (these.len() * those.len()) as f64
}

#[tokio::test]
async fn rule_9_2b_the_time_of_a_refusal_does_not_tell_who_exists() {
    let (owner, stranger, reader) = (person(), person(), person());
    let records: Vec<Value> = (0..8000)
        .map(|n| heart_rate(id(n), &instant(n * 10), 60))
        .collect();
    owner.records("HeartRate", &records).await;
    share(&owner, &share_of(&["HeartRate"], &reader)).await;
    let (mut existing, mut unknown) = (Vec::new(), Vec::new());
    for route in routes().await {
        let (mut of_owner, mut of_nobody) = (Vec::new(), Vec::new());
        for turn in 0..PAIRS {
            let nobody = Uuid::new_v4();
            // Whoever comes second finds warmer caches, so they take turns.
            if turn % 2 == 0 {
                of_owner.push(time_of(&route, &stranger, owner.id, 403).await);
                of_nobody.push(time_of(&route, &stranger, nobody, 403).await);
            } else {
                of_nobody.push(time_of(&route, &stranger, nobody, 403).await);
                of_owner.push(time_of(&route, &stranger, owner.id, 403).await);
            }
        }
        existing.push(of_owner);
        unknown.push(of_nobody);
    }
    // With forty of each a share wanders by 0.065 on a route; the mean of twenty routes by less than 0.015.
    let shares: Vec<f64> = existing
        .iter()
        .zip(&unknown)
        .map(|(these, those)| share_of_longer(these, those))
        .collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((0.42..0.58).contains(&mean), "{mean}: {shares:?}");
    for share in &shares {
        assert!((0.1..0.9).contains(share), "{shares:?}");
    }

    // The same measure sees the difference where there is one.
    let routes = routes().await;
    let samples = routes
        .iter()
        .find(|route| route.path.ends_with("/metric_samples"))
        .unwrap();
    let (mut answered, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        answered.push(time_of(samples, &reader, owner.id, 200).await);
        refused.push(time_of(samples, &stranger, owner.id, 403).await);
    }
    let seen = share_of_longer(&answered, &refused);
    assert!(seen > 0.7, "{seen}");
}
