//! Rule 2.1: periods and lengths as clients write them.

use proptest::prelude::*;

use super::*;

const SECOND: i64 = crate::model::time::MICROS_PER_SECOND;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

fn plain(every: Every) -> Truncation {
    Truncation::plain(every)
}

fn moved(every: Every, months: i64, micros: i64) -> Truncation {
    Truncation {
        every,
        offset: Offset { months, micros },
    }
}

#[test]
fn rule_2_1_truncations_are_accepted_d01() {
    let cases = [
        ("1d", plain(Every::Days(1))),
        ("1w", plain(Every::Weeks(1))),
        ("2w", plain(Every::Weeks(2))),
        ("1mo", plain(Every::Months(1))),
        ("1q", plain(Every::Months(3))),
        ("1y", plain(Every::Months(12))),
        ("1y6mo", plain(Every::Months(18))),
        ("15m", plain(Every::Fixed(15 * MINUTE))),
        ("1h30m", plain(Every::Fixed(90 * MINUTE))),
        ("90m", plain(Every::Fixed(90 * MINUTE))),
        ("250ms", plain(Every::Fixed(250_000))),
        ("1000ns", plain(Every::Fixed(1))),
        ("PT2H", plain(Every::Fixed(2 * HOUR))),
        ("P1D", plain(Every::Days(1))),
        ("P1W", plain(Every::Weeks(1))),
        ("P1M", plain(Every::Months(1))),
        ("P1Y6M", plain(Every::Months(18))),
        ("PT90M", plain(Every::Fixed(90 * MINUTE))),
        ("PT0.5S", plain(Every::Fixed(500_000))),
        ("PT0.0000010S", plain(Every::Fixed(1))),
        ("1d@12h", moved(Every::Days(1), 0, 12 * HOUR)),
        ("1d|12h", moved(Every::Days(1), 0, 12 * HOUR)),
        ("1w@-1d", moved(Every::Weeks(1), 0, -24 * HOUR)),
        ("1w@-P1D", moved(Every::Weeks(1), 0, -24 * HOUR)),
        ("1mo@14d", moved(Every::Months(1), 0, 14 * 24 * HOUR)),
        ("1y@3mo1w1d1h", moved(Every::Months(12), 3, (8 * 24 + 1) * HOUR)),
    ];
    for (text, expected) in cases {
        assert_eq!(Truncation::parse(text), Ok(expected), "{text}");
    }
}

#[test]
fn rule_2_1_truncations_are_refused_with_a_reason_d01() {
    let cases = [
        ("", "empty"),
        ("0d", "longer than zero"),
        ("-1d", "negative"),
        ("1.5h", "fraction"),
        ("1D", "unknown unit \"D\""),
        ("1M", "unknown unit \"M\""),
        ("1 h", "not a duration"),
        (" 1h", "not a duration"),
        ("1h ", "not a duration"),
        ("1d12h", "mixes"),
        ("1mo3d", "mixes"),
        ("1w2d", "mixes"),
        ("1d0h", "mixes"),
        ("P1M3D", "mixes"),
        ("P1DT2H", "mixes"),
        ("1i", "unknown unit \"i\""),
        ("h", "not a duration"),
        ("15", "not a duration"),
        ("PT", "not a duration"),
        ("P", "not a duration"),
        ("P1DT", "not a duration"),
        ("P1H", "not a duration"),
        ("PT1M1H", "not a duration"),
        ("PT.5S", "not a duration"),
        ("PT5.S", "not a duration"),
        ("PT1.2.3S", "not a duration"),
        ("PT1.5H", "fraction"),
        ("pt2h", "not a duration"),
        ("1d@", "no offset"),
        ("1d@-", "no offset"),
        ("@1d", "empty"),
        ("1d@1d@1h", "more than one offset"),
        ("1d@1d|1h", "more than one offset"),
        ("1d@+1h", "not a duration"),
        ("1d@--1h", "negative"),
        ("9999999999999y", "too long"),
        ("99999999999999999999s", "too long"),
        ("9223372036854775807w", "too long"),
        ("1d@9223372036854775807h", "too long"),
        ("1ns", "finer than a microsecond"),
        ("1500ns", "finer than a microsecond"),
        ("PT0.0000001S", "finer than a microsecond"),
        ("PT0.00000000001S", "finer than a microsecond"),
        ("1µs", "not a duration"),
        ("１h", "not a duration"),
    ];
    for (text, reason) in cases {
        let message = Truncation::parse(text).expect_err(text).to_string();
        assert!(message.contains(reason), "{text:?}: {message}");
    }
}

