//! Several sources, and samples that come late, change or go.

use serde_json::{Value, json};

use super::{assert_close, column, rows, sample, series};
use crate::harness::{Person, Setup, at, id, instant, person};

async fn steps(person: &Person) -> Vec<Option<f64>> {
    let call = series(person, "StepCount", &at("10:00"), &at("10:20")).with("samprate", "300");
    column(&rows(call).await, "step_count")
}

#[tokio::test]
async fn rule_1_4e_the_persons_own_order_comes_before_the_class_of_a_source() {
    let person = person();
    let watch = sample(id(1), 0, &at("10:00"), &at("10:10"), 100.0);
    let phone = sample(id(2), 1, &at("10:05"), &at("10:15"), 200.0);
    person.records("StepCount", &[watch, phone]).await;
    assert_eq!(steps(&person).await, [Some(50.0), Some(50.0), Some(100.0), None]);
    let call = || series(&person, "StepCount", &at("10:00"), &at("10:20")).with("output", "csv");
    let tag = call().await.must_be(200).header("etag").unwrap().to_owned();

    let sources = person.sources().await;
    let phone = sources
        .iter()
        .find(|source| source.to_string().contains("iPhone"))
        .unwrap();
    let order = json!({"source_order": {"StepCount": [phone["id"]]}});
    person
        .post("/user/v1alpha1/preferences", &order)
        .await
        .must_be(200);
    assert_eq!(steps(&person).await, [Some(50.0), Some(100.0), Some(100.0), None]);
    call().header("if-none-match", &tag).await.must_be(200);
}

#[tokio::test]
async fn rule_1_4a_m09_what_was_typed_in_wins_its_minutes() {
    let person = person();
    let mut typed = sample(id(3), 2, &at("10:10"), &at("10:15"), 105.0);
    typed["extras"] = json!({"was_user_entered": true});
    let others = [
        sample(id(1), 0, &at("10:00"), &at("10:30"), 600.0),
        sample(id(2), 1, &at("10:00"), &at("10:30"), 900.0),
        typed,
    ];
    person.records("StepCount", &others).await;
    let call = series(&person, "StepCount", &at("10:00"), &at("10:30")).with("samprate", "300");
    let found = column(&rows(call).await, "step_count");
    assert_close(&found, &[100.0, 100.0, 105.0, 100.0, 100.0, 100.0].map(Some));
}

/// The law: the same samples give the same series, however they came, and however they are stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_changed_and_deleted_samples_leave_no_trace() {
    let server = Setup::default().start();
    let (orderly, messy) = (server.person(), server.person());
    // Two sources whose samples overlap, over eleven hours.
    let samples: Vec<Value> = (0..400)
        .map(|n| {
            let start = n * 97 % 40_000;
            sample(
                id(n),
                u64::from(n % 2),
                &instant(start),
                &instant(start + 60 + n % 7 * 100),
                f64::from(n % 50),
            )
        })
        .collect();
    orderly.records("StepCount", &samples).await;
    // Some come first with other values, some are not there in the end, and the rest comes late.
    let wrong: Vec<Value> = (0..600)
        .step_by(3)
        .map(|n| sample(id(n), 1, &instant(n * 31), &instant(n * 31 + 500), 9.0))
        .collect();
    messy.records("StepCount", &wrong).await;
    for half in samples.chunks(150).rev() {
        messy.records("StepCount", half).await;
        server.restart();
    }
    for n in (0..600).step_by(3).filter(|n| *n >= 400) {
        messy.delete("StepCount", id(n)).await;
    }
    messy.records("StepCount", &samples[..20]).await;
    for (rate, zone) in [
        ("60", "UTC"),
        ("0.7", "UTC"),
        ("1h", "America/New_York"),
        ("1d", "Asia/Kolkata"),
    ] {
        let end = instant(if rate == "0.7" { 2000 } else { 50_000 });
        let ask = |person: &Person| {
            series(person, "StepCount", &instant(0), &end)
                .with("samprate", rate)
                .with("tz", zone)
        };
        let (one, other) = (rows(ask(&orderly)).await, rows(ask(&messy)).await);
        assert_close(&column(&one, "step_count"), &column(&other, "step_count"));
        assert!(column(&one, "step_count").iter().flatten().sum::<f64>() > 0.0);
    }
}
