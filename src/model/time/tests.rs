//! Moments as clients write them, and as they are written for clients.

use chrono::{DateTime, Utc};
use proptest::prelude::*;

use super::*;

fn instant(text: &str) -> Instant {
    parse_instant(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn rule_0_2_every_form_clients_send_is_read() {
    let midnight = instant("2024-01-24T00:00:00Z");
    for same in [
        "2024-01-24",
        "2024-01-24T00:00",
        "2024-01-24T00:00Z",
        "2024-01-24 00:00:00",
        "2024-01-24t00:00:00z",
        "2024-01-24T00:00:00.000000000000Z",
        "2024-01-24T00:00:00.0000009Z",
        "2024-01-23 16:00:00-08:00",
        "2024-01-24T05:45+0545",
        "2024-01-24T02:00:00+02",
        "2024-01-24T00:00:00-00:00",
    ] {
        assert_eq!(instant(same), midnight, "{same}");
    }
    assert_eq!(
        instant("2024-06-01T12:30:15.123456789Z").micros(),
        instant("2024-06-01T12:30:15Z").micros() + 123_456
    );
}

#[test]
fn rule_0_2_what_is_not_a_moment_is_refused() {
    let refused = [
        ("", TimeError::Malformed),
        ("1706054400", TimeError::Number),
        ("1706054400.5", TimeError::Number),
        ("-1", TimeError::Number),
        ("2024-01-24T24:00:00Z", TimeError::NoSuchTime),
        ("2024-01-24T23:60:00Z", TimeError::NoSuchTime),
        ("2024-01-24T23:59:60Z", TimeError::NoSuchTime),
        ("2024-02-30", TimeError::NoSuchDay),
        ("2023-02-29", TimeError::NoSuchDay),
        ("1900-02-29", TimeError::NoSuchDay),
        ("2024-13-01", TimeError::NoSuchDay),
        ("2024-00-10", TimeError::NoSuchDay),
        (" 2024-01-24", TimeError::Malformed),
        ("2024-01-24 ", TimeError::Malformed),
        ("2024-01-24T00:00:00Z ", TimeError::Malformed),
        ("2024-01-24 00:00:00 UTC", TimeError::Malformed),
        ("2024-01-24T00", TimeError::Malformed),
        ("2024-01-24T0:00", TimeError::Malformed),
        ("2024-1-24", TimeError::Malformed),
        ("20240124T000000Z", TimeError::Malformed),
        ("2024-01-24T00:00:00 00:00", TimeError::Malformed),
        ("2024-01-24T00:00:00+24:00", TimeError::NoSuchOffset),
        ("2024-01-24T00:00:00+1", TimeError::Malformed),
        ("2024-01-24T00:00:00+01:0", TimeError::Malformed),
        ("0000-01-01T00:00:00Z", TimeError::OutOfRange),
        ("0001-01-01T00:00:00+01:00", TimeError::OutOfRange),
        ("9999-12-31T23:59:59-01:00", TimeError::OutOfRange),
        ("２０２４-01-24", TimeError::Malformed),
    ];
    for (text, error) in refused {
        assert_eq!(parse_instant(text), Err(error), "{text}");
    }
}

#[test]
fn rule_0_2_a_plus_that_became_a_space_is_read_in_queries_only() {
    assert_eq!(
        parse_instant_in_query("2024-01-24T02:00:00 02:00"),
        Ok(instant("2024-01-24T00:00:00Z"))
    );
    assert_eq!(
        parse_instant_in_query("2024-01-24 02:00:00 0200"),
        Ok(instant("2024-01-24T00:00:00Z"))
    );
    assert_eq!(
        parse_instant_in_query("2024-01-24 02:00:00+02:00"),
        Ok(instant("2024-01-24T00:00:00Z"))
    );
    assert!(parse_instant_in_query("2024-01-24 02:00:00 UTC").is_err());
    assert!(parse_instant_in_query("2024-01-24 02:00:00 ").is_err());
}

#[test]
fn rule_0_2_times_are_written_with_as_much_fraction_as_they_need() {
    for text in [
        "0001-01-01T00:00:00Z",
        "2024-01-24T10:20:30.500Z",
        "1969-12-31T23:59:59.999999Z",
        "4001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
    ] {
        assert_eq!(instant(text).to_rfc3339(), text);
    }
    assert_eq!(Instant::MIN.to_rfc3339(), "0001-01-01T00:00:00Z");
    assert_eq!(Instant::MAX.to_rfc3339(), "9999-12-31T23:59:59.999999Z");
}

#[test]
fn rule_0_2_a_range_selects_what_shares_time_with_it() {
    let at = |time: &str| instant(&format!("2024-05-01T{time}:00Z"));
    let range = TimeRange::new(at("14:00"), at("15:00")).unwrap();
    let cases = [
        ("13:30", "14:30", true),
        ("13:00", "14:00", false),
        ("15:00", "15:30", false),
        ("14:00", "14:00", true),
        ("15:00", "15:00", false),
        ("12:00", "16:00", true),
    ];
    for (start, end, selected) in cases {
        assert_eq!(range.selects(at(start), at(end)), selected, "{start} to {end}");
    }
    let empty = TimeRange::new(at("14:00"), at("14:00")).unwrap();
    assert!(!empty.selects(at("13:00"), at("15:00")));
    assert!(!empty.selects(at("14:00"), at("14:00")));
    assert_eq!(TimeRange::new(at("15:00"), at("14:00")), None);
}

#[test]
fn no_time_passes_from_a_moment_to_an_earlier_one() {
    let (earlier, later) = (instant("2024-01-24T00:00:00Z"), instant("2024-01-24T00:00:01.5Z"));
    assert_eq!(later.since(earlier), Duration::from_millis(1_500));
    assert_eq!(earlier.since(later), Duration::ZERO);
    let (first, last) = (Instant::from_micros(i64::MIN), Instant::from_micros(i64::MAX));
    assert_eq!(last.since(first), Duration::from_micros(i64::MAX.unsigned_abs()));
}

fn instants() -> impl Strategy<Value = Instant> {
    (Instant::MIN.micros()..=Instant::MAX.micros()).prop_map(Instant::from_micros)
}

proptest! {
    /// What is written is what is read, and what another library reads.
    #[test]
    fn written_times_read_back(instant in instants()) {
        let text = instant.to_rfc3339();
        prop_assert_eq!(parse_instant(&text), Ok(instant));
        prop_assert_eq!(DateTime::parse_from_rfc3339(&text).unwrap().timestamp_micros(), instant.micros());
    }

    /// Every offset names the same moment as the other library says.
    #[test]
    fn offsets_agree_with_chrono(instant in instants(), minutes in -1439_i32..=1439) {
        let zone = chrono::FixedOffset::east_opt(minutes * 60).unwrap();
        let moment = DateTime::<Utc>::from_timestamp_micros(instant.micros()).unwrap();
        let text = moment.with_timezone(&zone).to_rfc3339_opts(chrono::SecondsFormat::Nanos, false);
        prop_assume!(text.len() == "2024-01-24T00:00:00.000000000+00:00".len() && !text.starts_with("0000"));
        prop_assert_eq!(parse_instant(&text), Ok(instant));
    }

    /// No text at all makes the parser fail in any other way than by its error.
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let read = parse_instant(&text);
        prop_assert!(read.is_err() || DateTime::parse_from_rfc3339(&text).is_ok() || text.len() < 40);
    }

    /// Texts that almost are times are judged as the other library judges them, where both know the form.
    #[test]
    fn near_misses_agree_with_chrono(
        text in "[0-9]{4}-[0-1][0-9]-[0-3][0-9]T\
                 [0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-][0-2][0-9]:[0-5][0-9])"
    ) {
        let theirs = DateTime::parse_from_rfc3339(&text)
            .ok()
            .map(|moment| Instant::from_micros(moment.timestamp_micros()));
        let theirs = theirs
            .filter(|instant| (Instant::MIN..=Instant::MAX).contains(instant) && !text.starts_with("0000"));
        prop_assert_eq!(parse_instant(&text).ok(), theirs);
    }
}
