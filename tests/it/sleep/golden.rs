//! Worked cases of one night.

use serde_json::{Value, json};

use super::{
    AWAKE, DEEP, FIRST_OF_MAY, IN_BED, LIGHT, REM, Span, UNKNOWN, ask, ask_about, hypnogram, may, rows, slept,
};
use crate::harness::person;

struct Case {
    name: &'static str,
    samples: &'static [Span],
    /// Parameters beside the range.
    with: &'static [(&'static str, &'static str)],
    range: (&'static str, &'static str),
    expected: &'static [(i64, Span)],
}

const fn case(name: &'static str, samples: &'static [Span], expected: &'static [(i64, Span)]) -> Case {
    Case {
        name,
        samples,
        with: &[],
        range: FIRST_OF_MAY,
        expected,
    }
}

/// Asleep, two and a half hours or half an hour awake, asleep.
const LONG_AWAKE: &[Span] = &[
    (LIGHT, "01 00:00", "01 02:00"),
    (AWAKE, "01 02:00", "01 04:30"),
    (DEEP, "01 04:30", "01 06:00"),
];
const SHORT_AWAKE: &[Span] = &[
    (LIGHT, "01 00:00", "01 02:00"),
    (AWAKE, "01 02:00", "01 02:30"),
    (DEEP, "01 02:30", "01 06:00"),
];

