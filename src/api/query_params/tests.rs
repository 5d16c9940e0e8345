//! How parameters are read, which faults they have, and how the readers describe them.

use std::str::FromStr;

use super::*;
use crate::auth::grants::Stated;
use crate::model::faults::LocPart;
use crate::model::time::{Instant, TimeRange};

fn names(params: Params<'_>) -> Vec<(String, &'static str)> {
    let name = |fault: &Fault| match fault.loc.as_slice() {
        [LocPart::Name(place), LocPart::Name(name)] if place == "query" => name.clone(),
        other => panic!("{other:?}"),
    };
    params
        .into_faults()
        .iter()
        .map(|fault| (name(fault), fault.kind))
        .collect()
}

#[test]
fn percent_and_plus_are_decoded() {
    let mut params = Params::parse("data_type=Event%2F0191&name=a+b%20c%C3%A9&odd=100%&empty=&bare");
    assert_eq!(params.text("data_type").as_deref(), Some("Event/0191"));
    assert_eq!(params.text("name").as_deref(), Some("a b cé"));
    assert_eq!(params.text("odd").as_deref(), Some("100%"));
    assert_eq!(params.text("empty").as_deref(), Some(""));
    assert_eq!(params.text("bare").as_deref(), Some(""));
    assert_eq!(params.text("absent"), None);
    assert_eq!(names(params), []);
    let mut params = Params::parse("plus=%2B%2b&sign=%+f&half=%4&none=%zz&twice=%2541&pair=%%41&blank=%4+");
    for (name, decoded) in [
        ("plus", "++"),
        ("sign", "% f"),
        ("half", "%4"),
        ("none", "%zz"),
        ("twice", "%41"),
        ("pair", "%A"),
        ("blank", "%4 "),
    ] {
        assert_eq!(params.text(name).as_deref(), Some(decoded), "{name}");
    }
}

#[test]
fn a_value_that_is_no_text_is_one_fault_where_it_is_asked_for() {
    let mut params = Params::parse("name=%FF&start=%FF");
    assert_eq!(params.text("name"), None);
    assert_eq!(params.text("name"), None);
    assert_eq!(params.open_range(), None);
    assert_eq!(params.ignored(), []);
    assert_eq!(
        names(params),
        [
            ("name".to_owned(), "string_unicode"),
            ("start".to_owned(), "string_unicode")
        ]
    );
}

#[test]
fn what_is_no_text_is_ignored_where_nobody_asks_for_it() {
    let mut params = Params::parse("svc_userid=%FF&colour=%FF&colour=red&a%FF=1&%FE");
    params.do_not_know("svc_userid");
    assert_eq!(params.owner(), None);
    let ignored: Vec<String> = params.ignored().iter().map(ToString::to_string).collect();
    assert_eq!(ignored, ["\"a%FF\"", "colour", "svc_userid", "\"%FE\""]);
    assert_eq!(names(params), []);
}

#[test]
fn only_moments_that_the_route_reads_are_stated() {
    let mut params = Params::parse("time=2024-01-03&start=2024-01-01&end_time=2024-01-06");
    assert_eq!(params.stated(), Stated::default());
    let time = params.instant("time");
    assert!(time.is_some());
    assert_eq!(
        params.stated(),
        Stated {
            start: time,
            end: time
        }
    );
    assert_eq!(params.ignored().len(), 2, "stating reads nothing more");
    let range = params.range().unwrap();
    let stated = Stated {
        start: Some(range.start()),
        end: Some(range.end()),
    };
    assert_eq!(params.stated(), stated);
    assert_eq!(names(params), []);
}

#[test]
fn a_fault_in_what_is_stated_is_noted_once() {
    let mut params = Params::parse("start_time=junk&end_time=2024-01-06");
    assert_eq!(params.range(), None);
    assert_eq!(params.stated().start, None);
    assert_eq!(names(params), [("start_time".to_owned(), "datetime_parsing")]);
}

