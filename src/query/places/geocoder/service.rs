//! Places from a service with Nominatim's interface, for operators who run or rent one.
//!
//! Every position that is named is sent to that service. Answers are cached, bounded, by cells of some ten
//! metres and separately for each reader: a fast answer would reveal to others that somebody was there. Each
//! reader has a limit, since the operator's terms with the service apply to all together. A service that does
//! not answer in time is not asked for a while, so that it delays one question and not all of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Deserialize;
use tokio::time::Instant;

use crate::model::cache::{Cache, ShortLived};
use crate::model::geo::Position;
use crate::model::ids::PersonId;
use crate::model::meters::GeocoderMeters;

use super::{FARTHEST, Geocoder, GeocoderError, Place};

/// How long a service that failed is not asked.
const REST: Duration = Duration::from_secs(10);
/// The time to which `ServiceSettings::per_person` applies.
const BUDGET_TIME: Duration = Duration::from_mins(1);
/// The number of people whose questions are counted. Beyond it, the count of the one who asked longest ago
/// restarts.
const COUNTED_PEOPLE: u64 = 10_000;
/// Cells per degree: each is some eleven metres from north to south.
const CELLS: f64 = 10_000.0;
/// The longest answer that is accepted, in bytes.
const LARGEST_ANSWER: usize = 256 * 1024;
/// Services require that clients identify themselves.
const USER_AGENT: &str = concat!("almanac/", env!("CARGO_PKG_VERSION"));

/// Settings of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    /// Without a slash at the end; requests go to `/reverse` below it.
    pub url: String,
    /// How long to wait for an answer.
    pub timeout: Duration,
    /// How many answers are cached.
    pub cache: u64,
    /// How many positions are sent per minute for one reader.
    pub per_person: u64,
}

/// A geocoder that asks a service.
#[derive(Debug)]
pub struct Service {
    url: reqwest::Url,
    client: reqwest::Client,
    known: Cache<(PersonId, i32, i32), Option<Arc<KnownPlace>>>,
    per_person: u64,
    /// The number of positions for each reader since their current minute began.
    asked: ShortLived<PersonId, Arc<AtomicU64>>,
    resting_until: Mutex<Option<Instant>>,
    /// Changes with each position that got no name but might get one later, so that such an answer is never
    /// mistaken for a final one. It begins anywhere: another process, or this one before a restart, must not
    /// have said the same of other positions.
    nameless: AtomicU64,
    meters: GeocoderMeters,
}

impl Service {
    pub fn new(settings: &ServiceSettings, meters: GeocoderMeters) -> Result<Self, GeocoderError> {
        let url = format!("{}/reverse", settings.url);
        let url = reqwest::Url::parse(&url).map_err(|error| GeocoderError::Address(error.to_string()))?;
        // A redirect would send positions to a host that the operator did not configure.
        let client = reqwest::Client::builder()
            .timeout(settings.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(USER_AGENT)
            .no_proxy()
            .build();
        Ok(Self {
            url,
            client: client.map_err(|error| GeocoderError::Address(error.to_string()))?,
            known: Cache::of(settings.cache),
            per_person: settings.per_person,
            asked: ShortLived::of(COUNTED_PEOPLE, BUDGET_TIME),
            resting_until: Mutex::default(),
            nameless: AtomicU64::new(rand::random()),
            meters,
        })
    }

    async fn found(
        &self,
        reader: PersonId,
        position: Position,
    ) -> Result<Option<Arc<KnownPlace>>, GeocoderError> {
        let cell = (
            reader,
            (position.latitude * CELLS).round() as i32,
            (position.longitude * CELLS).round() as i32,
        );
        // Concurrent questions about the same cell wait for one answer.
        self.known.get_or_find(&cell, self.ask(reader, position)).await
    }

    async fn ask(
        &self,
        reader: PersonId,
        position: Position,
    ) -> Result<Option<Arc<KnownPlace>>, GeocoderError> {
        if self.is_resting() {
            self.nameless.fetch_add(1, Ordering::Relaxed);
            return Err(GeocoderError::Resting);
        }
        let asked = self.asked.get_or_make(&reader, Arc::default);
        if asked.fetch_add(1, Ordering::Relaxed) >= self.per_person {
            self.nameless.fetch_add(1, Ordering::Relaxed);
            return Err(GeocoderError::Spent);
        }
        self.meters.asked.inc();
        let answer = self.fetched(position).await;
        if let Err(error) = &answer {
            self.failed(error);
        }
        answer
    }

    async fn fetched(&self, position: Position) -> Result<Option<Arc<KnownPlace>>, GeocoderError> {
        let failed = |error: reqwest::Error| GeocoderError::Unavailable(error.without_url().to_string());
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("format", "jsonv2")
            .append_pair("addressdetails", "1")
            .append_pair("lat", &position.latitude.to_string())
            .append_pair("lon", &position.longitude.to_string());
        let mut response = self.client.get(url).send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(GeocoderError::Unavailable(format!(
                "it answered {}",
                response.status()
            )));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                return Err(GeocoderError::Unreadable(format!(
                    "more than {LARGEST_ANSWER} bytes"
                )));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer::read(&body)?.found()?.map(Arc::new))
    }

    fn is_resting(&self) -> bool {
        let until = *self.resting_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn failed(&self, error: &GeocoderError) {
        self.meters.failures.inc();
        self.nameless.fetch_add(1, Ordering::Relaxed);
        *self.resting_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + REST);
        // The log must not contain the position.
        tracing::warn!(%error, "no name for a position");
    }
}

