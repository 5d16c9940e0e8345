//! Names for positions.
//!
//! A geocoder lives as long as the process and is shared by all questions. The one that comes with the
//! product needs no network; an operator may name a service instead. Whoever asks gets a place, nothing, or
//! an error that they may pass over: no answer is refused because a name is missing.

pub mod offline;
pub mod service;

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::model::geo::Position;
use crate::model::ids::PersonId;

/// Metres beyond which a place says nothing about a position.
pub const FARTHEST: f64 = 100_000.0;

/// Why a position got no name.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GeocoderError {
    #[error("the places that come with the product cannot be read: {0}")]
    Places(String),
    #[error("the geocoder at {url} cannot be used: {reason}")]
    Address { url: String, reason: String },
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
    /// The whole in one line.
    pub formatted: String,
    /// What kind of place it is, such as `city`.
    pub kind: Option<String>,
    pub city: Option<String>,
    pub county: Option<String>,
    pub state: Option<String>,
    pub state_code: Option<String>,
    pub postcode: Option<String>,
    pub country: Option<String>,
    /// Two small letters.
    pub country_code: Option<String>,
    pub latitude: f64,
    pub longitude: f64,
    /// Metres from the position that was asked about.
    pub distance: f64,
    /// Where the country has only one.
    pub time_zone: Option<String>,
    /// Who has to be named wherever this is shown.
    pub attribution: Arc<str>,
}

/// Finds names for positions.
pub trait Geocoder: Debug + Send + Sync {
    /// The place at a position; `None` where there is none within `FARTHEST`. When this returns an error, the
    /// same question may be answered later. How long it takes says nothing about what others than `reader`
    /// asked before.
    fn locate(
        &self,
        reader: PersonId,
        position: Position,
    ) -> BoxFuture<'_, Result<Option<Arc<Place>>, GeocoderError>>;

    /// Changes whenever an answer given before may have lacked names that it would have now.
    fn edition(&self) -> u64;
}