#[test]
fn a_plus_before_an_offset_may_arrive_as_a_blank() {
    for text in [
        "2024-01-24T00:00:00%2B01:00",
        "2024-01-24T00:00:00+01:00",
        "2024-01-24 00:00:00 01:00",
    ] {
        let query = format!("time={}", text.replace(' ', "%20"));
        let mut params = Params::parse(&query);
        assert_eq!(
            params.instant("time").map(Instant::micros),
            Some(1_706_050_800_000_000),
            "{text}"
        );
    }
}

#[test]
fn a_range_needs_both_ends_in_order() {
    let faults = |query: &str| {
        let mut params = Params::parse(query);
        assert_eq!(params.range(), None, "{query}");
        names(params)
    };
    let fault = |name: &str, kind| (name.to_owned(), kind);
    assert_eq!(
        faults(""),
        [fault("start_time", "missing"), fault("end_time", "missing")]
    );
    assert_eq!(
        faults("start_time=2024-01-01&end_time=x"),
        [fault("end_time", "datetime_parsing")]
    );
    assert_eq!(
        faults("start_time=2024-01-02&end_time=2024-01-01"),
        [fault("end_time", "value_error")]
    );
    let mut params = Params::parse("start_time=2024-01-01&end_time=2024-01-01");
    assert!(params.range().is_some_and(TimeRange::is_empty));
    assert!(Params::parse("").open_range().is_some());
    assert!(Params::parse("start_time=x").open_range().is_none());
}

#[test]
fn booleans_arrive_in_six_spellings() {
    for (text, value) in [
        ("true", true),
        ("True", true),
        ("1", true),
        ("false", false),
        ("False", false),
        ("0", false),
    ] {
        let flag = Params::parse(&format!("flag={text}")).flag_or("flag", !value);
        assert_eq!(flag, Some(value));
    }
    let mut params = Params::parse("flag=yes");
    assert_eq!(params.flag_or("flag", true), None);
    assert_eq!(names(params), [("flag".to_owned(), "bool_parsing")]);
}

#[test]
fn lists_repeat_or_have_commas() {
    let mut params = Params::parse("metrics=a&metrics=b,%20c,&filter=x:1,2&filter=y:3");
    assert_eq!(params.list("metrics"), ["a", "b", "c"]);
    assert_eq!(params.repeated("filter"), ["x:1,2", "y:3"]);
    assert_eq!(params.list("absent"), [""; 0]);
}

#[test]
fn numbers_and_ids_are_checked() {
    let mut params = Params::parse(
        "a=60&b=0.5&c=inf&d=1.5&e=0191f000-0000-7000-8000-000000000001&f=x&g=99999999999999999999",
    );
    let any = (i64::MIN, i64::MAX);
    assert_eq!(params.integer("a", any), Some(60));
    assert_eq!(params.number_from("b", f64::NEG_INFINITY), Some(0.5));
    assert_eq!(
        (params.number_from("c", 0.0), params.integer("d", any)),
        (None, None)
    );
    assert!(params.uuid("e").is_some() && params.uuid("f").is_none());
    assert_eq!(params.integer("g", any), None);
    let kinds: Vec<&str> = names(params).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(
        kinds,
        ["finite_number", "int_parsing", "uuid_parsing", "int_parsing_size"]
    );
}

#[test]
fn a_value_that_is_no_text_is_not_missing_too() {
    let mut params = Params::parse("metric=%FF&start=%FF&end_time=2024-01-02&words=%FF");
    assert_eq!(params.required_text("metric"), None);
    assert_eq!(params.range(), None);
    assert_eq!(params.required_list("words", "name some"), None);
    let kinds: Vec<&str> = names(params).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["string_unicode"; 3]);
}

#[test]
fn a_parameter_that_a_request_does_not_have_is_ignored_whatever_its_value() {
    let mut params = Params::parse("svc_userid=junk&svc_useridd=1");
    params.do_not_know("svc_userid");
    assert_eq!(params.owner(), None);
    let ignored: Vec<String> = params.ignored().iter().map(ToString::to_string).collect();
    assert_eq!(ignored, ["svc_userid", "svc_useridd"]);
    assert_eq!(names(params), []);
}

