//! A page of a prepared answer: the rows after a place in it, and where the next page begins. Knows by which
//! columns the rows of an answer are located, and nothing of what they mean.

use std::sync::Arc;

use datafusion::physical_plan::limit::GlobalLimitExec;
use futures::StreamExt as _;

use super::engine::{Engine, deadline_passed};
use super::operator::Plan;
use super::paging::{PageEnd, RowKey, RowPosition};
use super::{Prepared, QueryError};

#[cfg(test)]
mod tests;

/// Where the next page begins. Computed on demand, because a client that reads only this page never needs it.
#[derive(Debug, Default)]
pub struct NextPage(Option<Ending>);

/// The places of a page and of one more row, in order.
#[derive(Debug)]
struct Ending {
    places: Plan,
    limit: usize,
    /// The columns that identify a place, where they differ from those of records.
    key: Option<RowKey>,
}

impl NextPage {
    /// The page after the first `limit` of some places of records.
    pub(super) const fn after_records(places: Plan, limit: usize) -> Self {
        let key = None;
        Self(Some(Ending { places, limit, key }))
    }

    /// The place of the last row of the page, if more follow.
    pub async fn find_start(self, engine: &Engine) -> Result<Option<RowPosition>, QueryError> {
        let Some(Ending { places, limit, key }) = self.0 else {
            return Ok(None);
        };
        let mut end = PageEnd::new(limit);
        let mut rows = Box::pin(engine.drive(engine.start(places), deadline_passed));
        while let Some(batch) = rows.next().await.transpose()? {
            match &key {
                Some(key) => end.pass_by(&batch, |batch, row| key.place_of(batch, row))?,
                None => end.pass(&batch)?,
            }
        }
        Ok(end.found())
    }
}

impl Prepared {
    /// The rows of the answer that come after a place, and where the page after `limit` of them begins. What
    /// the plan has before the place is computed again, since later rows may depend on it.
    pub fn page(
        mut self,
        key: &RowKey,
        after: Option<&RowPosition>,
        limit: Option<usize>,
    ) -> Result<(Self, NextPage), QueryError> {
        if let Some(place) = after {
            self.plan = key.after(self.plan, place)?;
        }
        let Some(limit) = limit else {
            return Ok((self, NextPage::default()));
        };
        let places = key.of(Arc::clone(&self.plan))?;
        let one_more = Some(limit.saturating_add(1));
        let ending = Ending {
            places: Arc::new(GlobalLimitExec::new(places, 0, one_more)),
            limit,
            key: Some(*key),
        };
        Ok((self, NextPage(Some(ending))))
    }
}