impl Geocoder for Service {
    fn locate(
        &self,
        reader: PersonId,
        position: Position,
    ) -> BoxFuture<'_, Result<Option<Arc<Place>>, GeocoderError>> {
        async move {
            let found = self.found(reader, position).await?;
            Ok(found.and_then(|found| found.place(position)).map(Arc::new))
        }
        .boxed()
    }

    fn edition(&self) -> u64 {
        self.nameless.load(Ordering::Relaxed)
    }

    /// How often people asked stays: it says nothing of positions, and is over in a minute.
    fn forget_all(&self) {
        self.known.clear();
    }
}

/// The parts of the service's response that are used.
#[derive(Debug, Deserialize)]
struct Answer {
    error: Option<serde_json::Value>,
    display_name: Option<String>,
    lat: Option<Degrees>,
    lon: Option<Degrees>,
    licence: Option<String>,
    addresstype: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    address: Address,
}

/// Degrees arrive as a number or as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Degrees {
    Number(f64),
    Text(String),
}

impl Degrees {
    fn within(&self, limit: f64) -> Option<f64> {
        let degrees = match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
        };
        degrees.filter(|degrees: &f64| degrees.abs() <= limit)
    }
}

#[derive(Debug, Default, Deserialize)]
struct Address {
    city: Option<String>,
    town: Option<String>,
    village: Option<String>,
    municipality: Option<String>,
    hamlet: Option<String>,
    county: Option<String>,
    state: Option<String>,
    #[serde(rename = "ISO3166-2-lvl4")]
    state_code: Option<String>,
    postcode: Option<String>,
    country: Option<String>,
    country_code: Option<String>,
}

/// A place without the distance to the position in question.
#[derive(Debug)]
struct KnownPlace {
    place: Place,
}

impl Answer {
    /// An error says where reading ended, and never what stands there: it goes to the log.
    fn read(body: &[u8]) -> Result<Self, GeocoderError> {
        serde_json::from_slice(body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            GeocoderError::Unreadable(format!("line {line}, column {column}"))
        })
    }

    /// `None` where the service knows no place.
    fn found(self) -> Result<Option<KnownPlace>, GeocoderError> {
        if self.error.is_some() {
            return Ok(None);
        }
        let position = (
            self.lat.as_ref().and_then(|degrees| degrees.within(90.0)),
            self.lon.as_ref().and_then(|degrees| degrees.within(180.0)),
        );
        let (Some(formatted), (Some(latitude), Some(longitude))) = (self.display_name, position) else {
            return Err(GeocoderError::Unreadable(
                "no display_name, lat and lon".to_owned(),
            ));
        };
        let address = self.address;
        let city = [
            address.city,
            address.town,
            address.village,
            address.municipality,
            address.hamlet,
        ];
        // `US-CA`: the country has a field of its own.
        let state_code = address.state_code.map(|code| match code.split_once('-') {
            Some((_, state)) => state.to_owned(),
            None => code,
        });
        let place = Place {
            formatted,
            kind: self.addresstype.or(self.kind),
            city: city.into_iter().flatten().next(),
            county: address.county,
            state: address.state,
            state_code,
            postcode: address.postcode,
            country: address.country,
            country_code: address.country_code.map(|code| code.to_ascii_lowercase()),
            latitude,
            longitude,
            distance: 0.0,
            time_zone: None,
            attribution: self.licence.unwrap_or_default().into(),
        };
        Ok(Some(KnownPlace { place }))
    }
}

impl KnownPlace {
    fn place(&self, position: Position) -> Option<Place> {
        let distance = position.distance_to(Position::new(self.place.latitude, self.place.longitude));
        (distance <= FARTHEST).then(|| Place {
            distance,
            ..self.place.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<KnownPlace>, GeocoderError> {
        Answer::read(text.as_bytes())?.found()
    }

    #[test]
    fn an_answer_is_a_place() {
        let found = read(
            r#"{"place_id": 1, "licence": "Data by its contributors", "lat": "64.1466", "lon": -21.9426, "type": "administrative", "addresstype": "city",
            "display_name": "Main Street 1, Reykjavik, Iceland", "address": {"road": "Main Street", "town": "Reykjavik", "ISO3166-2-lvl4": "IS-1",
            "postcode": "101", "country": "Iceland", "country_code": "IS"}}"#,
        );
        let place = found
            .unwrap()
            .unwrap()
            .place(Position::new(64.147, -21.9426))
            .unwrap();
        assert_eq!(place.formatted, "Main Street 1, Reykjavik, Iceland");
        assert_eq!(
            (place.city.as_deref(), place.state_code.as_deref()),
            (Some("Reykjavik"), Some("1"))
        );
        assert_eq!(
            (place.country_code.as_deref(), place.kind.as_deref()),
            (Some("is"), Some("city"))
        );
        assert!((place.distance - 44.5).abs() < 0.1, "{}", place.distance);
        assert_eq!(&*place.attribution, "Data by its contributors");
    }

    #[test]
    fn an_answer_of_another_shape_is_told_by_its_place() {
        let text = r#"{"display_name": "x", "address": "Main Street 77"}"#;
        let error = read(text).unwrap_err().to_string();
        assert!(
            error.contains("line 1, column ") && !error.contains("Main"),
            "{error}"
        );
    }

    #[test]
    fn the_open_sea_has_no_place_and_nonsense_is_an_error() {
        assert!(read(r#"{"error": "Unable to geocode"}"#).unwrap().is_none());
        for nonsense in [
            "{}",
            r#"{"display_name": "x", "lat": "north", "lon": "0"}"#,
            r#"{"display_name": "x", "lat": 91, "lon": 0}"#,
        ] {
            assert!(read(nonsense).is_err(), "{nonsense}");
        }
        let far = read(r#"{"display_name": "far", "lat": 1.0, "lon": 0.0}"#)
            .unwrap()
            .unwrap();
        assert_eq!(far.place(Position::new(0.0, 0.0)), None);
    }
}
