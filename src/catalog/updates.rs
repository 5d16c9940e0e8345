//! Counts of updates: how many records of each type of a person were put or deleted, by the minute.
//!
//! A commit adds a row for each minute that has ended. Those of days that are over are combined into one row
//! for each type, since whatever copies all rows of a person would copy ever more of them. Knows nothing of
//! records.

use std::collections::BTreeMap;

use super::Catalog;
use super::database::{Session, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::ledgers::lock_if_known;
use super::reading::verify_partitions;
use super::rows::{id, text};
use super::sound_rows::sound_among;
use super::tables::{UPDATED_DAYS, UPDATES};
use super::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, MICROS_PER_DAY, MICROS_PER_MINUTE, TimeRange};

/// The first ended minute of the person `$1` from `$2` on and before `$3`.
const FIRST_MINUTE: &str =
    "SELECT minute FROM updates WHERE person = $1 AND minute >= $2 AND minute < $3 ORDER BY minute LIMIT 1";

/// When the minute began that `moment` is in.
pub(super) fn minute_of(moment: Instant) -> i64 {
    start_of(moment.micros(), MICROS_PER_MINUTE)
}

fn start_of(moment: i64, length: i64) -> i64 {
    moment.div_euclid(length).saturating_mul(length)
}

/// The counts of one type in the minutes of one day, by when these begin.
#[derive(Debug)]
struct CountedDay {
    day: i64,
    data_type: String,
    minutes: BTreeMap<i64, i64>,
}

impl CountedDay {
    const fn empty(day: i64, data_type: String) -> Self {
        Self {
            day,
            data_type,
            minutes: BTreeMap::new(),
        }
    }

    fn of(row: &VerifiedRow) -> Result<Self, CatalogError> {
        let day = row.int(1)?;
        let pairs: Vec<(i64, i64)> = serde_json::from_str(row.text(4)?)
            .map_err(|_| CatalogError::corrupt("the minutes of a day of updates cannot be read"))?;
        let minutes = pairs.into_iter().map(|(minute, count)| {
            let begin = minute.saturating_mul(MICROS_PER_MINUTE);
            (day.saturating_add(begin), count)
        });
        Ok(Self {
            minutes: minutes.collect(),
            ..Self::empty(day, row.text(2)?.to_owned())
        })
    }

    fn values(&self, person: PersonId) -> Vec<Value> {
        let minutes = self.minutes.iter();
        let pairs: serde_json::Value = minutes
            .map(|(begin, count)| serde_json::json!([(begin - self.day) / MICROS_PER_MINUTE, count]))
            .collect();
        vec![
            id(person.0),
            Value::Int(self.day),
            text(&self.data_type),
            Value::Int(self.minutes.values().sum()),
            Value::Text(pairs.to_string()),
        ]
    }
}

