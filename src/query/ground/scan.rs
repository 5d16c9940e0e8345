//! Reads the rows of one partition, in the order (start, end, id).
//!
//! Rows in few stretches come from decoded columns in memory, all others from Parquet, except for columns
//! that footers describe fully; the tail comes from memory. Knows snapshots and plans; knows nothing of what
//! the rows mean, nor of who may see them.

mod constants;
mod decoded;
mod drop_unselected;
mod pieces;
mod request;
mod selection;
mod tail;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::empty::EmptyExec;

use super::operator::Plan;
use constants::Constants;
use decoded::{Decoded, MOST_STRETCHES};
use pieces::{Starts, in_order};

pub(in crate::query) use constants::ConstantsExec;
pub(super) use request::Scan;
pub(in crate::query) use selection::Selection;

impl Scan {
    /// The plan that reads the rows without using cached decoded rows or footers. One partition, sorted by
    /// the key.
    pub(super) fn undecoded(&self) -> Result<Plan> {
        let chains = self.chains();
        let nothing = Constants::nothing(self);
        let plans = chains.iter().map(|chain| self.parquet_beside(&nothing, chain));
        self.together(&chains, plans.collect::<Result<Vec<_>>>()?)
    }

    /// The plan that reads them now.
    pub(super) async fn plan(&self) -> Result<Plan> {
        let chains = self.chains();
        let mut plans = Vec::with_capacity(chains.len());
        for chain in &chains {
            let decoded = if chain.len() > MOST_STRETCHES {
                None
            } else {
                Decoded::find(self, chain).await
            };
            plans.push(match decoded {
                Some(decoded) => decoded.plan(),
                None => self.parquet(chain).await?,
            });
        }
        self.together(&chains, plans)
    }

    fn together(&self, chains: &[pieces::Chain<'_>], plans: Vec<Plan>) -> Result<Plan> {
        let starts = chains.iter().filter_map(|chain| {
            let starts = chain.iter().map(|(piece, _)| Starts::of(piece.bounds));
            starts.reduce(Starts::and)
        });
        let mut inputs: Vec<(Starts, Plan)> = starts.zip(plans).collect();
        inputs.extend(self.tail()?);
        if inputs.is_empty() {
            return Ok(Arc::new(EmptyExec::new(Arc::clone(&self.schema))));
        }
        in_order(inputs, &self.schema)
    }
}
