//! What is not answered, and why.

use serde_json::json;

use super::{ask, ask_about, samples};
use crate::harness::{at, id, person};

/// Seconds of an instant on one of the first days of May.
pub(super) fn seconds(moment: &str) -> i64 {
    let part = |from: usize| moment[from..from + 2].parse::<i64>().expect("two digits");
    part(8) * 86_400 + part(11) * 3600 + part(14) * 60 + part(17)
}

#[tokio::test]
async fn a_stage_out_of_the_table_is_refused_when_it_is_recorded() {
    let person = person();
    for value in [json!(6), json!(-1), json!(2.5), json!("deep")] {
        let sample =
            json!({"uuid": id(1), "start_date": at("01:00"), "end_date": at("02:00"), "value": value});
        let faults = person.record("SleepStage", &sample).await.faults();
        assert!(
            faults.iter().any(|place| place.contains("value")),
            "{value}: {faults:?}"
        );
    }
}

#[tokio::test]
async fn parameters_that_mean_nothing_are_422_and_say_what_is_allowed() {
    let person = person();
    for (route, name, value, told) in [
        ("sleep_cycles", "stages", "", "at least one"),
        ("sleep_cycles", "stages", "[]", "at least one"),
        ("sleep_stages", "stages", "6", "5 (rem)"),
        ("sleep_stages", "stages", "deep", "number of a stage"),
        ("sleep_stages", "gap_stages", "-1", "0 (in_bed)"),
        ("sleep_cycles", "cycle_gap", "0s", "longer than zero"),
        ("sleep_cycles", "cycle_gap", "0", "longer than zero"),
        ("sleep_cycles", "cycle_gap", "-2h", ""),
        ("sleep_cycles", "cycle_gap", "P1M", "fixed"),
        ("sleep_cycles", "cycle_gap", "1mo", "fixed"),
        ("sleep_cycles", "cycle_gap", "soon", ""),
        ("sleep_agg", "mode", "middle", "start, end, split"),
        ("sleep_agg", "agg_functions", "median", "sum, avg, min, max"),
        ("sleep_agg", "agg_functions", "", "sum, avg, min, max"),
        ("sleep_agg", "period", "1d12h", "family"),
        ("sleep_agg", "period", "P1M3D", "family"),
        ("sleep_agg", "period", "0d", ""),
        ("sleep_agg", "tz", "Mars/Olympus", "IANA"),
        ("sleep_cycles", "clip_to_range", "perhaps", "true nor false"),
        ("sleep_stages", "merge_overlapping", "2", "true nor false"),
        ("sleep_stages", "output", "xml", "ndjson"),
    ] {
        let reply = ask(&person, route).with(name, value).await;
        assert_eq!(reply.faults(), [format!("query.{name}")], "{reply}");
        assert!(reply.text().contains(told), "{told:?} is not told: {reply}");
    }
}

#[tokio::test]
async fn rule_1_2c_more_periods_than_the_limit() {
    let person = person();
    person
        .records("SleepStage", &samples(&[(3, "01 01:00", "01 09:00")]))
        .await;
    for mode in ["split", "start", "end"] {
        let reply = ask(&person, "sleep_agg")
            .with("mode", mode)
            .with("period", "1us")
            .await;
        assert_eq!(reply.faults(), ["query.period"], "{mode}");
        assert!(
            reply
                .text()
                .contains("86400000000 cells exceed the limit of 50000000"),
            "{reply}"
        );
    }
    let parts = ask(&person, "sleep_agg")
        .with("mode", "split")
        .with("period", "1m")
        .await
        .must_be(200);
    assert_eq!(parts.rows().len(), 480);
}

#[tokio::test]
async fn rule_1_2c_a_sample_that_goes_on_for_years_has_no_more_periods_than_the_limit() {
    let person = person();
    let sample = json!({
        "uuid": id(1), "start_date": "1990-01-01T00:00:00Z", "end_date": "2020-01-01T00:00:00Z", "value": 3,
    });
    person.records("SleepStage", &[sample]).await;
    let minute = ("2010-01-01T00:00:00Z", "2010-01-01T00:01:00Z");
    let reply = ask_about(&person, "sleep_agg", minute)
        .with("mode", "split")
        .with("clip_to_range", "false")
        .with("period", "1s")
        .await;
    assert_eq!(reply.faults(), ["query.period"]);
    assert!(
        reply
            .text()
            .contains("946684800 cells exceed the limit of 50000000"),
        "{reply}"
    );
    let clipped = ask_about(&person, "sleep_agg", minute)
        .with("mode", "split")
        .with("period", "1s")
        .await
        .must_be(200);
    assert_eq!(clipped.rows().len(), 60);
}

#[tokio::test]
async fn every_fault_is_named_at_once() {
    let person = person();
    let reply = person
        .get(&format!("/data/v0/{}/sleep_agg", person.id))
        .with("start_time", "2024-05-01")
        .with("mode", "x")
        .with("period", "y")
        .await;
    let mut faults = reply.faults();
    faults.sort_unstable();
    assert_eq!(
        faults,
        ["query.end_time", "query.mode", "query.output", "query.period"]
    );
}

#[tokio::test]
async fn sleep_that_is_not_shared_is_403_on_every_route() {
    let (owner, reader) = (person(), person());
    owner
        .records("SleepStage", &samples(&[(3, "01 01:00", "01 02:00")]))
        .await;
    let nobody = id(9);
    for route in [
        "sleep_stages",
        "sleep_cycles",
        "sleep_agg",
        "sleep_cycles_extended",
        "sleep_stage_metadata",
    ] {
        for whose in [owner.id, nobody] {
            let reply = reader
                .get(&format!("/data/v0/{whose}/{route}"))
                .with("start_time", "2024-05-01")
                .with("end_time", "2024-05-02")
                .with("output", "jstable")
                .await;
            reply.problem(403);
        }
    }
}
