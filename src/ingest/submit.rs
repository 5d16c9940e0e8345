//! Ends a request that records: commits its upload, and removes the objects of one that was refused.

use crate::catalog::Catalog;
use crate::store::objects::ObjectStorage;
use crate::store::orphans::delete_uncommitted;

use super::intake::remove;
use super::queue::{CommitError, CommitQueue, Receipt};
use super::upload::{Upload, Work, WrittenPieces};

/// Commits `upload`. When this returns, it is durable, or an error says what became of it.
pub async fn submit(
    commits: &CommitQueue,
    catalog: &Catalog,
    objects: &ObjectStorage,
    upload: Upload,
) -> Result<Receipt, CommitError> {
    let written = match &upload.work {
        Work::Written(written) => written.pieces.clone(),
        Work::Small(_) => WrittenPieces::default(),
    };
    let committed = commits.commit(upload).await;
    match &committed {
        Ok(receipt) if !receipt.repeated => {}
        // Certainly nothing names these objects.
        Ok(_)
        | Err(CommitError::Busy | CommitError::Backlog | CommitError::KeyReused | CommitError::Full) => {
            remove(objects, &written.all()).await;
        }
        Err(_) => {
            // A store that is unreachable now may stay so for long, and the answer must not wait for it.
            let (catalog, objects) = (catalog.clone(), objects.clone());
            let written = written.all();
            tokio::spawn(async move {
                if let Err(error) = delete_uncommitted(&catalog, &objects, &written).await {
                    tracing::warn!(%error, "objects of a body that was not committed stay until they are \
                                            collected");
                }
            });
        }
    }
    committed
}