impl Catalog {
    /// How many records were put or deleted, by type, in the minutes that `range` touches. Changes are
    /// counted by the minute, so a range up to now includes all of the current one. An empty range touches
    /// none, wherever in a minute it lies.
    pub async fn updates_between(
        &self,
        person: PersonId,
        range: TimeRange,
    ) -> Result<Vec<(TypeId, i64)>, CatalogError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let (from, until) = (minute_of(range.start()), range.end().micros());
        let mut counts: BTreeMap<TypeId, i64> = BTreeMap::new();
        let mut session = self.database.read().await?;
        for row in verify_partitions(&mut session, person).await? {
            if (from..until).contains(&row.current_minute) && row.current_count != 0 {
                counts.insert(row.data_type, row.current_count);
            }
        }
        let mut add = |data_type: &str, count: i64| {
            *counts.entry(TypeId(data_type.into())).or_default() += count;
        };
        let rest = "WHERE person = $1 AND minute >= $2 AND minute < $3";
        let values = vec![id(person.0), Value::Int(from), Value::Int(until)];
        for row in session.select(&UPDATES, rest, values).await? {
            add(row.text(2)?, row.int(3)?);
        }
        let rest = "WHERE person = $1 AND day > $2 AND day < $3";
        let first = from.saturating_sub(MICROS_PER_DAY);
        let values = vec![id(person.0), Value::Int(first), Value::Int(until)];
        for row in session.select(&UPDATED_DAYS, rest, values).await? {
            let day = row.int(1)?;
            let is_whole = day >= from && day.saturating_add(MICROS_PER_DAY - MICROS_PER_MINUTE) < until;
            if is_whole {
                add(row.text(2)?, row.int(3)?);
                continue;
            }
            let counted = CountedDay::of(&row)?;
            let mut within = counted.minutes.range(from..until).peekable();
            if within.peek().is_some() {
                add(&counted.data_type, within.map(|(_, count)| count).sum());
            }
        }
        session.commit().await?;
        Ok(counts.into_iter().collect())
    }

    /// Combines a person's minutes of days that are over. A day with a damaged row stays as it is, so that it
    /// can still be found.
    pub async fn combine_minutes(&self, person: PersonId) -> Result<(), CatalogError> {
        let today = start_of(self.now().await?.micros(), MICROS_PER_DAY);
        let mut from = i64::MIN;
        loop {
            let values = vec![id(person.0), Value::Int(from), Value::Int(today)];
            let found = self
                .database
                .look_up_once(FIRST_MINUTE.to_owned(), values)
                .await?;
            let Some(first) = found.first() else {
                return Ok(());
            };
            let day = start_of(first.int(0)?, MICROS_PER_DAY);
            from = day.saturating_add(MICROS_PER_DAY);
            self.combine_day(person, day..from).await?;
        }
    }

    async fn combine_day(&self, person: PersonId, day: std::ops::Range<i64>) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        if !lock_if_known(&mut session, person).await? {
            return session.rollback().await;
        }
        let of_day = "WHERE person = $1 AND day = $2";
        let values = vec![id(person.0), Value::Int(day.start)];
        let days = session.fetch(UPDATED_DAYS.select(of_day), values).await?;
        let days = sound_among(&UPDATED_DAYS, &days)?;
        let of_minutes = "WHERE person = $1 AND minute >= $2 AND minute < $3";
        let values = vec![id(person.0), Value::Int(day.start), Value::Int(day.end)];
        let minutes = session.fetch(UPDATES.select(of_minutes), values.clone()).await?;
        let minutes = sound_among(&UPDATES, &minutes)?;
        if !days.set_aside.is_empty() || !minutes.set_aside.is_empty() {
            return session.rollback().await;
        }
        let mut combined: BTreeMap<String, CountedDay> = BTreeMap::new();
        for row in &days.sound {
            let counted = CountedDay::of(row)?;
            combined.insert(counted.data_type.clone(), counted);
        }
        for row in &minutes.sound {
            let data_type = row.text(2)?;
            let counted = combined
                .entry(data_type.to_owned())
                .or_insert_with(|| CountedDay::empty(day.start, data_type.to_owned()));
            *counted.minutes.entry(row.int(1)?).or_default() += row.int(3)?;
        }
        let combined = combined.values().map(|counted| counted.values(person)).collect();
        session.insert(&UPDATED_DAYS, combined, Existing::Replace).await?;
        session
            .execute(format!("DELETE FROM updates {of_minutes}"), values)
            .await?;
        session.commit().await
    }
}

/// Takes the counts of a type in the minutes from `minute` on out of the tables; returns their sum. Damaged
/// ones go too, uncounted: one that stayed would be in the way of what is counted in its minute later, and no
/// write of the type would succeed then.
pub(super) async fn take_minutes_from(
    session: &mut Session,
    person: PersonId,
    data_type: &TypeId,
    minute: i64,
) -> Result<i64, CatalogError> {
    let mut sum = 0;
    let rest = "WHERE person = $1 AND minute >= $2 AND data_type = $3";
    let values = vec![id(person.0), Value::Int(minute), text(&data_type.0)];
    let found = session.fetch(UPDATES.select(rest), values.clone()).await?;
    for row in sound_among(&UPDATES, &found)?.sound {
        sum += row.int(3)?;
    }
    session
        .execute(format!("DELETE FROM updates {rest}"), values)
        .await?;

    let rest = "WHERE person = $1 AND day > $2 AND data_type = $3";
    let last_before = minute.saturating_sub(MICROS_PER_DAY);
    let values = vec![id(person.0), Value::Int(last_before), text(&data_type.0)];
    let found = session.fetch(UPDATED_DAYS.select(rest), values.clone()).await?;
    let mut kept = Vec::new();
    for row in sound_among(&UPDATED_DAYS, &found)?.sound {
        let mut counted = CountedDay::of(&row)?;
        sum += counted.minutes.split_off(&minute).values().sum::<i64>();
        if !counted.minutes.is_empty() {
            kept.push(counted.values(person));
        }
    }
    session
        .execute(format!("DELETE FROM updated_days {rest}"), values)
        .await?;
    session.insert(&UPDATED_DAYS, kept, Existing::Refuse).await?;
    Ok(sum)
}
