//! Clipping, and nights that a device forgot to end.

use serde_json::{Value, json};

use super::{DEEP, IN_BED, LIGHT, Span, ask_about, hypnogram, may, rows, slept};
use crate::harness::{id, person};

/// A night over midnight and the next one.
const TWO_NIGHTS: &[Span] = &[
    (LIGHT, "01 22:00", "02 02:00"),
    (DEEP, "02 02:00", "02 06:00"),
    (LIGHT, "02 23:00", "03 05:00"),
];

#[tokio::test]
async fn rule_3_2_clipping_cuts_a_night_and_not_clipping_keeps_it_whole() {
    let person = person();
    slept(&person, TWO_NIGHTS).await;
    let after_midnight = ("2024-05-02T00:00:00Z", "2024-05-02T04:00:00Z");
    for clip in [None, Some("true")] {
        let call = ask_about(&person, "sleep_stages", after_midnight);
        let call = clip
            .into_iter()
            .fold(call, |call, value| call.with("clip_to_range", value));
        assert_eq!(
            hypnogram(&call.await.must_be(200).rows()),
            rows(&[
                (0, (LIGHT, "02 00:00", "02 02:00")),
                (0, (DEEP, "02 02:00", "02 04:00"))
            ])
        );
    }
    let whole = ask_about(&person, "sleep_stages", after_midnight).with("clip_to_range", "false");
    assert_eq!(
        hypnogram(&whole.await.must_be(200).rows()),
        rows(&[
            (0, (LIGHT, "01 22:00", "02 02:00")),
            (0, (DEEP, "02 02:00", "02 06:00"))
        ])
    );
    let second = ask_about(
        &person,
        "sleep_cycles",
        ("2024-05-03T00:00:00Z", "2024-05-04T00:00:00Z"),
    )
    .with("clip_to_range", "false");
    let second = second.await.must_be(200).rows();
    assert_eq!(second.len(), 1, "the night that ended before is not told of");
    assert_eq!(
        (
            &second[0]["number"],
            &second[0]["start_time"],
            &second[0]["end_time"]
        ),
        (&json!(0), &json!(may("02 23:00")), &json!(may("03 05:00")))
    );
}

#[tokio::test]
async fn an_empty_range_has_no_rows_whether_clipped_or_not() {
    let person = person();
    slept(&person, TWO_NIGHTS).await;
    for route in ["sleep_stages", "sleep_cycles", "sleep_agg"] {
        for clip in ["true", "false"] {
            let reply = ask_about(&person, route, ("2024-05-02T01:00:00Z", "2024-05-02T01:00:00Z"))
                .with("clip_to_range", clip)
                .await
                .must_be(200);
            assert_eq!(reply.json(), json!([]), "{route} {clip}");
        }
    }
}

#[tokio::test]
async fn a_range_inside_of_one_sample_is_filled_by_it() {
    let person = person();
    slept(&person, &[(LIGHT, "01 00:00", "01 08:00")]).await;
    let rows_found = ask_about(
        &person,
        "sleep_stages",
        ("2024-05-01T02:00:00Z", "2024-05-01T03:00:00Z"),
    )
    .await
    .must_be(200)
    .rows();
    assert_eq!(
        hypnogram(&rows_found),
        rows(&[(0, (LIGHT, "01 02:00", "01 03:00"))])
    );
}

#[tokio::test]
async fn a_month_in_bed_hides_no_night_and_slows_nothing() {
    let person = person();
    let mut samples = vec![json!({
        "uuid": id(0), "start_date": "2024-05-01T00:00:00Z", "end_date": "2024-05-31T00:00:00Z",
        "value": IN_BED,
    })];
    for day in 1..=30_u32 {
        for minute in 0..60 {
            let (hour, minute) = (minute / 10 + 1, minute % 10 * 6);
            let number = samples.len() as u32;
            samples.push(json!({
                "uuid": id(number), "value": 3 + i64::from(number % 3),
                "start_date": format!("2024-05-{day:02}T{hour:02}:{minute:02}:00Z"),
                "end_date": format!("2024-05-{day:02}T{hour:02}:{:02}:00Z", minute + 5),
            }));
        }
    }
    person.records("SleepStage", &samples).await;
    let may_2024 = ("2024-05-01T00:00:00Z", "2024-06-01T00:00:00Z");
    let one = ask_about(&person, "sleep_cycles", may_2024)
        .await
        .must_be(200)
        .rows();
    assert_eq!(one.len(), 1, "being in bed links the nights");
    assert_eq!(one[0]["sleep_stage_intervals"].as_array().unwrap().len(), 30 * 60);
    let nights = ask_about(&person, "sleep_cycles", may_2024)
        .with("gap_stages", "0")
        .await
        .must_be(200)
        .rows();
    assert_eq!(nights.len(), 30);
    let month = 30 * 86_400_000_i64;
    for night in &nights {
        assert_eq!(night["total_time_in_bed_ms"], json!(month));
        assert_eq!(night["total_time_asleep_ms"], json!(300 * 60_000));
    }
    let asleep: Vec<&Value> = nights.iter().map(|night| &night["number"]).collect();
    assert_eq!(
        asleep,
        (0..30)
            .map(|number| json!(number))
            .collect::<Vec<_>>()
            .iter()
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn two_days_in_bed_are_one_block_around_the_nights_in_them() {
    let person = person();
    slept(
        &person,
        &[
            (IN_BED, "01 00:00", "03 00:00"),
            (LIGHT, "01 01:00", "01 07:00"),
            (DEEP, "02 01:00", "02 07:00"),
        ],
    )
    .await;
    let range = ("2024-05-01T00:00:00Z", "2024-05-04T00:00:00Z");
    let cycles = ask_about(&person, "sleep_cycles", range)
        .with("gap_stages", "[0]")
        .await
        .must_be(200)
        .rows();
    let found: Vec<(&Value, &Value, &Value)> = cycles
        .iter()
        .map(|cycle| {
            (
                &cycle["start_time"],
                &cycle["in_bed_start_time"],
                &cycle["in_bed_end_time"],
            )
        })
        .collect();
    let (start, end) = (json!(may("01 00:00")), json!(may("03 00:00")));
    assert_eq!(
        found,
        [
            (&json!(may("01 01:00")), &start, &end),
            (&json!(may("02 01:00")), &start, &end)
        ]
    );
}

#[tokio::test]
async fn a_sample_replaced_or_deleted_is_out_of_the_night() {
    let person = person();
    slept(
        &person,
        &[(LIGHT, "01 01:00", "01 02:00"), (DEEP, "01 02:00", "01 03:00")],
    )
    .await;
    person.delete("SleepStage", id(1)).await;
    let changed =
        json!({"uuid": id(0), "start_date": may("01 01:00"), "end_date": may("01 01:30"), "value": LIGHT});
    person.records("SleepStage", &[changed]).await;
    let found = ask_about(&person, "sleep_stages", super::FIRST_OF_MAY)
        .await
        .must_be(200)
        .rows();
    assert_eq!(hypnogram(&found), rows(&[(0, (LIGHT, "01 01:00", "01 01:30"))]));
}
