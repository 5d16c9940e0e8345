//! Readiness of a process: what it depends on answers, and it was not told to stop.

use std::pin::Pin;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::api::readiness::{CachedReadiness, NotReady, Readiness};
use crate::catalog::Catalog;
use crate::store::objects::ObjectStorage;
use crate::upkeep::identity::IDENTITY_OBJECT;

/// A load balancer asks often and does not wait long.
const READY_LIMIT: Duration = Duration::from_secs(3);

/// Ready if what the process depends on answers, and until it is told to stop: then it finishes what it
/// accepted, and new requests should go to another process.
pub(super) struct UntilStopping {
    stopping: CancellationToken,
    look: CachedReadiness,
}

impl UntilStopping {
    pub(super) fn of(catalog: &Catalog, objects: &ObjectStorage, stopping: &CancellationToken) -> Self {
        Self {
            stopping: stopping.clone(),
            look: CachedReadiness::new(Box::new(Dependencies {
                catalog: catalog.clone(),
                objects: objects.clone(),
            })),
        }
    }
}

impl Readiness for UntilStopping {
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>> {
        if self.stopping.is_cancelled() {
            return Box::pin(std::future::ready(Err(NotReady {
                part: "the service",
                reason: "it is stopping".to_owned(),
            })));
        }
        self.look.check()
    }
}

/// For a process that answers one request: nobody asks whether it is ready.
pub(super) struct AlwaysReady;

impl Readiness for AlwaysReady {
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What every request depends on.
struct Dependencies {
    catalog: Catalog,
    objects: ObjectStorage,
}

impl Readiness for Dependencies {
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>> {
        Box::pin(self.answer())
    }
}

impl Dependencies {
    async fn answer(&self) -> Result<(), NotReady> {
        let looked = async {
            self.catalog.ping().await.map_err(|error| NotReady {
                part: "catalogue",
                reason: error.to_string(),
            })?;
            // It is there since the start. A store that lacks it has lost everything or is another.
            let looked = self.objects.size(IDENTITY_OBJECT).await;
            looked.map(drop).map_err(|error| NotReady {
                part: "object store",
                reason: error.to_string(),
            })
        };
        let late = |_| NotReady {
            part: "catalogue or object store",
            reason: "no answer in time".to_owned(),
        };
        tokio::time::timeout(READY_LIMIT, looked).await.map_err(late)?
    }
}
