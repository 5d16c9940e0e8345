//! The built-in geocoder: the nearest of some 144,000 towns and villages of GeoNames, searched on the unit
//! sphere, so that positions near a pole or the antimeridian find their places too.
//!
//! The places are loaded on first use, on a thread that may block, and stay in memory from then on.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reverse_geocoder::{Record, ReverseGeocoder};
use serde::Deserialize;
use tokio::sync::OnceCell;

use crate::model::geo::Position;
use crate::model::ids::PersonId;

use super::{FARTHEST, Geocoder, GeocoderError, Place};

const ATTRIBUTION: &str = "GeoNames (https://www.geonames.org/), CC BY 4.0";
const COUNTRIES: &str = include_str!("countries.tsv");

/// A geocoder without a network.
#[derive(Debug)]
pub struct Offline {
    loaded: OnceCell<Arc<Gazetteer>>,
    attribution: Arc<str>,
}

impl Default for Offline {
    fn default() -> Self {
        Self {
            loaded: OnceCell::new(),
            attribution: ATTRIBUTION.into(),
        }
    }
}

impl Geocoder for Offline {
    fn locate(
        &self,
        _reader: PersonId,
        position: Position,
    ) -> BoxFuture<'_, Result<Option<Arc<Place>>, GeocoderError>> {
        async move {
            let gazetteer = self.loaded.get_or_try_init(load).await?;
            Ok(gazetteer.nearest(position, &self.attribution).map(Arc::new))
        }
        .boxed()
    }

    fn edition(&self) -> u64 {
        0
    }

    /// Nothing that anybody asked is kept.
    fn forget_all(&self) {}
}

async fn load() -> Result<Arc<Gazetteer>, GeocoderError> {
    let reading = tokio::task::spawn_blocking(Gazetteer::read).await;
    let gazetteer = reading.map_err(|error| GeocoderError::Places(error.to_string()))??;
    Ok(Arc::new(gazetteer))
}

/// Places and the names of countries.
struct Gazetteer {
    places: ReverseGeocoder,
    countries: HashMap<String, Country>,
}

impl std::fmt::Debug for Gazetteer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Gazetteer").finish_non_exhaustive()
    }
}

/// A line of `countries.tsv`.
#[derive(Debug, Deserialize)]
struct Country {
    code: String,
    name: String,
    /// Only where the whole country has the same.
    time_zone: Option<String>,
}

impl Gazetteer {
    fn read() -> Result<Self, GeocoderError> {
        let mut table = csv::ReaderBuilder::new()
            .delimiter(b'\t')
            .quoting(false)
            .from_reader(COUNTRIES.as_bytes());
        let countries: Result<Vec<Country>, csv::Error> = table.deserialize().collect();
        let countries = countries.map_err(|error| GeocoderError::Places(error.to_string()))?;
        Ok(Self {
            places: ReverseGeocoder::new(),
            countries: countries
                .into_iter()
                .map(|country| (country.code.clone(), country))
                .collect(),
        })
    }

    fn nearest(&self, position: Position, attribution: &Arc<str>) -> Option<Place> {
        let record = self.places.search((position.latitude, position.longitude)).record;
        let distance = position.distance_to(Position::new(record.lat, record.lon));
        (distance <= FARTHEST).then(|| self.place(record, distance, attribution))
    }

    fn place(&self, record: &Record, distance: f64, attribution: &Arc<str>) -> Place {
        let said = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let country = self.countries.get(&record.cc);
        let (city, county, state) = (said(&record.name), said(&record.admin2), said(&record.admin1));
        let name = country.map(|country| country.name.clone());
        let mut line: Vec<&str> = Vec::new();
        for part in [&city, &state, &name].into_iter().flatten() {
            if line.last() != Some(&part.as_str()) {
                line.push(part);
            }
        }
        Place {
            formatted: line.join(", "),
            kind: Some("city".to_owned()),
            city,
            county,
            state,
            state_code: None,
            postcode: None,
            country: name,
            country_code: said(&record.cc).map(|code| code.to_ascii_lowercase()),
            latitude: record.lat,
            longitude: record.lon,
            distance,
            time_zone: country.and_then(|country| country.time_zone.clone()),
            attribution: Arc::clone(attribution),
        }
    }
}

#[cfg(test)]
mod tests;
