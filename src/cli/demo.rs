//! The sample person: two weeks of one life, recorded like anybody's records, for people who want to ask
//! questions at once.
//!
//! Loading takes the path of every request, and happens once: what is deleted or corrected later stays so.
//! Where it broke off it is repeated, and adds what is missing, because every record has its id.

use uuid::Uuid;

use crate::api::app::App;
use crate::catalog::{Catalog, CatalogError};
use crate::ingest::accept::{Acceptance, Accepted};
use crate::ingest::body::{BodyForm, BodyLimits, BodyReader};
use crate::ingest::context::{DecodeContext, Leave};
use crate::ingest::decompress::ContentEncoding;
use crate::ingest::named_sources::MostSources;
use crate::ingest::upload::Upload;
use crate::model::ids::{PersonId, UploadId};

use super::failed::Failed;

/// Sam Sample's id.
pub(super) const PERSON: PersonId = PersonId(Uuid::from_u128(0x5a3d_1e00_0000_4000_8000_0000_0000_0001));
pub(super) const NAME: &str = "Sam Sample";

macro_rules! sample {
    ($($data_type:literal),* $(,)?) => {
        [$(($data_type, include_bytes!(concat!("../../data/sample/", $data_type, ".jsonl.gz")).as_slice())),*]
    };
}

/// The types in the order in which they are loaded.
const RECORDS: [(&str, &[u8]); 14] = sample![
    "ActiveCaloriesBurned",
    "Calendar",
    "CalendarEvent",
    "HeartRate",
    "HeartRateVariabilitySDNN",
    "MomentAnnotation",
    "NumericAnnotation",
    "PlatformLocationUpdate",
    "PlatformLocationVisit",
    "PlatformWorkout",
    "RestingHeartRate",
    "SleepStage",
    "StepCount",
    "Weight",
];

/// What has become of the sample person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SamplePerson {
    Missing,
    Loaded,
    Erased,
}

async fn sample_person(catalog: &Catalog) -> Result<SamplePerson, CatalogError> {
    let erasure = catalog.erasure_of(PERSON).await?;
    if erasure.is_some_and(|erasure| !erasure.is_over()) {
        return Ok(SamplePerson::Erased);
    }
    if !catalog.person_exists(PERSON).await? {
        return Ok(erasure.map_or(SamplePerson::Missing, |_| SamplePerson::Erased));
    }
    // Whoever came back after an erasure has a life of their own.
    let is_loaded = erasure.is_some() || has_the_last_records(catalog).await?;
    Ok(if is_loaded {
        SamplePerson::Loaded
    } else {
        SamplePerson::Missing
    })
}

/// Whether loading came to its end. A partition stays when its records are deleted, and comes back with its
/// person where the catalogue is made anew from the store.
async fn has_the_last_records(catalog: &Catalog) -> Result<bool, CatalogError> {
    let [.., (last, _)] = RECORDS;
    match catalog.partitions_of(PERSON).await {
        // Whatever it was, it is not made better by loading.
        Err(CatalogError::Corrupt { .. }) => Ok(true),
        partitions => Ok(partitions?
            .iter()
            .any(|partition| partition.data_type.as_str() == last)),
    }
}

/// Records the sample person's life, unless that was done before. `false`: the person was erased.
pub(super) async fn load(app: &App) -> Result<bool, Failed> {
    match sample_person(&app.catalog).await.map_err(Failed::from_error)? {
        SamplePerson::Missing => {}
        SamplePerson::Loaded => return Ok(true),
        SamplePerson::Erased => return Ok(false),
    }
    app.catalog
        .ensure_person(PERSON, Some(NAME))
        .await
        .map_err(Failed::from_error)?;
    for (data_type, body) in RECORDS {
        let failed = |error: &dyn std::fmt::Display| {
            Failed::because(format!(
                "the sample {data_type} records could not be loaded: {error}"
            ))
        };
        record(app, data_type, body)
            .await
            .map_err(|error| failed(&error))?;
    }
    Ok(true)
}

async fn record(
    app: &App,
    data_type: &str,
    body: &[u8],
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let named = app.types.find(PERSON, data_type).await?;
    let compiled = app.compiled.get(&named.data_type)?;
    let context = DecodeContext {
        now: app.clock.now(),
        ids: app.ids.clone(),
        source_prefix: app.settings.source_prefix.as_str().into(),
        text_limit: app.settings.text_limit,
        definition: None,
        value_limits: std::sync::Arc::default(),
        leave: Leave::default(),
    };
    let memory = app.bodies.allowance(PERSON);
    let most = MostSources::ANY;
    let mut acceptance = Acceptance::new(app.intake.clone(), PERSON, compiled, context, memory, most)?;
    let limits = BodyLimits {
        body: app.settings.body_limit as u64,
        line: app.settings.body_limit,
    };
    let mut reader = BodyReader::new(BodyForm::Lines, ContentEncoding::Gzip, limits)?;
    acceptance.feed(&mut reader, body).await?;
    let (Accepted::Rows(recorded), _) = acceptance.finish(reader).await? else {
        return Err("the sample person's records are no tombstones".into());
    };
    app.commits
        .commit(Upload {
            person: PERSON,
            upload: UploadId(app.ids.next()),
            key: None,
            work: recorded.work,
            sources: recorded.sources,
            memory: Some(recorded.memory),
            held: None,
        })
        .await?;
    Ok(())
}