#[test]
fn choices_name_what_there_is() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Asc;
    impl Choice for Asc {
        fn all() -> Vec<Self> {
            vec![Self]
        }
        fn name(self) -> &'static str {
            "asc"
        }
    }
    impl FromStr for Asc {
        type Err = &'static str;
        fn from_str(text: &str) -> Result<Self, Self::Err> {
            if text == "asc" {
                Ok(Self)
            } else {
                Err("expected asc")
            }
        }
    }
    let mut params = Params::parse("sort=asc&other=down");
    assert_eq!(params.required_choice("sort"), Some(Asc));
    assert_eq!(params.choice::<Asc>("other"), None);
    assert_eq!(params.required_choice::<Asc>("absent"), None);
    assert_eq!(params.choices::<Asc>("sort"), Some(vec![Asc]));
    let faults = params.into_faults();
    assert_eq!(
        faults
            .iter()
            .map(|fault| fault.message.as_str())
            .collect::<Vec<_>>(),
        ["expected asc", "this parameter is required"]
    );
}

#[test]
fn what_was_never_asked_for_is_ignored_once_and_harmlessly() {
    let mut params = Params::parse("known=1&colour=red&colour=blue&b%0D%0Aad=1");
    params.text("known");
    let ignored: Vec<String> = params.ignored().iter().map(ToString::to_string).collect();
    assert_eq!(ignored, ["\"b%0D%0Aad\"", "colour"]);
}

#[test]
fn how_many_more_are_ignored_is_told_last() {
    let told = |count: usize| {
        let query: Vec<String> = (0..count).map(|number| format!("c{number:03}=1")).collect();
        let query = query.join("&");
        let params = Params::parse(&query);
        params.ignored_header(&params.ignored())
    };
    assert!(told(100).ends_with("c098, c099"));
    assert!(told(101).ends_with("c098, c099, 1"));
    // A name that looks like it is in quotes.
    let params = Params::parse("1=1");
    assert_eq!(params.ignored_header(&params.ignored()), "\"1\"");
}

#[test]
fn what_is_ignored_is_an_item_of_a_structured_list() {
    for (sent, told) in [
        ("colour", "colour"),
        ("*", "*"),
        ("a-b.c_d", "a-b.c_d"),
        ("a%2Fb:c", "a/b:c"),
        ("_", "\"_\""),
        ("1st", "\"1st\""),
        ("", "\"\""),
        ("[]", "\"[]\""),
        ("a[0]", "\"a[0]\""),
        ("%E2%9C%93", "\"%E2%9C%93\""),
        ("100%25", "\"100%25\""),
        ("a%25b", "\"a%25b\""),
        ("a%20b", "\"a b\""),
        ("a%2C%20b", "\"a, b\""),
        ("a%3Bb", "\"a;b\""),
        ("a%22b", "\"a\\\"b\""),
        ("a%5Cb", "\"a\\\\b\""),
        ("a%00%7Fb", "\"a%00%7Fb\""),
    ] {
        let query = format!("{sent}=1");
        let ignored: Vec<String> = Params::parse(&query)
            .ignored()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(ignored, [told], "{sent}");
    }
    let ignored = Params::parse("=&x").ignored();
    let names: Vec<String> = ignored.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["\"\"", "x"]);
    let mut params = Params::parse("windowsize=1&window_size%5B%5D=2");
    params.text("window_size");
    let names: Vec<String> = params.ignored().iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "\"window_size[]\";nearest=window_size",
            "windowsize;nearest=window_size"
        ]
    );
}

#[test]
fn what_is_ignored_comes_with_the_nearest_name() {
    let mut params = Params::parse("windowsize=1&STARTTIME=x&timezone=y&colour=red");
    let _asked = (params.open_range(), params.text("window_size"), params.zone("tz"));
    let ignored: Vec<String> = params.ignored().iter().map(ToString::to_string).collect();
    assert_eq!(
        ignored,
        [
            "STARTTIME;nearest=start_time",
            "colour",
            "timezone;nearest=time_zone",
            "windowsize;nearest=window_size"
        ]
    );
}

