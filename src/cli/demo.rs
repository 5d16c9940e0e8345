//! The sample person of `serve --demo`: two weeks of an invented life, embedded, and what to try on it.
//!
//! Records keep their ids, so that loading them again changes nothing. How the files are made is said in `data/make_sample.py`.

use uuid::Uuid;

use crate::api::app::App;
use crate::ingest::accept::{Acceptance, Accepted};
use crate::ingest::body::{BodyForm, BodyLimits, BodyReader};
use crate::ingest::decode::DecodeContext;
use crate::ingest::decompress::ContentEncoding;
use crate::ingest::upload::{Upload, Work};
use crate::model::ids::{PersonId, UploadId};

use super::Failed;

pub const PERSON: PersonId = PersonId(Uuid::from_u128(0x5a3d_1e00_0000_4000_8000_0000_0000_0001));

pub const NAME: &str = "Sam Sample";

/// All records of one type: JSON lines in gzip, as a client would post them.
#[derive(Clone, Copy, Debug)]
pub struct SampleFile {
    pub data_type: &'static str,
    pub body: &'static [u8],
}

macro_rules! sample_files {
    ($($data_type:literal),+ $(,)?) => {
        [$(SampleFile {
            data_type: $data_type,
            body: include_bytes!(concat!("../../data/sample/", $data_type, ".jsonl.gz")),
        }),+]
    };
}

pub const FILES: [SampleFile; 14] = sample_files![
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

/// Records the sample person's life.
pub async fn load(app: &App) -> Result<(), Failed> {
    app.catalog.ensure_person(PERSON, Some(NAME)).await.map_err(Failed::from_error)?;
    for SampleFile { data_type, body } in FILES {
        let failed =
            |error: &dyn std::fmt::Display| Failed::because(format!("the sample {data_type} records could not be loaded: {error}"));
        record(app, data_type, body).await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

async fn record(app: &App, data_type: &str, body: &[u8]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let named = app.types.find(PERSON, data_type).await?;
    let compiled = app.compiled.get(&named.data_type)?;
    let context = DecodeContext {
        now: app.clock.now(),
        ids: app.ids.clone(),
        source_prefix: app.settings.source_prefix.as_str().into(),
    };
    let mut acceptance = Acceptance::new(app.intake.clone(), PERSON, compiled, context)?;
    let limits = BodyLimits {
        body: app.settings.body_limit as u64,
        line: app.settings.body_limit,
    };
    let mut reader = BodyReader::new(BodyForm::Lines, ContentEncoding::Gzip, limits)?;
    acceptance.feed(&mut reader, body).await?;
    let (work, sources) = match acceptance.finish(reader).await? {
        Accepted::Rows { work, sources } => (work, sources),
        Accepted::Deletions(_) => (Work::Small(Vec::new()), Vec::new()),
    };
    app.commits
        .commit(Upload {
            person: PERSON,
            upload: UploadId(app.ids.next()),
            key: None,
            work,
            sources,
        })
        .await?;
    Ok(())
}

/// What is printed once the person is there: a token, and requests that use it.
#[must_use]
pub fn invitation(url: &str, token: &str) -> String {
    let day = "start_time=2024-06-04&end_time=2024-06-05";
    let header = format!("-H 'Authorization: Bearer {token}'");
    format!(
        "{NAME} ({PERSON}) lives here from 2024-06-03 to 2024-06-17. A token for them:\n\n{token}\n\nTo try:\n\n\
         curl {header} '{url}/data/v0/{PERSON}/metric_samples?metric=HeartRate&{day}&output=csv'\n\n\
         curl {header} '{url}/data/v1alpha1/event/MomentAnnotation?{day}&filter=note:coffee'\n\n\
         curl {header} -H 'Content-Type: application/json' -d '{{\"value\": 74, \"unit\": \"kg\", \"start_date\": \"2024-06-16T07:00:00Z\"}}' '{url}/ingest/v1/record/Weight'\n\n\
         The whole interface: {url}/docs"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use serde_json::Value;

    use super::*;

    #[test]
    fn the_embedded_files_are_the_sample() {
        let about: Value = serde_json::from_slice(include_bytes!("../../data/sample/person.json")).unwrap();
        assert_eq!(about["person"], PERSON.to_string());
        assert_eq!(about["name"], NAME);
        let wanted: BTreeMap<&str, u64> = about["records"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(data_type, count)| (data_type.as_str(), count.as_u64().unwrap()))
            .collect();
        let lines = |file: &SampleFile| {
            let mut text = String::new();
            flate2::read::GzDecoder::new(file.body).read_to_string(&mut text).unwrap();
            text.lines().count() as u64
        };
        let embedded: BTreeMap<&str, u64> = FILES.iter().map(|file| (file.data_type, lines(file))).collect();
        assert_eq!(embedded, wanted);
    }

    #[test]
    fn the_invitation_has_a_token_and_three_requests() {
        let text = invitation("http://127.0.0.1:8080", "a.b.c");
        assert_eq!(text.matches("curl ").count(), 3);
        assert!(text.lines().any(|line| line == "a.b.c"));
    }
}
