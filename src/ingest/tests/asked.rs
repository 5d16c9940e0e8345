//! What a sender may ask for: ids that follow from the record, and numbers in other clothes. And the name
//! that a writer gives itself.

use super::*;
use crate::ingest::bounds::LONGEST_SOURCE;
use crate::ingest::coerce::Epoch;

const NATURAL: Leave = Leave {
    natural_ids: true,
    coercion: None,
};

fn asking(name: &str, leave: Leave, lines: &[&str]) -> DecodedRows {
    let context = DecodeContext { leave, ..context() };
    let mut decoder = RecordDecoder::new(COMPILED.get(&data_type(name)).unwrap(), context).unwrap();
    for (index, line) in lines.iter().enumerate() {
        decoder
            .push(index, line.as_bytes())
            .unwrap_or_else(|faults| panic!("{line}: {faults:?}"));
    }
    decoder.take().unwrap()
}

fn natural_ids(name: &str, lines: &[&str]) -> Vec<String> {
    let rows = asking(name, NATURAL, lines);
    assert!(rows.given.iter().all(|given| *given), "{lines:?}");
    (0..lines.len()).map(|row| cell(&rows, "id", row)).collect()
}

#[test]
fn a_sample_is_known_by_its_source_and_its_time_however_it_is_written() {
    let ids = natural_ids(
        "HeartRate",
        &[
            r#"{"start_date":"2024-05-01T10:00:00Z","value":72}"#,
            r#"{"start_date":"2024-05-01T10:00:00Z","value":72}"#,
            concat!(
                r#"{ "value": 73.0, "start_time": "2024-05-01 12:00:00.000+02:00", "#,
                r#""end_time": "2024-05-01T10:00Z" }"#,
            ),
            r#"{"start_date":"2024-05-01T10:00:00Z","value":72,"extras":{"note":"again"}}"#,
        ],
    );
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let others = natural_ids(
        "HeartRate",
        &[
            r#"{"start_date":"2024-05-01T10:00:01Z","value":72}"#,
            r#"{"start_date":"2024-05-01T10:00:00Z","end_date":"2024-05-01T10:00:01Z","value":72}"#,
            r#"{"start_date":"2024-05-01T10:00:00Z","value":72,"source":"watch"}"#,
            r#"{"start_date":"2024-05-01T10:00:00Z","value":72,"source":"phone"}"#,
        ],
    );
    let distinct: std::collections::BTreeSet<&String> = ids.iter().chain(&others).collect();
    assert_eq!(distinct.len(), 5, "{ids:?} {others:?}");
}

