//! Where somebody was, and when they meant to be somewhere: locations, visits, calendars, workouts.
//!
//! Positions have two sources: the device (`mobile_os`), which also reports visits, and a maps provider
//! (`maps`). Raw reads return rows as they were recorded, in the shape that clients know; derived ones (where
//! at a time, a series of places, stays) use only plausible fixes. Everything is read through permits;
//! nothing here knows HTTP.

mod as_of;
pub mod at_time;
pub mod bounds;
pub mod calendar;
mod fixes;
pub mod geocoder;
pub mod named;
mod open_ends;
pub mod raw;
pub mod series;
pub mod stays;
pub mod updates;
pub mod visits;
pub mod workouts;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::model::excerpt::beginning;
use crate::model::permit::ReadPermit;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};
use crate::store::snapshot::Snapshot;

use super::for_others::OriginalLength;
pub use super::ground::events::{CALENDAR_EVENTS, PLATFORM_VISITS};
use super::ground::scan::Selection;
use super::ground::table::PartitionTable;
use super::{QueryError, Questions, ReadState, Scope, TypedPartition};

pub const PLATFORM_UPDATES: &str = "PlatformLocationUpdate";
pub const MAPS_UPDATES: &str = "MapsLocationUpdate";
pub const WORKOUTS: &str = "PlatformWorkout";
pub const CALENDARS: &str = "Calendar";

/// The source of a position. Earlier ones take precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LocationSource {
    MobileOs,
    Maps,
}

impl LocationSource {
    pub const ALL: [Self; 2] = [Self::MobileOs, Self::Maps];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MobileOs => "mobile_os",
            Self::Maps => "maps",
        }
    }

    /// The type of its updates.
    #[must_use]
    pub const fn updates(self) -> &'static str {
        match self {
            Self::MobileOs => PLATFORM_UPDATES,
            Self::Maps => MAPS_UPDATES,
        }
    }

    /// The kind that its updates have in an answer.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::MobileOs => "platform_location_update",
            Self::Maps => "maps_location_update",
        }
    }
}

/// A name that is not a source of locations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown source of locations {0:?}; use one of mobile_os, maps")]
pub struct UnknownSource(String);

impl FromStr for LocationSource {
    type Err = UnknownSource;

    fn from_str(text: &str) -> Result<Self, UnknownSource> {
        Self::ALL
            .into_iter()
            .find(|source| source.name() == text)
            .ok_or_else(|| UnknownSource(beginning(text).into_owned()))
    }
}

impl fmt::Display for LocationSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A type of one person, with the permit to read it.
#[derive(Debug)]
pub struct Granted<Authority> {
    pub permit: ReadPermit<Authority>,
    pub partition: TypedPartition,
}

/// A type of one person that may be read, with its present snapshot.
struct Pinned<'a, Authority> {
    granted: &'a Granted<Authority>,
    snapshot: Arc<Snapshot>,
}

impl<Authority> Pinned<'_, Authority> {
    /// The visible windows inside `wanted`.
    fn windows(&self, wanted: Option<TimeRange>) -> Vec<TimeRange> {
        let all = self.granted.permit.windows().as_slice();
        match wanted {
            None => all.to_vec(),
            Some(wanted) => all.iter().filter_map(|window| window.overlap(wanted)).collect(),
        }
    }

    /// Whether any rows of `wanted` may be visible, judging by the bounds of pieces.
    fn may_have_rows(&self, wanted: Option<TimeRange>) -> bool {
        let wanted = Selection {
            windows: self.windows(wanted).into(),
            begins: None,
        };
        let mut pieces = self.snapshot.pieces.iter();
        pieces.any(|piece| wanted.may_hold(piece.bounds))
    }

    fn scope(&self) -> Scope {
        Scope::of([&self.granted.permit])
    }

    fn state(&self) -> ReadState {
        ReadState::of(&self.granted.permit, &self.granted.partition, &self.snapshot)
    }
}

/// A source with the present snapshot of its updates.
type PinnedSource<'a, Authority> = (LocationSource, Pinned<'a, Authority>);

/// Those of `sources` that may have rows of `wanted`, or the first if none has: most people have updates of
/// only one source, and nothing needs to be planned for the others.
fn with_rows<'s, 'a, Authority>(
    sources: &'s [PinnedSource<'a, Authority>],
    wanted: Option<TimeRange>,
) -> Vec<&'s PinnedSource<'a, Authority>> {
    let have = sources.iter().filter(|(_, pinned)| pinned.may_have_rows(wanted));
    let have: Vec<_> = have.collect();
    if have.is_empty() {
        sources.first().into_iter().collect()
    } else {
        have
    }
}

impl<Authority> Questions<Authority> {
    /// Several types of one person, all as of one moment.
    async fn pinned<'a>(
        &self,
        granted: &[&'a Granted<Authority>],
    ) -> Result<Vec<Pinned<'a, Authority>>, QueryError> {
        let Some(first) = granted.first() else {
            return Ok(Vec::new());
        };
        let ids: Vec<TypeId> = granted
            .iter()
            .map(|granted| granted.partition.id.clone())
            .collect();
        let snapshots = self.snapshots.get(first.permit.owner(), &ids).await?;
        Ok(granted
            .iter()
            .zip(snapshots)
            .map(|(granted, snapshot)| Pinned { granted, snapshot })
            .collect())
    }

    async fn pinned_one<'a>(
        &self,
        granted: &'a Granted<Authority>,
    ) -> Result<Pinned<'a, Authority>, QueryError> {
        let mut pinned = self.pinned(&[granted]).await?;
        pinned.pop().ok_or_else(|| {
            crate::store::StoreError::corrupt(format!("partition {} was not read", granted.partition.id))
                .into()
        })
    }

    /// The visible part of it inside `windows`.
    fn seen(
        &self,
        pinned: &Pinned<'_, Authority>,
        windows: &[TimeRange],
    ) -> Result<PartitionTable, QueryError> {
        let Granted { permit, partition } = pinned.granted;
        let table = self.table(permit, partition, &pinned.snapshot, OriginalLength::Dropped)?;
        Ok(table.within(windows))
    }
}

/// The time in which visits are read where updates are read in `range`. A visit that ends with the first
/// moment of the range says where somebody was at that moment, although it shares no time with the range.
fn with_leaving(range: TimeRange) -> TimeRange {
    widened(range, 1, 0)
}

/// The range widened by `before` and `after` microseconds, within the limits of time.
#[must_use]
pub fn widened(range: TimeRange, before: i64, after: i64) -> TimeRange {
    let start = Instant::from_micros(range.start().micros().saturating_sub(before)).max(Instant::MIN);
    let end =
        Instant::from_micros(range.end().micros().saturating_add(after)).min(range.end().max(Instant::MAX));
    TimeRange::new(start, end).unwrap_or(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_4_5_sources_have_two_names_and_no_others() {
        assert_eq!("mobile_os".parse(), Ok(LocationSource::MobileOs));
        assert_eq!("maps".parse(), Ok(LocationSource::Maps));
        for other in ["", "Maps", "platform", "gps"] {
            assert!(other.parse::<LocationSource>().is_err(), "{other}");
        }
    }

    #[test]
    fn a_visit_that_ends_with_the_first_moment_is_read() {
        let moment = Instant::from_micros;
        let read = with_leaving(TimeRange::between(moment(1_000), moment(2_000)));
        assert!(read.selects(moment(500), moment(1_000)));
        assert!(!read.selects(moment(500), moment(999)));
        assert_eq!(read.end(), moment(2_000));
        assert_eq!(with_leaving(TimeRange::ALWAYS), TimeRange::ALWAYS);
    }
}