#[test]
fn a_parameter_may_be_sent_by_its_other_names() {
    let mut params = Params::parse("start=2024-01-01&end=2024-01-02&time_zone=Europe%2FBerlin");
    assert!(params.range().is_some());
    assert_eq!(params.zone("tz").map(|zone| zone.name()), Some("Europe/Berlin"));
    assert_eq!(params.ignored(), []);
    assert_eq!(names(params), []);
}

#[test]
fn two_names_of_one_parameter_must_agree() {
    let zone = |query: &str| {
        let mut params = Params::parse(query);
        let zone = params.zone("tz").map(|zone| zone.name());
        (zone, names(params))
    };
    assert_eq!(zone("tz=UTC&time_zone=UTC"), (Some("UTC"), vec![]));
    assert_eq!(
        zone("time_zone=Asia%2FTokyo&tz=UTC"),
        (Some("UTC"), vec![("tz".to_owned(), "value_error")])
    );
}

#[test]
fn a_whole_number_out_of_bounds_is_told_which_bound_it_breaks() {
    let too_small = |least: &str| format!("is too small; the least is {least}");
    let too_large = |most: &str| format!("is too large; the most is {most}");
    for (sent, taken, fault) in [
        ("1", Some(1), None),
        ("%2B1000", Some(1000), None),
        ("0", None, Some(("greater_than_equal", too_small("1")))),
        ("-5", None, Some(("greater_than_equal", too_small("1")))),
        ("1001", None, Some(("less_than_equal", too_large("1000")))),
        (
            "99999999999999999999",
            None,
            Some(("int_parsing_size", too_large("1000"))),
        ),
        (
            "-99999999999999999999",
            None,
            Some(("int_parsing_size", too_small("1"))),
        ),
        (
            "-",
            None,
            Some(("int_parsing", "is not a whole number".to_owned())),
        ),
    ] {
        let query = format!("limit={sent}");
        for otherwise in [None, Some(100)] {
            let mut params = Params::parse(&query);
            let read = match otherwise {
                Some(otherwise) => params.integer_or("limit", (1, 1000), otherwise),
                None => params.integer("limit", (1, 1000)),
            };
            assert_eq!(read, taken, "{sent}");
            let faults = params.into_faults();
            assert_eq!(faults.len(), usize::from(fault.is_some()), "{sent}");
            for (found, (kind, message)) in faults.iter().zip(&fault) {
                assert_eq!(found.kind, *kind, "{sent}");
                assert!(found.message.ends_with(message.as_str()), "{sent}: {found:?}");
            }
        }
    }
}

#[test]
fn a_fault_is_told_by_the_name_that_was_sent() {
    let mut params = Params::parse("start=never&end_time=2024-01-02&time_zone=Mars");
    let _faulty = (params.range(), params.zone("tz"));
    assert_eq!(
        names(params),
        [
            ("start".to_owned(), "datetime_parsing"),
            ("time_zone".to_owned(), "enum")
        ]
    );
}

#[test]
fn a_zone_is_described_wherever_a_parameter_may_require_one() {
    struct Nights;
    impl FromParams for Nights {
        fn from_params(params: &mut Params<'_>) -> Option<Self> {
            params.nights().map(|_| Self)
        }
    }
    struct InLocalDays;
    impl FromParams for InLocalDays {
        fn from_params(params: &mut Params<'_>) -> Option<Self> {
            let (_range, _zone) = (params.range(), params.zone("time_zone"));
            Some(Self)
        }
    }
    let names = |asked: Vec<ReadParam>| asked.iter().map(|asked| asked.name).collect::<Vec<_>>();
    assert_eq!(names(described::<Nights>()), ["night_of", "tz", "strict"]);
    let with_its_own = ["start_time", "end_time", "dates", "time_zone", "strict"];
    assert_eq!(names(described::<InLocalDays>()), with_its_own);
}

