//! One node at a time: a job runs only while its node holds the lease of that name.
//!
//! A lease is no lock. A node that stalls may lose it and not know, so every job ends in a comparison with
//! what is there; the lease only saves the work of doing everything twice.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;
use crate::store::StoreError;

/// After this long somebody else may do the work of a node that died.
const LENGTH: Duration = Duration::from_secs(30);
/// Well before it ends, a lease is renewed.
const RENEWAL: Duration = Duration::from_secs(10);

/// The leases of one node.
#[derive(Clone)]
pub struct Leases {
    catalog: Catalog,
    holder: String,
}

impl Leases {
    /// `holder`: a name that no other node has.
    #[must_use]
    pub fn new(catalog: Catalog, holder: String) -> Self {
        Self { catalog, holder }
    }

    /// Does `work` if nobody else holds the lease called `name`. The work is dropped midway when `stop` is
    /// called or the lease is lost; `None` says that it was not done, or not to its end.
    pub async fn alone<T>(
        &self,
        name: &str,
        stop: &CancellationToken,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Option<T>, StoreError> {
        if !self.catalog.acquire_lease(name, &self.holder, LENGTH).await? {
            return Ok(None);
        }
        let done = tokio::select! {
            done = work => done.map(Some),
            () = stop.cancelled() => Ok(None),
            lost = self.renew_until_lost(name) => lost.map(|()| None),
        };
        self.catalog.release_lease(name, &self.holder).await?;
        done
    }

    async fn renew_until_lost(&self, name: &str) -> Result<(), StoreError> {
        loop {
            tokio::time::sleep(RENEWAL).await;
            if !self.catalog.acquire_lease(name, &self.holder, LENGTH).await? {
                return Ok(());
            }
        }
    }
}
