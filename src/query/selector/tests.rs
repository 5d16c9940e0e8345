//! Selectors: what each part of one means, and how those that are refused are explained.

use proptest::prelude::*;

use super::*;
use crate::query::filter::{Comparand, Comparison, LabelComparison};

const SECOND: i64 = 1_000_000;

fn read(text: &str) -> Selector {
    Selector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    Selector::parse(text).expect_err(text).to_string()
}

#[test]
fn rule_5_7_a_name_alone_asks_for_the_latest() {
    let selector = read("HeartRate");
    assert_eq!(
        (
            selector.name.as_str(),
            selector.extent,
            selector.at,
            selector.offset
        ),
        ("HeartRate", Extent::Latest, None, 0)
    );
    let now = Instant::from_micros(5 * SECOND);
    let range = selector.range(now);
    assert_eq!(
        (range.start(), range.end()),
        (Instant::MIN, Instant::from_micros(5 * SECOND + 1))
    );
}

#[test]
fn rule_5_7_a_length_a_moment_and_an_offset() {
    let selector = read("HeartRate[3600s] @ 1717200000");
    let at = |seconds: i64| Instant::from_micros(seconds * SECOND);
    assert_eq!(
        selector.range(at(0)),
        TimeRange::between(at(1_717_196_400), at(1_717_200_000))
    );
    let selector = read("HeartRate[1h30m] @ 1717200000.5 offset 1d");
    let end = at(1_717_200_000 - 86_400).micros() + SECOND / 2;
    assert_eq!(
        selector.range(at(0)),
        TimeRange::between(
            Instant::from_micros(end - 5400 * SECOND),
            Instant::from_micros(end)
        )
    );
    assert_eq!(
        read("HeartRate[1h] offset 1d @ 86400").range(at(5)),
        read("HeartRate[1h] @ 86400 offset 1d").range(at(9))
    );
    assert_eq!(read("HeartRate offset -1m").moment(at(0)), at(60));
    assert_eq!(read("HeartRate @ -60").moment(at(0)), at(-60));
    // Whatever is asked for, it lies in the calendar.
    assert_eq!(
        read("HeartRate[999999999y] @ 1000000000000").range(at(0)),
        TimeRange::ALWAYS
    );
    let last = read("HeartRate[1d] @ 253402300800").range(at(0));
    assert!(last.selects(Instant::MAX, Instant::MAX));
    let before = read("HeartRate[1d] @ 253402300799.999999").range(at(0));
    assert!(!before.selects(Instant::MAX, Instant::MAX));
    assert_eq!(read("HeartRate @ 1000000000000").range(at(0)), TimeRange::ALWAYS);
    assert_eq!(read("HeartRate offset 999999999y").moment(at(0)), Instant::MIN);
}

#[test]
fn rule_5_7_a_moment_is_read_to_the_microsecond() {
    let at = |text: &str| {
        read(&format!("HeartRate @ {text}"))
            .moment(Instant::from_micros(0))
            .micros()
    };
    assert_eq!(at("1714558200.0004"), 1_714_558_200_000_400);
    assert_eq!(at("1714558199.999999"), 1_714_558_199_999_999);
    assert_eq!(at("1714558199.9999999"), 1_714_558_199_999_999);
    assert_eq!(at("+ .5"), 500_000);
    assert_eq!(at("5."), 5_000_000);
    assert_eq!(at("-0.000001"), -1);
    assert_eq!(at("- 1.0000001"), -1_000_001);
    assert_eq!(at("1h"), 3600 * SECOND);
    assert_eq!(
        read("HeartRate[1s] @ 1714558200.000899").range(Instant::from_micros(0)),
        TimeRange::between(
            Instant::from_micros(1_714_558_199_000_899),
            Instant::from_micros(1_714_558_200_000_899)
        )
    );
    let labelled = read("HeartRate{note=\"@ 5\"} @ 7");
    assert_eq!(labelled.at, Some(Instant::from_micros(7 * SECOND)));
}

#[test]
fn rule_5_7_lengths_have_any_number_of_seconds() {
    let back = |text: &str| read(&format!("HeartRate[{text}]")).extent;
    assert_eq!(back("1717200000s"), Extent::Back(1_717_200_000 * SECOND));
    assert_eq!(back("1717200000"), back("1717200000s"));
    assert_eq!(back("1717200000000ms"), back("1717200000s"));
    assert_eq!(
        back("1y2w3d4h5m6s7ms"),
        Extent::Back((365 + 14 + 3) * 86_400 * SECOND + 14_706 * SECOND + 7000)
    );
    assert_eq!((back("0s"), back("0")), (Extent::Back(0), Extent::Back(0)));
    for nothing in ["0", "0s", "-0s", "0h0m"] {
        assert_eq!(
            read(&format!("HeartRate offset {nothing}")).offset,
            0,
            "{nothing}"
        );
    }
    let always = TimeRange::ALWAYS;
    assert_eq!(
        read("HeartRate[999999999999999y] @ 1000000000000").range(Instant::from_micros(0)),
        always
    );
}