#[test]
fn a_measurement_of_which_the_last_counts_is_corrected_by_another_value() {
    let sample = |value: u32| format!(r#"{{"start_date":"2024-05-01T10:00:00Z","value":{value}}}"#);
    let lines = [sample(2), sample(3)];
    let ids = |name: &str| natural_ids(name, &[&lines[0], &lines[1]]);
    for measured in ["Weight", "BodyFatPercentage", "SixMinuteWalkDistance"] {
        let ids = ids(measured);
        assert_eq!(ids[0], ids[1], "{measured}");
    }
    for code in ["PregnancyTestResult", "AppetiteChange"] {
        let ids = ids(code);
        assert_ne!(ids[0], ids[1], "{code}");
    }
}

#[test]
fn of_what_is_logged_and_of_events_all_that_they_say_is_who_they_are() {
    let lunch = |name: &str, what: &str| format!(r#"{{"{name}":"2024-05-01T12:00:00Z",{what}}}"#);
    for (data_type, time, one, same, other) in [
        (
            "DietaryCaffeineConsumed",
            "start_date",
            r#""value":80"#,
            r#""value":80.0"#,
            r#""value":60"#,
        ),
        (
            "SleepStage",
            "start_date",
            r#""value":3"#,
            r#""value":3.0"#,
            r#""value":4"#,
        ),
        (
            "MomentAnnotation",
            "recorded_at",
            r#""note":"tea","tags":["a","b"]"#,
            r#""tags":[ "a", "b" ], "note":"te\u0061""#,
            r#""note":"tea","tags":["b","a"]"#,
        ),
    ] {
        let [one, same, other] = [one, same, other].map(|what| lunch(time, what));
        let ids = natural_ids(data_type, &[&one, &same, &other, &one]);
        assert_eq!((&ids[0], &ids[0]), (&ids[1], &ids[3]), "{data_type}");
        assert_ne!(ids[0], ids[2], "{data_type}");
    }
}

#[test]
fn what_is_stored_alike_is_one_record_however_it_is_spelt() {
    let drink = |rest: &str| format!(r#"{{"start_date":"2024-05-01T10:00:00Z","value":100{rest}}}"#);
    let drinks = [
        "",
        r#","unit":"mg""#,
        r#","unit":"milligram""#,
        r#","unit":null"#,
        r#","extras":{}"#,
        r#","extras":null"#,
        r#","source_properties":{}"#,
        r#","source_properties":{"name":null}"#,
    ];
    let drinks = drinks.map(drink);
    let lines: Vec<&str> = drinks.iter().map(String::as_str).collect();
    // Never to be changed: stored records have this id.
    let id = "f3f58b3b2bb257cba5fc26ed822fe790";
    assert_eq!(natural_ids("DietaryCaffeineConsumed", &lines), [id; 8]);
    let others = [
        drink(r#","unit":"g""#),
        drink(r#","extras":{"cup":1}"#),
        drink(r#","source_properties":{"colour":null}"#),
    ];
    let lines: Vec<&str> = others.iter().map(String::as_str).collect();
    let others = natural_ids("DietaryCaffeineConsumed", &lines);
    let distinct: std::collections::BTreeSet<&str> = others.iter().map(String::as_str).chain([id]).collect();
    assert_eq!(distinct.len(), 4, "{others:?}");
}

#[test]
fn times_and_ids_that_a_record_names_are_the_same_in_any_spelling() {
    let meeting = |calendar: &str, created: &str| {
        let times = r#""start_date":"2024-05-01T10:00:00Z","end_date":"2024-05-01T11:00:00Z""#;
        format!(r#"{{"calendar_id":"{calendar}",{times},"creation_date":"{created}"}}"#)
    };
    let meetings = [
        meeting("0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e", "2024-04-01T08:00:00Z"),
        meeting(
            "0191F0C45B1E7C3A9D526F1A2B3C4D5E",
            "2024-04-01 10:00:00.000+02:00",
        ),
    ];
    let ids = natural_ids("CalendarEvent", &[&meetings[0], &meetings[1]]);
    // Never to be changed: stored records have this id.
    assert_eq!(ids, ["7f197075a0aa5d93819fc2121e2451a8"; 2]);
}

#[test]
fn a_row_that_was_read_is_the_record_that_was_sent() {
    let start = r#""start_time":"2024-05-01T10:00:00Z""#;
    let stage = r#""start_date":"2024-05-01T10:00:00Z","value":3"#;
    let meeting = concat!(
        r#""calendar_id":"0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e","start_date":"2024-05-01T10:00:00Z","#,
        r#""end_date":"2024-05-01T11:00:00Z""#,
    );
    let place = r#""timestamp":"2024-05-01T10:00:00Z","latitude_degrees":1"#;
    let drink = r#""start_date":"2024-05-01T10:00:00Z""#;
    let pain = r#""start_date":"2024-05-01T10:00:00Z","end_date":"2024-05-01T11:00:00Z""#;
    for (name, what, sent, read) in [
        ("Event", start, r#""foo":1"#, r#""extras":{"foo":1}"#),
        (
            "MomentAnnotation",
            start,
            r#""sources":["x","com.almanac.annotation.0191F0C4-5B1E-7C3A-9D52-6F1A2B3C4D5E"]"#,
            r#""sources":["x","com.almanac.annotation.0191F0C4-5B1E-7C3A-9D52-6F1A2B3C4D5E"],
               "source_id":"com.almanac.annotation.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e",
               "source_name":"Mood","metadata":{"definition":{"name":"Mood"}}"#,
        ),
        (
            "MomentAnnotation",
            start,
            r#""sources":["com.almanac.annotation.0191F0C4-5B1E-7C3A-9D52-6F1A2B3C4D5E"],"source_id":"app""#,
            r#""sources":["com.almanac.annotation.0191F0C4-5B1E-7C3A-9D52-6F1A2B3C4D5E","app"],
               "source_id":"com.almanac.annotation.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e""#,
        ),
        ("SleepStage", stage, r#""foo":1"#, r#""extras":{"foo":1}"#),
        (
            "CalendarEvent",
            meeting,
            r#""foo":{"b":1,"a":2}"#,
            r#""extras":{"foo":{"b":1,"a":2}}"#,
        ),
        (
            "SleepStage",
            stage,
            r#""sources":["x"]"#,
            r#""extras":{"sources":["x"]}"#,
        ),
        (
            "DietaryCaffeineConsumed",
            stage,
            r#""tags":["t"],"foo":1"#,
            r#""extras":{"tags":["t"],"foo":1}"#,
        ),
        (
            "CalendarEvent",
            meeting,
            r#""tags":["t"]"#,
            r#""tags":null,"extras":{"tags":["t"]}"#,
        ),
        (
            "CalendarEvent",
            meeting,
            r#""tags":["t"]"#,
            r#""tags":["t"],"extras":{"tags":["t"]}"#,
        ),
        (
            "PlatformLocationUpdate",
            place,
            r#""longitude_degrees":180"#,
            r#""longitude_degrees":-180.0"#,
        ),
        (
            "DietaryCaffeineConsumed",
            drink,
            r#""value":1,"unit":"g""#,
            r#""value":1000,"extras":{"original_value":1,"original_unit":"g"}"#,
        ),
        (
            "DietaryCaffeineConsumed",
            drink,
            r#""value":1,"unit":"g","foo":2"#,
            r#""value":1000.0,"unit":"mg","extras":{"foo":2,"original_value":1,"original_unit":"g"}"#,
        ),
        (
            "SymptomAcne",
            pain,
            r#""value":1,"unit":"HKCategoryValueSeverity""#,
            concat!(
                r#""value":0,"extras":{"not_present":true,"original_value":1,"#,
                r#""original_unit":"HKCategoryValueSeverity"}"#,
            ),
        ),
    ] {
        let [sent, read] = [sent, read].map(|rest| format!("{{{what},{rest}}}"));
        let rows = table(&asking(name, NATURAL, &[&sent, &read]));
        assert_eq!(rows[0], rows[1], "{name}: {sent} {read}");
    }
    // What is not stored alike is another record.
    for (name, what, one, other) in [
        ("SleepStage", stage, r#""foo":1"#, r#""extras":{"value":1}"#),
        (
            "SleepStage",
            stage,
            r#""extras":{"value":2}"#,
            r#""extras":{"value":1}"#,
        ),
        ("SleepStage", stage, r#""tags":["1"]"#, r#""extras":{"tags":[1]}"#),
        (
            "PlatformLocationUpdate",
            place,
            r#""longitude_degrees":180"#,
            r#""longitude_degrees":179"#,
        ),
        (
            "DietaryCaffeineConsumed",
            drink,
            r#""value":1,"unit":"g""#,
            r#""value":1001,"extras":{"original_value":1,"original_unit":"g"}"#,
        ),
    ] {
        let [one, other] = [one, other].map(|rest| format!("{{{what},{rest}}}"));
        let ids = natural_ids(name, &[&one, &other]);
        assert_ne!(ids[0], ids[1], "{name}: {one} {other}");
    }
}

#[test]
fn a_row_that_was_read_in_another_unit_is_the_record_that_was_sent() {
    let drink = |rest: &str| format!(r#"{{"start_date":"2024-05-01T10:00:00Z",{rest}}}"#);
    let sent = drink(r#""value":1,"unit":"g""#);
    for read in [
        r#""value":0.001,"unit":"kg""#,
        r#""value":1.0000000000000002,"unit":"g""#,
        r#""value":1000"#,
    ] {
        let original = r#""extras":{"original_value":1,"original_unit":"g"}"#;
        let read = drink(&format!("{read},{original}"));
        let rows = table(&asking(
            "DietaryCaffeineConsumed",
            NATURAL,
            &[&sent, &read, &sent, &read],
        ));
        assert!(rows.iter().all(|row| *row == rows[0]), "{read}: {rows:?}");
    }
}

#[test]
fn an_id_that_was_sent_stays_and_what_has_no_time_is_new_each_time() {
    let id = "0191f000-0000-7000-8000-000000000001";
    let line = format!(r#"{{"id":"{id}","start_date":"2024-05-01T10:00:00Z","value":72}}"#);
    assert_eq!(natural_ids("HeartRate", &[&line]).len(), 1);
    let pressed = asking(
        "MomentAnnotation",
        NATURAL,
        &[r#"{"note":"now"}"#, r#"{"note":"now"}"#],
    );
    assert_eq!(pressed.given, [false, false]);
    assert_ne!(cell(&pressed, "id", 0), cell(&pressed, "id", 1));
}

#[test]
fn these_ids_are_stored_and_never_change() {
    let ids = natural_ids(
        "HeartRate",
        &[r#"{"start_date":"2024-05-01T10:00:00Z","value":72,"source":"My Phone"}"#],
    );
    let id = Uuid::parse_str(&ids[0]).or_else(|_| {
        let bytes: Vec<u8> = (0..16)
            .map(|at| u8::from_str_radix(&ids[0][2 * at..2 * at + 2], 16).unwrap())
            .collect();
        Uuid::from_slice(&bytes)
    });
    assert_eq!(id.unwrap().get_version_num(), 5);
}

#[test]
fn a_writer_may_name_itself_source_or_source_name() {
    for (named, as_kept) in [
        (
            r#""source":"My Phone""#,
            r#""source_properties":{"name":"My Phone"}"#,
        ),
        (
            r#""source_name":"My Phone""#,
            r#""source_properties":{"name":"My Phone"}"#,
        ),
        (
            r#""source":"My Phone","source_name":"My Phone","source_properties":null"#,
            r#""source_properties":{"name":"My Phone"}"#,
        ),
        (
            r#""\u0073ource":"My Phone""#,
            r#""source_properties":{"name":"My Phone"}"#,
        ),
        (
            r#""source_n\u0061me":"My Phone""#,
            r#""source_properties":{"name":"My Phone"}"#,
        ),
        // It says so better already, and the name is kept as it is.
        (
            r#""source":"My Phone","source_properties":{"name":"Watch"}"#,
            r#""source_properties":{"name":"Watch"},"extras":{"source":"My Phone"}"#,
        ),
        (r#""source":5"#, r#""extras":{"source":5}"#),
    ] {
        let line = |rest: &str| {
            let id = r#""id":"0191f000-0000-7000-8000-000000000001""#;
            format!(r#"{{{id},"start_date":"2024-05-01T10:00:00Z","value":72,{rest}}}"#)
        };
        let (named, kept) = (line(named), line(as_kept));
        // The second line of a body goes the fast way.
        assert_eq!(
            table(&rows("HeartRate", &[&named, &named])),
            table(&rows("HeartRate", &[&kept, &kept])),
            "{named}"
        );
    }
    assert_eq!(
        stored(
            "HeartRate",
            r#"{"start_date":"2024-05-01","value":72,"source":"My Phone"}"#,
            "source"
        ),
        "My Phone"
    );
    let tagged = |rest: &str| {
        stored(
            "MomentAnnotation",
            &format!(r#"{{"recorded_at":"2024-05-01",{rest}}}"#),
            "sources",
        )
    };
    assert_eq!(tagged(r#""source":"app""#), tagged(r#""sources":["app"]"#));
    assert_eq!(
        tagged(r#""source":"app","sources":["d"]"#),
        tagged(r#""sources":["d","app"]"#)
    );
}

#[test]
fn a_name_of_its_writer_that_is_refused_has_the_place_where_it_was_sent() {
    let long = "x".repeat(LONGEST_SOURCE + 1);
    let sample = |rest: &str| format!(r#"{{"start_date":"2024-05-01","value":72,{rest}}}"#);
    for (wrong, kind) in [(long.as_str(), "too_long"), ("a\\u0000", "nul")] {
        for (name, rest) in [
            ("source", format!(r#""source":"{wrong}""#)),
            ("source_name", format!(r#""source_name":"{wrong}""#)),
            (
                "source",
                format!(r#""source":"{wrong}","source_name":"app","source_properties":null"#),
            ),
        ] {
            let expected = [(format!("body.7.{name}"), kind)];
            assert_eq!(refusals("HeartRate", &sample(&rest)), expected);
        }
        for rest in ["", r#","sources":["d"]"#] {
            let record = format!(r#"{{"source":"{wrong}"{rest}}}"#);
            let expected = [("body.7.source".to_owned(), kind)];
            assert_eq!(refusals("MomentAnnotation", &record), expected);
        }
        let record = format!(r#"{{"source":"app","sources":["d","{wrong}"]}}"#);
        let expected = [("body.7.sources.1".to_owned(), kind)];
        assert_eq!(refusals("MomentAnnotation", &record), expected);
    }
    let short = &long[..LONGEST_SOURCE];
    let line = sample(&format!(r#""source":"{short}""#));
    assert_eq!(stored("HeartRate", &line, "source"), short);
    // Where it is not the name of the source, it may be as long as any text.
    let line = sample(&format!(
        r#""source":"{long}","source_properties":{{"name":"Watch"}}"#
    ));
    assert!(stored("HeartRate", &line, "extras").contains(&long));
    let line = format!(r#"{{"source":"app","source_name":"{long}"}}"#);
    assert_eq!(stored("MomentAnnotation", &line, "source"), "app");
}

#[test]
fn a_source_id_has_the_length_of_a_name_on_the_fast_way_too() {
    let times = r#""start_time":"2024-05-01T10:00:00Z","end_time":"2024-05-01T11:00:00Z""#;
    let line = |length: usize| format!(r#"{{{times},"source_id":"{}"}}"#, "x".repeat(length));
    let too_long = line(LONGEST_SOURCE + 1);
    refused("DurationAnnotation", &too_long, "body.7.source_id", "too_long");
    let longest = stored("DurationAnnotation", &line(LONGEST_SOURCE), "source_id");
    assert_eq!(longest.len(), LONGEST_SOURCE);
}

#[test]
fn numbers_as_text_and_times_as_numbers_are_taken_where_that_is_declared() {
    let leave = |epoch| Leave {
        natural_ids: false,
        coercion: Some(epoch),
    };
    let id = r#""id":"0191f000-0000-7000-8000-000000000001""#;
    let times = r#""start_date":"2024-06-01T00:00:00Z","end_date":"2024-06-01T00:01:00Z""#;
    let plain = format!(r#"{{{id},{times},"value":72.5,"count":2}}"#);
    for (epoch, line) in [
        (
            Epoch::ByMagnitude,
            r#""start_date":1717200000,"end_date":1717200060000,"value":" 72.5 ","count":"2""#,
        ),
        (
            Epoch::Seconds,
            r#""start_date":"1717200000","end_date":1717200060,"value":72.5,"count":2"#,
        ),
        (
            Epoch::Milliseconds,
            r#""start_time":1717200000000,"end_time":"1717200060000","value":"72.5","count":2"#,
        ),
    ] {
        let line = format!("{{{id},{line}}}");
        assert_eq!(
            table(&asking("HeartRate", leave(epoch), &[&line, &line])),
            table(&rows("HeartRate", &[&plain, &plain])),
            "{line}"
        );
    }
    let span = format!(r#"{{{id},"recorded_at":{{"start_time":1717200000,"end_time":1717200060}}}}"#);
    let said = format!(
        r#"{{{id},"recorded_at":{{"start_time":"2024-06-01T00:00:00Z","end_time":"2024-06-01T00:01:00Z"}}}}"#
    );
    assert_eq!(
        table(&asking("DurationAnnotation", leave(Epoch::ByMagnitude), &[&span])),
        table(&rows("DurationAnnotation", &[&said]))
    );
}

#[test]
fn what_would_be_taken_if_it_were_declared_says_so() {
    for line in [
        r#"{"start_date":1717200000,"value":72}"#,
        r#"{"start_date":"1717200000","value":72}"#,
        r#"{"start_date":"2024-06-01","value":"72"}"#,
    ] {
        let faults = decoder("HeartRate").push(7, line.as_bytes()).unwrap_err();
        assert!(faults[0].message.contains("coerce=true"), "{line}: {faults:?}");
    }
    let faults = decoder("HeartRate").push(7, br#"{"start_date":"2024-06-01","value":"high"}"#);
    assert!(!faults.unwrap_err()[0].message.contains("coerce"));
}
