//! The range of time in which a source has positions.

use crate::query::available::Overhang;
use crate::query::records::{Summary, summarise};
use crate::query::{QueryError, Questions};

use super::Granted;
use super::raw::OneOf;

impl<Authority> Questions<Authority> {
    /// The first and the last visible moment: from the catalogue where it describes whole pieces, otherwise
    /// from the rows.
    pub async fn location_bounds(
        &self,
        granted: &Granted<Authority>,
        only: Option<&OneOf>,
    ) -> Result<Summary, QueryError> {
        let pinned = self.pinned_one(granted).await?;
        let Some(only) = only else {
            let edges = if granted.permit.is_own() {
                Overhang::Counted
            } else {
                Overhang::Cut
            };
            let seen = granted.permit.windows();
            return self.inside(&pinned.snapshot, seen, edges).await;
        };
        let layout = &granted.partition.data_type.layout;
        if only.is_refused(&granted.permit, layout) {
            return Ok(Summary::default());
        }
        let seen = self.seen(&pinned, &pinned.windows(None))?;
        let chosen = seen.meeting(Some(only.condition())).rows([])?;
        Ok(summarise(&self.engine, chosen).await?)
    }
}
