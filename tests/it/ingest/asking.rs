//! What a writer may ask for: that the same record counts once, and that numbers are taken as they come.

use serde_json::{Value, json};

use crate::harness::{Call, Person, id, instant, number, person};

fn steps(from: u32, to: u32) -> Vec<Value> {
    let one = |n: u32| {
        json!({
            "start_date": instant(n), "end_date": instant(n + 1), "value": 3, "source": "My Phone",
        })
    };
    (from..to).map(one).collect()
}

fn naturally(person: &Person, data_type: &str, lines: &[Value]) -> Call {
    person.lines(data_type, lines).with("dedupe", "natural")
}

#[tokio::test]
async fn batches_that_overlap_count_once() {
    let person = person();
    assert_eq!(
        naturally(&person, "StepCount", &steps(0, 100)).await.counts(),
        [100, 0, 0, 0]
    );
    assert_eq!(
        naturally(&person, "StepCount", &steps(50, 150)).await.counts(),
        [50, 0, 50, 0]
    );
    // A large body finds what small ones stored.
    assert_eq!(
        naturally(&person, "StepCount", &steps(0, 9_000)).await.counts(),
        [8_850, 0, 150, 0]
    );
    let mut corrected = steps(10, 11);
    corrected[0]["value"] = json!(4);
    assert_eq!(
        naturally(&person, "StepCount", &corrected).await.counts(),
        [0, 1, 0, 0]
    );
    let samples = person.all_samples("StepCount").await;
    let sum: f64 = samples.iter().map(|sample| number(sample, "value")).sum();
    assert_eq!((samples.len(), sum), (9_000, 27_001.0));
    assert_eq!(samples[0]["source_properties"]["name"], "My Phone");
    // Unasked, every record is new.
    assert_eq!(
        person.lines("StepCount", &steps(0, 2)).await.counts(),
        [2, 0, 0, 0]
    );
    assert_eq!(
        naturally(&person, "StepCount", &[])
            .with("dedupe", "fuzzy")
            .await
            .faults()[0],
        "query.dedupe"
    );
}

#[tokio::test]
async fn numbers_as_they_come_are_taken_where_that_is_declared() {
    let person = person();
    let record = json!({"id": id(1), "start_date": 1_717_200_000, "value": "72.5"});
    let refused = person.record("HeartRate", &record).await;
    assert!(refused.text().contains("coerce=true"), "{refused}");
    let mut faults = refused.faults();
    faults.sort();
    assert_eq!(faults, ["body.start_date", "body.value"]);
    let taken = person.record("HeartRate", &record).with("coerce", "true").await;
    assert_eq!(taken.counts(), [1, 0, 0, 0]);
    let milliseconds = json!({"id": id(1), "start_date": 1_717_200_000_000_i64, "value": 72.5});
    let again = person
        .record("HeartRate", &milliseconds)
        .with("coerce", "true")
        .with("epoch", "milliseconds");
    assert_eq!(again.await.counts(), [0, 0, 1, 0]);
    let sample = &person.all_samples("HeartRate").await[0];
    assert_eq!(sample["start_date"], "2024-06-01T00:00:00Z");
    assert_eq!(number(sample, "value"), 72.5);
}

#[tokio::test]
async fn a_number_for_a_time_that_no_text_can_tell_is_refused_like_that_text() {
    let person = person();
    for (number, epoch, counted) in [
        ("1704067200123", "seconds", "seconds"),
        ("253402300800", "seconds", "seconds"),
        ("-62135596801", "seconds", "seconds"),
        ("-99999999999", "by_magnitude", "seconds"),
        ("-100000000000000", "by_magnitude", "milliseconds"),
        ("253402300800000", "milliseconds", "milliseconds"),
        ("\"-62135596800001\"", "milliseconds", "milliseconds"),
    ] {
        let sent = person.ingest("Event").with("coerce", "true").with("epoch", epoch);
        let sent = sent.header("content-type", "application/json");
        let reply = sent.body(format!(r#"{{"start_time": {number}}}"#)).await;
        assert_eq!(reply.faults(), ["body.start_time"], "{number} {epoch}");
        let told = format!("; in {counted} since 1970 it is outside the years 1 to 9999");
        assert!(reply.text().contains(&told), "{reply}");
        assert!(!reply.text().contains("coerce=true"), "{reply}");
    }
    for (number, moment) in [
        (-62_135_596_800_i64, "0001-01-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ] {
        let record = json!({"id": id(1), "start_time": number});
        let sent = person.record("Event", &record).with("coerce", "true");
        sent.with("epoch", "seconds").await.must_be(201);
        let same = json!({"id": id(1), "start_time": moment});
        assert_eq!(
            person.record("Event", &same).await.counts(),
            [0, 0, 1, 0],
            "{moment}"
        );
    }
}

#[tokio::test]
async fn a_body_of_another_shape_is_told_what_to_send() {
    let person = person();
    let send = |media_type: &str, body: &str| {
        person
            .ingest("HeartRate")
            .header("content-type", media_type)
            .body(body.to_owned())
    };
    let record = json!({"start_date": instant(0), "value": 60}).to_string();
    for (media_type, body, told) in [
        (
            "application/json",
            format!("{record}\n{record}"),
            "one a line, as application/x-jsonl",
        ),
        (
            "application/json",
            format!("[{record}]"),
            "send its elements one a line",
        ),
        (
            "application/json",
            record[..20].to_owned(),
            "breaks off at byte 20",
        ),
        (
            "application/x-jsonl",
            format!("{record}\n[{record}]"),
            "without brackets and commas",
        ),
        (
            "application/x-jsonl",
            format!("{record}{record}"),
            "each record on a line of its own",
        ),
        (
            "application/x-jsonl",
            format!("{record},\n{record}"),
            "each record on a line of its own",
        ),
    ] {
        let reply = send(media_type, &body).await;
        assert!(reply.text().contains(told), "{body}: {reply}");
        assert!(reply.faults()[0].starts_with("body"), "{reply}");
    }
    let reply = send("application/x-www-form-urlencoded", &record).await;
    assert!(
        reply.text().contains("application/x-www-form-urlencoded"),
        "{reply}"
    );
    reply.problem(415);
    assert!(person.all_samples("HeartRate").await.is_empty());
}