/// Commands that a newcomer can try.
#[must_use]
pub(super) fn invitation(url: &str, token: &str) -> String {
    let range = "start_time=2024-06-03T00:00:00Z&end_time=2024-06-04T00:00:00Z";
    format!(
        "The sample person is {PERSON} ({NAME}); the records are from 3 to 16 June \
         2024.\n\nTOKEN={token}\n\ncurl -H \"Authorization: Bearer $TOKEN\" \
         \"{url}/data/v0/{PERSON}/metric_samples?metric=HeartRate&{range}&output=csv\"\ncurl -H \
         \"Authorization: Bearer $TOKEN\" \"{url}/data/v1alpha1/event/MomentAnnotation?{range}\"\ncurl -H \
         \"Authorization: Bearer $TOKEN\" -H \"Content-Type: application/json\" -d \
         '{{\"start_date\":\"2024-06-03T12:00:00Z\",\"value\":71}}' \
         \"{url}/ingest/v1/record/HeartRate?dedupe=natural\"\n\nThe whole interface: {url}/docs\n"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::catalog::erasures::Erasure;
    use crate::catalog::records::{Bounds, Commit, NewPiece, NewPlace, PartitionChange};
    use crate::catalog::test_databases::address_in;
    use crate::model::clock::{Clock as _, SystemClock};
    use crate::model::erasure::ErasureMark;
    use crate::model::ids::PieceId;
    use crate::model::registry::TypeId;
    use crate::model::time::Instant;

    #[tokio::test]
    async fn the_sample_is_loaded_once_and_never_again() {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let found = async || sample_person(&catalog).await.unwrap();
        assert_eq!(found().await, SamplePerson::Missing);
        // It broke off.
        catalog.ensure_person(PERSON, Some(NAME)).await.unwrap();
        catalog.commit(first_of("StepCount")).await.unwrap();
        assert_eq!(found().await, SamplePerson::Missing);
        catalog.commit(first_of("Weight")).await.unwrap();
        assert_eq!(found().await, SamplePerson::Loaded);
        catalog.begin_erasure(PERSON).await.unwrap();
        assert_eq!(found().await, SamplePerson::Erased);
        catalog.close().await;
    }

    #[tokio::test]
    async fn whoever_was_erased_is_not_loaded_again_into_a_catalogue_that_is_made_anew() {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let found = async || sample_person(&catalog).await.unwrap();
        let now = SystemClock.now();
        let over = Erasure {
            mark: ErasureMark::of(PERSON),
            person: None,
            begun_at: now,
            purged_at: None,
            ended_at: Some(now),
        };
        catalog.enter_erasure(&over).await.unwrap();
        assert_eq!(found().await, SamplePerson::Erased);
        catalog.ensure_person(PERSON, Some(NAME)).await.unwrap();
        assert_eq!(found().await, SamplePerson::Loaded);
        catalog.close().await;
    }

    /// The first record of a type.
    fn first_of(data_type: &str) -> Commit {
        let moment = Instant::from_micros(0);
        let first = NewPiece {
            id: PieceId(Uuid::now_v7()),
            rows: 1,
            bounds: Bounds {
                min_start: moment,
                max_start: moment,
                max_end: moment,
            },
            layout_version: 1,
            checksum: 0,
            bytes: 4,
            place: NewPlace::Tail {
                blob: bytes::Bytes::from_static(b"rows"),
                memory: 4,
            },
        };
        let change = PartitionChange {
            person: PERSON,
            data_type: TypeId::new(data_type),
            expected: None,
            add: vec![first],
            dead: Vec::new(),
            records_delta: 1,
            updates: 1,
        };
        Commit {
            changes: vec![change],
            ..Commit::default()
        }
    }

    #[test]
    fn the_embedded_records_are_the_sample() {
        let about: Value = serde_json::from_slice(include_bytes!("../../data/sample/person.json")).unwrap();
        assert_eq!(about["person"], PERSON.to_string());
        assert_eq!(about["name"], NAME);
        let wanted: BTreeMap<&str, u64> = about["records"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(data_type, count)| (data_type.as_str(), count.as_u64().unwrap()))
            .collect();
        let lines = |body: &[u8]| {
            let mut text = String::new();
            flate2::read::GzDecoder::new(body)
                .read_to_string(&mut text)
                .unwrap();
            text.lines().count() as u64
        };
        let embedded: BTreeMap<&str, u64> = RECORDS
            .iter()
            .map(|(data_type, body)| (*data_type, lines(body)))
            .collect();
        assert_eq!(embedded, wanted);
    }
}