#[test]
fn what_a_reader_asks_for_is_what_is_described() {
    struct Query;
    impl FromParams for Query {
        fn from_params(params: &mut Params<'_>) -> Option<Self> {
            let (range, zone) = (params.range(), params.zone("tz"));
            let look_back = params.integer_or("look_back", (0, 3600), 60);
            let _derive = params.flag_or("derive", true);
            let _stages = params.bracketed("stages", Form::ANY_WHOLE, Need::Optional);
            range?;
            zone?;
            look_back?;
            Some(Self)
        }
    }
    let shown: Vec<serde_json::Value> = described::<Query>()
        .iter()
        .map(|asked| serde_json::to_value(asked.parameter()).unwrap())
        .collect();
    let part = |member: &str| -> Vec<&serde_json::Value> { shown.iter().map(|one| &one[member]).collect() };
    assert_eq!(
        part("name"),
        [
            "start_time",
            "end_time",
            "dates",
            "tz",
            "look_back",
            "derive",
            "stages",
            "strict"
        ]
    );
    assert_eq!(
        part("required"),
        [true, true, false, false, false, false, false, false]
    );
    assert_eq!(
        shown[0]["schema"],
        serde_json::json!({"type": "string", "format": "date-time"})
    );
    assert_eq!(shown[2]["schema"]["default"], "utc");
    assert_eq!(shown[3]["schema"]["default"], "UTC");
    assert_eq!(shown[3]["x-aliases"], serde_json::json!(["time_zone"]));
    assert_eq!(
        shown[4]["schema"],
        serde_json::json!({
            "type": "integer", "format": "int64", "default": 60, "minimum": 0, "maximum": 3600,
        })
    );
    assert_eq!(shown[5]["schema"]["default"], true);
    assert_eq!(shown[6]["schema"]["items"]["type"], "integer");
    assert_eq!(shown[6]["example"], serde_json::json!([4]));
}

#[test]
fn dates_are_those_of_utc_or_of_the_zone_that_is_asked_for() {
    let range = |query: &str| {
        let mut params = Params::parse(query);
        let range = params.range();
        assert_eq!(range, params.understood());
        let shown = range.map(|range| (range.start().to_rfc3339(), range.end().to_rfc3339()));
        (shown, names(params))
    };
    let both = |start: &str, end: &str| Some((start.to_owned(), end.to_owned()));
    let dates = "start_time=2024-06-03&end_time=2024-06-04";
    assert_eq!(
        range(dates).0,
        both("2024-06-03T00:00:00Z", "2024-06-04T00:00:00Z")
    );
    for query in [
        format!("{dates}&dates=local&tz=Asia/Tokyo"),
        format!("{dates}&dates=local&time_zone=Asia/Tokyo"),
    ] {
        assert_eq!(
            range(&query).0,
            both("2024-06-02T15:00:00Z", "2024-06-03T15:00:00Z")
        );
    }
    // A value with a time is that moment.
    let mixed = "start_time=2024-06-03T00:00:00Z&end_time=2024-06-04&dates=local&tz=Asia/Tokyo";
    assert_eq!(
        range(mixed).0,
        both("2024-06-03T00:00:00Z", "2024-06-03T15:00:00Z")
    );
    let fault = [("dates".to_owned(), "value_error")];
    assert_eq!(range(&format!("{dates}&dates=local")).1, fault);
    for (zones, fault) in [
        ("tz=Mars", ("tz", "enum")),
        ("time_zone=Mars", ("time_zone", "enum")),
        ("tz=Asia/Tokyo&time_zone=UTC", ("tz", "value_error")),
    ] {
        let faults = range(&format!("{dates}&dates=local&{zones}")).1;
        assert_eq!(faults, [(fault.0.to_owned(), fault.1)]);
    }
}

#[test]
fn a_zone_that_is_read_twice_is_refused_once() {
    let mut params = Params::parse("start_time=2024-06-03&end_time=2024-06-04&dates=local&tz=Mars");
    let _asked = (params.range(), params.zone("tz"));
    assert_eq!(names(params), [("tz".to_owned(), "enum")]);
}
