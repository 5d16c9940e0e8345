//! Names for positions.
//!
//! A geocoder lives as long as the process and is shared by all questions. The built-in one needs no network;
//! an operator may configure a service instead. A caller gets a place, nothing, or an error that it may
//! ignore: no answer is refused because a name is missing.

pub mod offline;
pub mod service;

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::model::geo::Position;
use crate::model::ids::PersonId;

/// The greatest distance in metres at which a place describes a position.
pub const FARTHEST: f64 = 100_000.0;

/// Why a position got no name.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GeocoderError {
    #[error("the places that come with the product cannot be read: {0}")]
    Places(String),
    /// The address is not repeated: there may be a password in it.
    #[error("the geocoder (ALMANAC_GEOCODER_URL) cannot be used: {0}")]
    Address(String),
    #[error("the geocoder did not answer: {0}")]
    Unavailable(String),
    #[error("the geocoder is left alone for a while, because it did not answer")]
    Resting,
    #[error("the person has asked about as many places as they may for now")]
    Spent,
    #[error("the geocoder answered something that is not a place: {0}")]
    Unreadable(String),
}

/// A place with a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The whole address in one line.
    pub formatted: String,
    /// The kind of place, such as `city`.
    pub kind: Option<String>,
    pub city: Option<String>,
    pub county: Option<String>,
    pub state: Option<String>,
    pub state_code: Option<String>,
    pub postcode: Option<String>,
    pub country: Option<String>,
    /// Two lowercase letters.
    pub country_code: Option<String>,
    pub latitude: f64,
    pub longitude: f64,
    /// Metres from the position in question.
    pub distance: f64,
    /// Only where the country has a single one.
    pub time_zone: Option<String>,
    /// The attribution that is required wherever this is shown.
    pub attribution: Arc<str>,
}

/// Finds names for positions.
pub trait Geocoder: Debug + Send + Sync {
    /// The place at a position; `None` where there is none within `FARTHEST`. After an error, the same
    /// question may succeed later. The response time must not reveal what anybody but `reader` asked before.
    fn locate(
        &self,
        reader: PersonId,
        position: Position,
    ) -> BoxFuture<'_, Result<Option<Arc<Place>>, GeocoderError>>;

    /// Changes whenever an earlier answer may lack names that it would have now.
    fn edition(&self) -> u64;

    /// Drops from memory what anybody asked and what the answers were.
    fn forget_all(&self);
}
