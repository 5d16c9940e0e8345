//! The people of a world, and what records of theirs look like.

use uuid::Uuid;

use super::history::Token;
use crate::model::ids::{PersonId, RecordId};
use crate::model::registry::TypeId;

pub(super) const TYPES: [&str; 2] = ["HeartRate", "RestingHeartRate"];
/// Records come in steps of a minute from 2023-12-31T22:00:00Z on, so that they lie in two years.
const FIRST: i64 = 1_704_060_000_000_000;
pub(super) const MINUTE: i64 = 60_000_000;

pub(super) fn person(number: usize) -> PersonId {
    PersonId(Uuid::from_u128(0x5000 + number as u128))
}

pub(super) fn type_ids() -> [TypeId; 2] {
    TYPES.map(TypeId::new)
}

pub(super) fn record(id: u8) -> RecordId {
    RecordId(Uuid::from_u128(0x1000 + u128::from(id)))
}

/// A record's start follows from what it holds, so that a replacement may move it into another year.
pub(super) const fn start_of(token: Token) -> i64 {
    FIRST + (token as i64 % 240) * MINUTE
}
