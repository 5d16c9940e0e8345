//! From the bytes of a body to Arrow rows: how many records a core decodes in a second, by the way they take.
#![expect(clippy::expect_used, reason = "a benchmark that cannot run should stop")]

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use almanac::ingest::body::{BodyForm, BodyLimits, BodyReader};
use almanac::ingest::compile::{CompiledType, CompiledTypes};
use almanac::ingest::context::{DecodeContext, Leave};
use almanac::ingest::decode::RecordDecoder;
use almanac::ingest::decompress::ContentEncoding;
use almanac::model::faults::Fault;
use almanac::model::ids::IdSource;
use almanac::model::registry::Registry;
use almanac::model::time::{Instant, parse_instant};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use uuid::Uuid;

const RECORDS: u64 = 10_000;
const CHUNK: usize = 64 * 1024;
const LIMITS: BodyLimits = BodyLimits {
    body: 64 * 1024 * 1024,
    line: 1024 * 1024,
};

/// Ids that cost next to nothing, so that decoding is what is measured.
struct Counting(AtomicU64);

impl IdSource for Counting {
    fn next(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

/// A body whose lines `line` writes: the line's number, its start and its end.
fn body(line: impl Fn(&mut String, u64, &str, &str)) -> Vec<u8> {
    let first = parse_instant("2024-01-01T00:00:00Z").map_or(0, Instant::micros);
    let mut text = String::new();
    for number in 0..RECORDS {
        let start = Instant::from_micros(first + number as i64 * 5_000_000);
        let end = Instant::from_micros(start.micros() + 5_000_000);
        line(&mut text, number, &start.to_rfc3339(), &end.to_rfc3339());
        text.push('\n');
    }
    text.into_bytes()
}

fn id(number: u64) -> Uuid {
    Uuid::from_u128(0x0191_f0c4_5b1e_7c3a_9d52_0000_0000_0000 | u128::from(number))
}

fn times(start: &str, end: &str) -> String {
    format!(r#""start_date":"{start}","end_date":"{end}""#)
}

const MOVEMENT: &str = concat!(
    r#""horizontal_accuracy_meters":4.75,"speed":-1,"course_heading_degrees":-1,"#,
    r#""altitude_meters":35.1234"#,
);

const WATCH: &str = concat!(
    r#""source_properties":{"name":"Watch","version":"10.4","productType":"Watch6,2","#,
    r#""operatingSystemVersion":"10.4.0","sourceBundleIdentifier":"com.example.health"},"#,
    r#""device_properties":{"name":"Watch","model":"Watch","manufacturer":"Example","#,
    r#""hardwareVersion":"Watch6,2","softwareVersion":"10.4"}"#,
);

fn decode(body: &[u8], compiled: &Arc<CompiledType>, context: &DecodeContext) -> usize {
    let mut decoder = RecordDecoder::new(Arc::clone(compiled), context.clone()).expect("a decoder");
    let mut reader = BodyReader::new(BodyForm::Lines, ContentEncoding::Identity, LIMITS).expect("a reader");
    for chunk in body.chunks(CHUNK) {
        reader
            .feed(chunk, |place, json| decoder.push(place, json))
            .expect("valid lines");
    }
    reader
        .finish(|place, json| -> Result<(), Vec<Fault>> { decoder.push(place, json) })
        .expect("valid lines");
    decoder.take().expect("rows").rows.num_rows()
}

/// Bodies, with what is measured by each and the type of its records.
fn cases() -> [(&'static str, &'static str, Vec<u8>); 6] {
    [
        (
            "samples with ids",
            "HeartRate",
            body(|text, number, start, end| {
                let (id, times, value) = (id(number), times(start, end), 60 + number % 60);
                let _ = write!(text, r#"{{"id":"{id}",{times},"value":{value}.5,"unit":"bpm"}}"#);
            }),
        ),
        (
            "samples with ids and sources",
            "HeartRate",
            body(|text, number, start, end| {
                let (id, times, value) = (id(number), times(start, end), 60 + number % 60);
                let _ = write!(
                    text,
                    r#"{{"id":"{id}",{times},"value":{value}.5,"unit":"bpm",{WATCH}}}"#
                );
            }),
        ),
        (
            "samples without ids",
            "StepCount",
            body(|text, number, start, end| {
                let _ = write!(
                    text,
                    r#"{{"start_date": "{start}", "end_date": "{end}", "value": {}}}"#,
                    number % 100
                );
            }),
        ),
        (
            "samples in another unit",
            "Weight",
            body(|text, number, start, _| {
                let _ = write!(
                    text,
                    r#"{{"start_date":"{start}","value":{}.25,"unit":"kg"}}"#,
                    60 + number % 40
                );
            }),
        ),
        (
            "places",
            "PlatformLocationUpdate",
            body(|text, number, start, _| {
                let id = id(number);
                let degrees =
                    format!(r#""latitude_degrees":52.{number:05},"longitude_degrees":13.{number:05}"#);
                let _ = write!(
                    text,
                    r#"{{"uuid":"{id}","timestamp":"{start}",{degrees},{MOVEMENT}}}"#
                );
            }),
        ),
        (
            "samples with extras, the complete way",
            "HeartRate",
            body(|text, number, start, end| {
                let times = times(start, end);
                let _ = write!(text, r#"{{{times},"value":72,"extras":{{"motion":{number}}}}}"#);
            }),
        ),
    ]
}

fn records(criterion: &mut Criterion) {
    let registry = Arc::new(Registry::builtin().expect("the built-in types"));
    let types = CompiledTypes::new(Arc::clone(&registry));
    let now = parse_instant("2030-01-01T00:00:00Z").expect("a time");
    let context = DecodeContext {
        now,
        ids: Arc::new(Counting(AtomicU64::new(0))),
        source_prefix: "com.almanac".into(),
        text_limit: 1 << 20,
        definition: None,
        value_limits: Arc::default(),
        leave: Leave::default(),
    };
    let mut group = criterion.benchmark_group("decode");
    group
        .throughput(Throughput::Elements(RECORDS))
        .measurement_time(Duration::from_secs(4))
        .warm_up_time(Duration::from_secs(1));
    for (name, data_type, body) in &cases() {
        let compiled = types
            .get(registry.get(data_type).expect("a built-in type"))
            .expect("a compiled type");
        assert_eq!(decode(body, &compiled, &context), RECORDS as usize);
        group.bench_function(*name, |bencher| {
            bencher.iter(|| decode(body, &compiled, &context));
        });
    }
    group.finish();
}

criterion_group!(benches, records);
criterion_main!(benches);
