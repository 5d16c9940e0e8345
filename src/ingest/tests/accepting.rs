//! What a body holds while it is read.

use std::time::Duration;

use super::outdated::Process;
use super::*;
use crate::ingest::accept::{AcceptError, Acceptance};
use crate::ingest::body::{BodyForm, BodyLimits, BodyReader};
use crate::ingest::decompress::ContentEncoding;
use crate::ingest::memory::BodyMemory;
use crate::model::ids::PersonId;

const PERSON: PersonId = PersonId(Uuid::from_u128(7));
const OTHER: PersonId = PersonId(Uuid::from_u128(8));
const BUDGET: usize = 1 << 20;

fn acceptance(process: &Process, name: &str, bodies: &BodyMemory) -> Acceptance {
    let compiled = COMPILED.get(&data_type(name)).unwrap();
    let memory = bodies.allowance(PERSON);
    Acceptance::new(process.shared.clone(), PERSON, compiled, context(), memory).unwrap()
}

fn lines() -> BodyReader {
    let limits = BodyLimits {
        body: 1 << 30,
        line: 1 << 20,
    };
    BodyReader::new(BodyForm::Lines, ContentEncoding::Identity, limits).unwrap()
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
        first.resize(1).await.unwrap();
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
