//! A page of an answer that is at hand: what comes after a place in it, and where the next page begins. Knows
//! where the rows of an answer are by its columns, and nothing of what they mean.

use std::sync::Arc;

use datafusion::physical_plan::limit::GlobalLimitExec;
use futures::StreamExt as _;

use super::engine::{Engine, late};
use super::paging::{PageEnd, RowKey, RowPlace};
use super::{Prepared, QueryError};

#[cfg(test)]
mod tests;

impl Prepared {
    /// The rows of the answer that come after a place, and the place of the last of `limit` of them, if more
    /// follow. What leads up to the place is computed again, since what comes after it may depend on it.
    pub async fn page(
        mut self,
        engine: &Engine,
        key: &RowKey,
        after: Option<&RowPlace>,
        limit: Option<usize>,
    ) -> Result<(Self, Option<RowPlace>), QueryError> {
        if let Some(place) = after {
            self.plan = key.after(self.plan, place)?;
        }
        let Some(limit) = limit else {
            return Ok((self, None));
        };
        let places = key.of(Arc::clone(&self.plan))?;
        let plan = Arc::new(GlobalLimitExec::new(places, 0, Some(limit.saturating_add(1))));
        let mut end = PageEnd::new(limit);
        let mut rows = Box::pin(engine.drive(engine.start(plan)?, late));
        while let Some(batch) = rows.next().await.transpose()? {
            end.pass_by(&batch, |batch, row| key.place_of(batch, row))?;
        }
        Ok((self, end.found()))
    }
}