const CASES: &[Case] = &[
    case(
        "S01 being in bed fills what is left before and after",
        &[
            (IN_BED, "01 00:00", "01 08:00"),
            (LIGHT, "01 01:00", "01 02:00"),
            (DEEP, "01 02:00", "01 03:00"),
        ],
        &[
            (0, (IN_BED, "01 00:00", "01 01:00")),
            (0, (LIGHT, "01 01:00", "01 02:00")),
            (0, (DEEP, "01 02:00", "01 03:00")),
            (0, (IN_BED, "01 03:00", "01 08:00")),
        ],
    ),
    case(
        "S02 an unknown stage yields to a known one and beats being in bed",
        &[
            (IN_BED, "01 00:00", "01 04:00"),
            (UNKNOWN, "01 01:00", "01 03:00"),
            (DEEP, "01 01:30", "01 02:00"),
        ],
        &[
            (0, (IN_BED, "01 00:00", "01 01:00")),
            (0, (UNKNOWN, "01 01:00", "01 01:30")),
            (0, (DEEP, "01 01:30", "01 02:00")),
            (0, (UNKNOWN, "01 02:00", "01 03:00")),
            (0, (IN_BED, "01 03:00", "01 04:00")),
        ],
    ),
    case(
        "S03 the later start wins",
        &[(LIGHT, "01 01:00", "01 03:00"), (DEEP, "01 02:00", "01 04:00")],
        &[
            (0, (LIGHT, "01 01:00", "01 02:00")),
            (0, (DEEP, "01 02:00", "01 04:00")),
        ],
    ),
    case(
        "S04 the outer sample goes on behind the nested one",
        &[(LIGHT, "01 01:00", "01 05:00"), (REM, "01 02:00", "01 03:00")],
        &[
            (0, (LIGHT, "01 01:00", "01 02:00")),
            (0, (REM, "01 02:00", "01 03:00")),
            (0, (LIGHT, "01 03:00", "01 05:00")),
        ],
    ),
    case(
        "S05 of two that start together the shorter wins",
        &[(LIGHT, "01 01:00", "01 03:00"), (REM, "01 01:00", "01 02:00")],
        &[
            (0, (REM, "01 01:00", "01 02:00")),
            (0, (LIGHT, "01 02:00", "01 03:00")),
        ],
    ),
    case(
        "S06 of two equal spans the greater stage wins",
        &[(LIGHT, "01 01:00", "01 02:00"), (DEEP, "01 01:00", "01 02:00")],
        &[(0, (DEEP, "01 01:00", "01 02:00"))],
    ),
    case(
        "S07 three nested and an unknown stage behind them",
        &[
            (LIGHT, "01 01:00", "01 04:00"),
            (DEEP, "01 02:00", "01 03:30"),
            (REM, "01 02:30", "01 03:00"),
            (UNKNOWN, "01 02:45", "01 05:00"),
        ],
        &[
            (0, (LIGHT, "01 01:00", "01 02:00")),
            (0, (DEEP, "01 02:00", "01 02:30")),
            (0, (REM, "01 02:30", "01 03:00")),
            (0, (DEEP, "01 03:00", "01 03:30")),
            (0, (LIGHT, "01 03:30", "01 04:00")),
            (0, (UNKNOWN, "01 04:00", "01 05:00")),
        ],
    ),
    case(
        "S08 touching samples of one stage are one row",
        &[
            (LIGHT, "01 01:00", "01 02:00"),
            (LIGHT, "01 02:00", "01 03:00"),
            (DEEP, "01 03:00", "01 03:30"),
        ],
        &[
            (0, (LIGHT, "01 01:00", "01 03:00")),
            (0, (DEEP, "01 03:00", "01 03:30")),
        ],
    ),
    Case {
        with: &[("merge_contiguous", "false")],
        ..case(
            "S09 a sample that loses cuts nothing",
            &[
                (LIGHT, "01 01:00", "01 05:00"),
                (UNKNOWN, "01 02:00", "01 03:00"),
                (IN_BED, "01 00:30", "01 04:00"),
            ],
            &[
                (0, (IN_BED, "01 00:30", "01 01:00")),
                (0, (LIGHT, "01 01:00", "01 05:00")),
            ],
        )
    },
    Case {
        range: ("2024-05-01T03:00:00Z", "2024-05-01T06:00:00Z"),
        ..case(
            "S10 the start that was recorded decides, not the one that clipping made",
            &[(LIGHT, "01 01:00", "01 05:00"), (DEEP, "01 02:00", "01 04:30")],
            &[
                (0, (DEEP, "01 03:00", "01 04:30")),
                (0, (LIGHT, "01 04:30", "01 05:00")),
            ],
        )
    },
    case(
        "S11 a gap as long as cycle_gap parts two cycles, one a second shorter does not",
        &[
            (LIGHT, "01 01:00", "01 03:00"),
            (LIGHT, "01 05:00", "01 06:00"),
            (LIGHT, "01 07:59:59", "01 09:00"),
        ],
        &[
            (0, (LIGHT, "01 01:00", "01 03:00")),
            (1, (LIGHT, "01 05:00", "01 06:00")),
            (1, (LIGHT, "01 07:59:59", "01 09:00")),
        ],
    ),
    Case {
        with: &[("gap_stages", "1")],
        ..case(
            "S12 long awake as a gap parts two cycles and belongs to neither",
            LONG_AWAKE,
            &[
                (0, (LIGHT, "01 00:00", "01 02:00")),
                (1, (DEEP, "01 04:30", "01 06:00")),
            ],
        )
    },
    Case {
        with: &[("gap_stages", "1")],
        ..case(
            "S13 short awake as a gap stays inside its cycle",
            SHORT_AWAKE,
            &[
                (0, (LIGHT, "01 00:00", "01 02:00")),
                (0, (AWAKE, "01 02:00", "01 02:30")),
                (0, (DEEP, "01 02:30", "01 06:00")),
            ],
        )
    },
    Case {
        with: &[("gap_stages", "0")],
        ..case(
            "S14 gap stages before and after a cycle are left out",
            &[(IN_BED, "01 00:00", "01 08:00"), (LIGHT, "01 01:00", "01 06:00")],
            &[(0, (LIGHT, "01 01:00", "01 06:00"))],
        )
    },
];