#[test]
fn rule_2_1_lengths_d02() {
    let accepted = [
        ("PT2H", 7200.0),
        ("2h", 7200.0),
        ("90m", 5400.0),
        ("1d", 86_400.0),
        ("1w", 604_800.0),
        ("1d12h", 129_600.0),
        ("P1DT2H", 93_600.0),
        ("PT30M", 1800.0),
        ("5400", 5400.0),
        ("0.5", 0.5),
        ("0.000001", 0.000_001),
    ];
    for (text, seconds) in accepted {
        assert_eq!(parse_length(text), Ok((seconds * 1e6) as i64), "{text}");
    }
    let refused = [
        ("1mo", "no fixed length"),
        ("P1M", "no fixed length"),
        ("1y", "no fixed length"),
        ("0s", "longer than zero"),
        ("0", "longer than zero"),
        ("-2h", "negative"),
        ("-5", "negative"),
        ("abc", "not a duration"),
        ("", "empty"),
        ("NaN", "not a plain number"),
        ("1e3", "not a plain number"),
        ("inf", "not a plain number"),
        (".", "not a duration"),
        ("5.", "not a duration"),
        ("1d@1h", "not a duration"),
        ("0.0000001", "finer than a microsecond"),
        ("99999999999999999999", "too long"),
        ("9223372036854775807d", "too long"),
        ("9223372036854775807w9223372036854775807w", "too long"),
    ];
    for (text, reason) in refused {
        let message = parse_length(text).expect_err(text).to_string();
        assert!(message.contains(reason), "{text:?}: {message}");
    }
}

#[test]
fn rule_1_2_a_sampling_rate_is_a_number_of_seconds_or_a_truncation() {
    assert_eq!(SampleRate::parse("60"), Ok(SampleRate::Width(60 * SECOND)));
    assert_eq!(SampleRate::parse("0.25"), Ok(SampleRate::Width(250_000)));
    assert_eq!(
        SampleRate::parse("1h"),
        Ok(SampleRate::Calendar(Truncation::HOURS))
    );
    for text in [
        "0",
        "0.0",
        "-1",
        "-0",
        "1e-9",
        "NaN",
        "-inf",
        "+60",
        "",
        "1 ",
        "0.0000001",
    ] {
        assert!(SampleRate::parse(text).is_err(), "{text}");
    }
}

#[test]
fn an_error_repeats_only_the_beginning_of_a_long_text() {
    let message = Truncation::parse(&"x".repeat(100_000)).unwrap_err().to_string();
    assert!(message.len() < 400, "{message}");
}

proptest! {
    #[test]
    fn no_text_makes_reading_fail_otherwise_than_with_an_error(text in "[-0-9.PTYMWDHSnsumhdwoqy@| ]{0,24}") {
        let _ = Truncation::parse(&text);
        let _ = SampleRate::parse(&text);
        prop_assert!(parse_length(&text).is_ok_and(|length| length > 0) || parse_length(&text).is_err());
    }

    #[test]
    fn short_and_iso_forms_mean_the_same(
        hours in 0_i64..1000,
        minutes in 0_i64..1000,
        seconds in 1_i64..1000
    ) {
        let short = Truncation::parse(&format!("{hours}h{minutes}m{seconds}s"));
        prop_assert_eq!(
            &short,
            &Truncation::parse(&format!("PT{hours}H{minutes}M{seconds}S"))
        );
        let length = (hours * 3600 + minutes * 60 + seconds) * SECOND;
        prop_assert_eq!(short, Ok(plain(Every::Fixed(length))));
        prop_assert_eq!(parse_length(&format!("{hours}h{minutes}m{seconds}s")), Ok(length));
    }
}
