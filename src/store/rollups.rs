//! Rollups: summaries of a piece's values in each minute, quarter of an hour and hour, source by source.
//!
//! The writer of an object that stays for long keeps them in it, month by month, so that a process that has
//! read nothing yet reads years of them in milliseconds. Knows times, values and sources; knows nothing of
//! where rollups may replace rows.

pub(super) mod gather;
pub(super) mod keeping;
pub(super) mod stored_rollups;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use chrono::{DateTime, Datelike as _, Months, NaiveDate, NaiveTime};
use serde::{Deserialize, Serialize};

use crate::model::columns::{SOURCE, SOURCE_CLASS, START};
use crate::model::registry::{dictionary_text, timestamp};

pub use gather::{GatheredRollups, Gatherer, together};

/// The least number of rows per rollup for rollups to be made; those of many amounts, which no object keeps,
/// are made of fewer too.
pub const ROWS_A_ROLLUP: i64 = 3;

/// The columns of rollups besides their start and the source.
pub const COUNT: &str = "count";
pub const SUM: &str = "sum";
pub const LEAST: &str = "least";
pub const GREATEST: &str = "greatest";

/// The length of a rollup. The edges of every zone's periods fall on quarters of an hour since 1970, those of
/// most zones on hours, and most windows on minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    Minute,
    Quarter,
    Hour,
}

impl Step {
    pub const COARSE_FIRST: [Self; 3] = [Self::Hour, Self::Quarter, Self::Minute];

    #[must_use]
    pub const fn micros(self) -> i64 {
        match self {
            Self::Minute => 60_000_000,
            Self::Quarter => 900_000_000,
            Self::Hour => 3_600_000_000,
        }
    }
}

/// A calendar month in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Month {
    /// Months since year 0.
    pub number: i64,
    pub time: Range<i64>,
}

impl Month {
    /// The month of a moment, within the range of calendars.
    #[must_use]
    pub fn of(moment: i64) -> Option<Self> {
        let date = DateTime::from_timestamp_micros(moment)?.date_naive();
        let first = date.with_day(1)?;
        let next = first.checked_add_months(Months::new(1))?;
        let micros = |date: NaiveDate| date.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
        Some(Self {
            number: i64::from(date.year()) * 12 + i64::from(date.month0()),
            time: micros(first)..micros(next),
        })
    }
}

/// The columns of rollups. Rollups are in the order of their starts.
#[must_use]
pub fn schema() -> SchemaRef {
    let number = |name: &str| Field::new(name, DataType::Float64, false);
    Arc::new(Schema::new(vec![
        Field::new(START, timestamp(), false),
        Field::new(COUNT, DataType::Int64, false),
        number(SUM),
        number(LEAST),
        number(GREATEST),
        Field::new(SOURCE, dictionary_text(), true),
        Field::new(SOURCE_CLASS, DataType::Int8, false),
    ]))
}