#[tokio::test]
async fn golden_s01_to_s14_give_the_expected_rows() {
    for case in CASES {
        let person = person();
        slept(&person, case.samples).await;
        let call = case.with.iter().fold(
            ask_about(&person, "sleep_stages", case.range),
            |call, (name, value)| call.with(name, value),
        );
        let found = call.await.must_be(200).rows();
        assert_eq!(hypnogram(&found), rows(case.expected), "{}", case.name);
        for row in &found {
            let length = |name: &str| crate::sleep::refused::seconds(row[name].as_str().unwrap());
            let expected = (length("end_time") - length("start_time")) * 1000;
            assert_eq!(row["duration_ms"], json!(expected), "{}: {row}", case.name);
        }
    }
}

pub(super) const A_NIGHT_AND_A_NAP: &[Span] = &[
    (IN_BED, "01 00:00", "01 08:00"),
    (AWAKE, "01 00:30", "01 00:45"),
    (LIGHT, "01 00:45", "01 02:00"),
    (DEEP, "01 02:00", "01 03:00"),
    (REM, "01 03:00", "01 04:00"),
    (AWAKE, "01 04:00", "01 04:10"),
    (LIGHT, "01 04:10", "01 07:00"),
    (UNKNOWN, "01 14:00", "01 14:40"),
];

fn interval(stage: i64, start: &str, end: &str, milliseconds: i64) -> Value {
    json!({"start_time": may(start), "end_time": may(end), "duration_ms": milliseconds, "sleep_stage": stage})
}

fn total(stage: i64, milliseconds: i64, latency: i64) -> Value {
    json!({"sleep_stage": stage, "total_time_in_stage_ms": milliseconds, "stage_latency_ms": latency})
}

#[tokio::test]
async fn rule_3_6_an_hour_may_part_cycles_and_a_second_less_does_not() {
    let person = person();
    let spans = [
        (LIGHT, "01 00:00", "01 01:00"),
        (LIGHT, "01 02:00", "01 03:00"),
        (LIGHT, "01 03:59:59", "01 05:00"),
    ];
    slept(&person, &spans).await;
    let cycles = |gap: &str| ask(&person, "sleep_cycles").with("cycle_gap", gap);
    for (gap, count) in [("PT1H", 2), ("60m", 2), ("61m", 1), ("3599s", 3)] {
        assert_eq!(cycles(gap).await.must_be(200).rows().len(), count, "{gap}");
    }
}

#[tokio::test]
async fn golden_s15_a_night_and_a_nap_are_summed_up() {
    let person = person();
    slept(&person, A_NIGHT_AND_A_NAP).await;
    let cycles = ask(&person, "sleep_cycles")
        .with("cycle_gap", "PT2H")
        .await
        .must_be(200)
        .rows();
    let night = json!({
        "number": 0, "start_time": may("01 00:30"), "end_time": may("01 07:00"), "total_time_ms": 23_400_000,
        "total_time_asleep_ms": 21_900_000,
        "latency_ms": 900_000, "in_bed_start_time": may("01 00:00"), "in_bed_end_time": may("01 08:00"),
        "total_time_in_bed_ms": 28_800_000,
        "in_bed_to_first_stage_ms": 1_800_000,
        "sleep_stage_intervals": [
            interval(AWAKE, "01 00:30", "01 00:45", 900_000),
            interval(LIGHT, "01 00:45", "01 02:00", 4_500_000),
            interval(DEEP, "01 02:00", "01 03:00", 3_600_000),
            interval(REM, "01 03:00", "01 04:00", 3_600_000),
            interval(AWAKE, "01 04:00", "01 04:10", 600_000),
            interval(LIGHT, "01 04:10", "01 07:00", 10_200_000),
        ],
        "sleep_stage_totals": [
            total(AWAKE, 1_500_000, 0), total(LIGHT, 14_700_000, 900_000), total(DEEP, 3_600_000, 5_400_000),
            total(REM, 3_600_000, 9_000_000),
        ],
        "in_bed_intervals": [interval(IN_BED, "01 00:00", "01 08:00", 28_800_000)],
    });
    let nap = json!({
        "number": 1, "start_time": may("01 14:00"), "end_time": may("01 14:40"), "total_time_ms": 2_400_000,
        "total_time_asleep_ms": 2_400_000,
        "latency_ms": 0, "in_bed_start_time": may("01 14:00"), "in_bed_end_time": may("01 14:40"),
        "total_time_in_bed_ms": 2_400_000,
        "in_bed_to_first_stage_ms": 0,
        "sleep_stage_intervals": [interval(UNKNOWN, "01 14:00", "01 14:40", 2_400_000)],
        "sleep_stage_totals": [total(UNKNOWN, 2_400_000, 0)],
        "in_bed_intervals": [interval(IN_BED, "01 14:00", "01 14:40", 2_400_000)],
    });
    assert_eq!(cycles, [night, nap]);
    let names: Vec<&String> = cycles[0].as_object().unwrap().keys().collect();
    assert_eq!(names, super::answers::CYCLE_COLUMNS);
}