#[test]
fn rule_5_7_labels_are_conditions_that_all_hold() {
    let selector = read(concat!(
        r#"{__name__="Event/0193b5a2-0000-7000-8000-000000000001", note="tea", note!="x", tags=~"a.*", "#,
        r#"source_id!~'b\\d'}[1d]"#,
    ));
    assert_eq!(selector.name, "Event/0193b5a2-0000-7000-8000-000000000001");
    let found: Vec<(&str, Comparison, &Comparand)> = selector
        .conditions
        .iter()
        .map(|condition| (condition.field.as_str(), condition.operator, &condition.value))
        .collect();
    let text = |text: &str| Comparand::Text(text.to_owned());
    assert_eq!(
        found,
        [
            ("note", Comparison::Label(LabelComparison::Equal), &text("tea")),
            ("note", Comparison::Label(LabelComparison::NotEqual), &text("x")),
            ("tags", Comparison::Label(LabelComparison::Matches), &text("a.*")),
            (
                "source_id",
                Comparison::Label(LabelComparison::MatchesNot),
                &text("b\\d")
            ),
        ]
    );
}

#[test]
fn rule_5_7_a_name_in_quotes_alone_changes_no_label() {
    let named = r#"{__name__="Event/a", kind="tea", note=~"str.*", "tags"!="x", "place"!~"y.*"}[1d]"#;
    let expected = read(named);
    let (equal, matches) = (LabelComparison::Equal, LabelComparison::Matches);
    let (not_equal, matches_not) = (LabelComparison::NotEqual, LabelComparison::MatchesNot);
    let compared = expected.conditions.iter().map(|condition| condition.operator);
    assert_eq!(
        compared.collect::<Vec<Comparison>>(),
        [equal, matches, not_equal, matches_not].map(Comparison::Label)
    );
    for alone in [
        r#"{"Event/a", kind="tea", note=~"str.*", "tags"!="x", "place"!~"y.*"}[1d]"#,
        r#"{ 'Event/a' , kind = "tea", note =~ "str.*", "tags" != "x", "place" !~ "y.*", }[1d]"#,
        r#"{kind="tea", "Event/a", note=~"str.*", "tags"!="x", "place"!~"y.*"}[1d]"#,
        r#"{kind="tea", note=~"str.*", "tags"!="x", "place"!~"y.*", "Event/a"}[1d]"#,
    ] {
        assert_eq!(read(alone), expected, "{alone}");
    }
    let only = read(r#"{"Event/a", note=~"str.*"}"#);
    assert_eq!((only.name.as_str(), only.conditions.len()), ("Event/a", 1));
    for unnamed in [r#"{"Event/a", "Event/b"}"#, r#"{"Event/a", __name__="Event/b"}"#] {
        assert!(refusal(unnamed).contains("no name"), "{unnamed}");
    }
}

#[test]
fn rule_5_7_a_label_may_be_called_like_a_number() {
    let selector = read(
        r#"{__name__="Event/0193b5a2-0000-7000-8000-000000000001", nan="a", Inf!="b", infinity=~"c"}[1d]"#,
    );
    let fields = selector
        .conditions
        .iter()
        .map(|condition| condition.field.as_str());
    assert_eq!(fields.collect::<Vec<&str>>(), ["nan", "Inf", "infinity"]);
    assert!(Selector::parse("HeartRate[nan]").is_err());
}

#[test]
fn rule_5_7_what_is_not_supported_is_named() {
    for (text, token) in [
        ("rate(HeartRate[5m])", "`rate`"),
        ("avg_over_time(HeartRate[5m])", "`avg_over_time`"),
        ("sum(HeartRate)", "`sum`"),
        ("topk(3, HeartRate)", "`topk`"),
        ("sum by (note) (rate(HeartRate[5m]))", "`sum`"),
        ("HeartRate + 1", "`+`"),
        ("HeartRate and StepCount", "`and`"),
        ("HeartRate > 100", "`>`"),
        ("-HeartRate", "`-`"),
        ("(HeartRate)", "`(`"),
        ("HeartRate[1h:5m]", "`:`"),
        ("5", "`5`"),
        ("\"text\"", "text"),
        ("HeartRate @ start()", "`start`"),
        ("HeartRate @ end()", "`end`"),
        ("HeartRate # comment", "`#`"),
        ("HeartRate{note=`x`}", "```"),
        ("{__name__=\"A\" or __name__=\"B\"}", "`or`"),
        ("nosuch(HeartRate)", "`nosuch`"),
        ("sum(HeartRate[1h])", "`sum`"),
        ("count(HeartRate[1h]) by (note)", "`count`"),
        ("avg by (note) (HeartRate[1h])", "`avg`"),
        ("MAX WITHOUT (note) (HeartRate[1h])", "`MAX`"),
        ("topk(HeartRate)", "`topk`"),
        ("abs(HeartRate[1h])", "`abs`"),
        ("-HeartRate[1h]", "`-`"),
        ("HeartRate[1h] + 1", "`+`"),
        ("HeartRate[1h] offset -1h % 2", "`%`"),
        ("HeartRate[1h] @ -5 * 2", "`*`"),
        ("HeartRate[1h] > 3", "`>`"),
        ("HeartRate[1h] >= 3", "`>=`"),
        ("HeartRate[1h] != 3", "`!=`"),
        ("HeartRate[1h] or HeartRate[1h]", "`or`"),
        ("HeartRate[1h]{note=\"a or b\"} or StepCount", "`or`"),
        ("HeartRate[1h] UNLESS StepCount[1h]", "`UNLESS`"),
        ("sum_over_time(HeartRate[1h:5m] + 1)", "`sum_over_time`"),
    ] {
        let said = refusal(text);
        assert!(said.contains(token), "{text}: {said}");
    }
}

#[test]
fn rule_5_7_what_is_no_selector_is_refused_with_an_example() {
    for (text, reason) in [
        ("", "expected a selector"),
        ("HeartRate[", "expected a selector"),
        ("HeartRate[5]]", "expected a selector"),
        ("HeartRate{note=}", "expected a selector"),
        ("{note=\"x\"}", "no name"),
        ("{__name__=~\"Heart.*\"}", "no name"),
        ("{__name__=\"A\",__name__=\"B\"}", "no name"),
        ("HeartRate[1e30]", "`1e30`"),
        ("HeartRate{note=\"sum(x)\"", "expected a selector"),
        (
            "HeartRate[99999999999999999999]",
            "`99999999999999999999` is too much",
        ),
        ("HeartRate @ 1000000000001", "`1000000000001` is too much"),
        ("HeartRate[1m1h]", "`1m1h` is neither"),
        ("HeartRate[1h1h]", "`1h1h` is neither"),
        ("HeartRate[Inf]", "`Inf`"),
        ("HeartRate @ NaN", "`NaN`"),
        (
            "HeartRate[9999999999999999y1d]",
            "`9999999999999999y1d` is too much",
        ),
        ("HeartRate[1mo]", "`1mo`"),
        ("HeartRate[0x10]", "`0x10`"),
    ] {
        let said = refusal(text);
        assert!(said.contains(reason), "{text}: {said}");
    }
    assert_eq!(Selector::parse(&"x".repeat(5000)), Err(SelectorError::TooLong));
    assert!(refusal(&"(".repeat(3000)).contains("128 signs"));
}

#[test]
fn a_selector_has_as_many_labels_as_it_may_in_any_form() {
    let labels = |count: usize, comparison: &str| -> String {
        let labels: Vec<String> = (0..count).map(|n| format!("a{n}{comparison}\"x\",")).collect();
        labels.concat()
    };
    for comparison in ["=", "!=", "=~", "!~", " = "] {
        let most = labels(20, comparison);
        let whole = format!("{{__name__=\"A/b\",{most}}}[1d] @ -1717200000.5 offset -1w");
        assert_eq!(Selector::parse(&whole).unwrap().conditions.len(), 20, "{whole}");
        let quoted = format!("{{\"__name__\"=\"A/b\",{most}}}");
        assert_eq!(Selector::parse(&quoted).unwrap().conditions.len(), 20, "{quoted}");
        for count in [21, 22] {
            let more = labels(count, comparison);
            for text in [
                format!("HeartRate{{{more}}}"),
                format!("{{__name__=\"A/b\",{more}}}[1d] @ 1717200000 offset 1w"),
                format!("{{{more}__name__=\"A/b\"}}"),
            ] {
                let found = Selector::parse(&text);
                assert_eq!(found, Err(SelectorError::TooManyLabels(count)), "{text}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_text_does_more_than_be_refused(
        parts in prop::collection::vec(
            prop_oneof![
                "[A-Za-z_:]{1,4}", "[0-9.]{1,22}", "[0-9]{1,3}[ywdhms]{1,2}",
                "[-+*/%^@(){}\\[\\],:=~!<>#\"'` ]",
                Just(" offset ".to_owned()), Just("[5m]".to_owned()), Just(" @ ".to_owned()),
                Just("{a=\"b\"}".to_owned()),
                Just("Inf".to_owned()), Just("1e400".to_owned()), Just("HeartRate".to_owned()),
                Just("\\".to_owned()), Just("é".to_owned()),
            ],
            0..10,
        )
    ) {
        if let Ok(selector) = Selector::parse(&parts.concat()) {
            let range = selector.range(Instant::from_micros(0));
            prop_assert!(range.start() >= Instant::MIN && range.start() <= range.end());
        }
    }
}
