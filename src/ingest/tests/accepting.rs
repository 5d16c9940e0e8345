//! What a body holds while it is read.

use std::io::Write as _;
use std::time::Duration;

use super::outdated::Process;
use super::*;
use crate::ingest::accept::{AcceptError, Acceptance, Accepted};
use crate::ingest::body::{BodyForm, BodyLimits, BodyReader};
use crate::ingest::decompress::ContentEncoding;
use crate::ingest::memory::{BodyMemory, SMALL_BODY_BYTES};
use crate::ingest::named_sources::{MostSources, TooManySources};
use crate::ingest::upload::Work;
use crate::model::ids::PersonId;

const PERSON: PersonId = PersonId(Uuid::from_u128(7));
const OTHER: PersonId = PersonId(Uuid::from_u128(8));
const BUDGET: usize = 1 << 20;
const MOST: MostSources = MostSources {
    limit: 1000,
    known: 3000,
};

fn acceptance(process: &Process, name: &str, bodies: &BodyMemory) -> Acceptance {
    let compiled = COMPILED.get(&data_type(name)).unwrap();
    let memory = bodies.allowance(PERSON);
    Acceptance::new(process.shared.clone(), PERSON, compiled, context(), memory, MOST).unwrap()
}

fn lines() -> BodyReader {
    lines_in(ContentEncoding::Identity)
}

fn lines_in(encoding: ContentEncoding) -> BodyReader {
    let limits = BodyLimits {
        body: 1 << 30,
        line: 1 << 20,
    };
    BodyReader::new(BodyForm::Lines, encoding, limits).unwrap()
}

#[tokio::test]
async fn a_body_with_a_fault_holds_no_rows_beyond_a_chunk_and_all_its_faults_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::over(directory.path()).await;
    let tombstone = format!(
        r#"{{"deleted_id":"{}","deleted_type":"Event"}}"#,
        Uuid::from_u128(1)
    );
    for (name, line) in [("MomentAnnotation", "{}"), ("DeletedRecord", tombstone.as_str())] {
        let bodies = BodyMemory::new(BUDGET, Duration::ZERO);
        // The first of all bodies could exceed the budget.
        let mut first = bodies.allowance(OTHER);
        first.resize(SMALL_BODY_BYTES + 1).await.unwrap();
        let mut acceptance = acceptance(&process, name, &bodies);
        let mut reader = lines();
        acceptance.feed(&mut reader, b"5\n").await.unwrap();
        let valid = format!("{line}\n").repeat(20_000);
        for _ in 0..5 {
            acceptance.feed(&mut reader, valid.as_bytes()).await.unwrap();
            assert!(bodies.taken() < BUDGET / 2, "{name}: {}", bodies.taken());
        }
        acceptance.feed(&mut reader, b"6\n").await.unwrap();
        let Err(AcceptError::Invalid(faults)) = acceptance.finish(reader).await else {
            panic!("{name}: the body has faults");
        };
        let lines: Vec<LocPart> = faults
            .into_iter()
            .filter_map(|fault| fault.loc.into_iter().nth(1))
            .collect();
        assert_eq!(lines, [LocPart::Index(0), LocPart::Index(100_001)], "{name}");
    }
}

/// Lines of which each names another source.
fn from_sources(numbers: std::ops::Range<u32>) -> String {
    let line = |number: u32| format!("{{\"sources\":[\"com.example.{number:0>100}\"]}}\n");
    numbers.map(line).collect()
}

#[tokio::test]
async fn a_body_that_names_too_many_sources_is_refused_before_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::over(directory.path()).await;
    let bodies = BodyMemory::new(BUDGET, Duration::ZERO);
    let mut acceptance = acceptance(&process, "MomentAnnotation", &bodies);
    let mut reader = lines();
    // All that a person has may be named, even if they have more than the limit.
    let known = from_sources(0..3000);
    acceptance.feed(&mut reader, known.as_bytes()).await.unwrap();
    let again = acceptance.feed(&mut reader, known.as_bytes()).await;
    again.unwrap();
    // What is remembered of the sources counts: the rows of at most one chunk wait beside them.
    assert!(bodies.taken() > 3000 * 200, "{}", bodies.taken());
    let more = from_sources(3000..6000);
    let refused = acceptance.feed(&mut reader, more.as_bytes()).await.unwrap_err();
    assert!(
        matches!(
            refused,
            AcceptError::TooManySources(TooManySources { limit: 1000 })
        ),
        "{refused}"
    );
    acceptance.abandon().await;
}

#[tokio::test]
async fn the_types_that_tombstones_name_count() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::over(directory.path()).await;
    let bodies = BodyMemory::new(BUDGET, Duration::ZERO);
    let mut acceptance = acceptance(&process, "DeletedRecord", &bodies);
    let (id, name) = (Uuid::from_u128(1), "x".repeat(10_000));
    let tombstone = format!("{{\"deleted_id\":\"{id}\",\"deleted_type\":\"{name}\"}}\n");
    let body = tombstone.repeat(20);
    acceptance.feed(&mut lines(), body.as_bytes()).await.unwrap();
    assert!(bodies.taken() > 20 * 10_000, "{}", bodies.taken());
}

#[tokio::test]
async fn rows_that_take_far_more_than_their_compressed_lines_are_written_in_chunks() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::over(directory.path()).await;
    let bodies = BodyMemory::new(32 * BUDGET, Duration::ZERO);
    // The first of all bodies could exceed the budget.
    let mut first = bodies.allowance(OTHER);
    first.resize(SMALL_BODY_BYTES + 1).await.unwrap();
    let mut acceptance = acceptance(&process, "MomentAnnotation", &bodies);
    let mut reader = lines_in(ContentEncoding::Gzip);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all("{}\n".repeat(300_000).as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    assert!(packed.len() < reader.step(), "{}", packed.len());
    acceptance.feed(&mut reader, &packed).await.unwrap();
    let (Accepted::Rows(recorded), _) = acceptance.finish(reader).await.unwrap() else {
        panic!("records are rows");
    };
    let Work::Written(written) = recorded.work else {
        panic!("a large body is written");
    };
    assert_eq!(written.live(), 300_000);
    let most = written.pieces.all().iter().map(|piece| piece.rows).max();
    assert!(most < Some(100_000), "{most:?}");
}