#[tokio::test]
async fn the_stages_filter_changes_the_lists_and_nothing_else() {
    let person = person();
    slept(&person, A_NIGHT_AND_A_NAP).await;
    let all = ask(&person, "sleep_cycles").await.must_be(200).rows();
    let mut expected = all[0].clone();
    expected["sleep_stage_intervals"] = json!([
        interval(DEEP, "01 02:00", "01 03:00", 3_600_000),
        interval(REM, "01 03:00", "01 04:00", 3_600_000)
    ]);
    expected["sleep_stage_totals"] = json!([
        total(DEEP, 3_600_000, 5_400_000),
        total(REM, 3_600_000, 9_000_000)
    ]);
    for spelling in [&["4", "5"][..], &["4,5"], &["[4, 5]"], &["5", "4", "4"]] {
        let call = spelling.iter().fold(ask(&person, "sleep_cycles"), |call, value| {
            call.with("stages", value)
        });
        assert_eq!(call.await.must_be(200).rows(), [expected.clone()], "{spelling:?}");
    }
    let naps = ask(&person, "sleep_cycles")
        .with("stages", "2")
        .await
        .must_be(200)
        .rows();
    assert_eq!(naps, [all[1].clone()], "the nap keeps its number");
    let every = ask(&person, "sleep_cycles")
        .with("stages", "0,1,2,3,4,5")
        .await
        .must_be(200)
        .rows();
    assert_eq!(every, all);
    let deep = ask(&person, "sleep_stages")
        .with("stages", "4")
        .await
        .must_be(200)
        .rows();
    assert_eq!(hypnogram(&deep), rows(&[(0, (DEEP, "01 02:00", "01 03:00"))]));
}

#[tokio::test]
async fn only_being_in_bed_is_a_cycle_too() {
    let person = person();
    slept(&person, &[(IN_BED, "01 01:00", "01 05:00")]).await;
    let cycles = ask(&person, "sleep_cycles").await.must_be(200).rows();
    assert_eq!(cycles.len(), 1);
    assert_eq!(cycles[0]["start_time"], json!(may("01 01:00")));
    assert_eq!(cycles[0]["total_time_asleep_ms"], json!(0));
    assert!(cycles[0]["latency_ms"].is_null(), "{}", cycles[0]);
    assert_eq!(cycles[0]["total_time_in_bed_ms"], json!(14_400_000));
}

#[tokio::test]
async fn stages_are_described() {
    let person = person();
    let path = format!("/data/v0/{}/sleep_stage_metadata", person.id);
    let stages = person.get(&path).await.must_be(200).rows();
    assert_eq!(stages.len(), 6);
    let table = person.get(&path).with("output", "jstable").await.must_be(200);
    for shown in [&stages, &table.rows()] {
        let fields: Vec<&String> = shown[0].as_object().unwrap().keys().collect();
        assert_eq!(
            fields,
            [
                "stage",
                "name",
                "label",
                "depth",
                "is_asleep",
                "is_in_bed",
                "priority"
            ]
        );
    }
    assert_eq!(
        stages[2],
        json!({
            "stage": 2, "name": "unknown", "label": "Asleep, stage unknown", "depth": null, "is_asleep": true,
            "is_in_bed": false, "priority": 1,
        })
    );
}
