//! The end of a request that records: its upload is committed, and the objects of one that was refused are
//! taken back.

use crate::catalog::Catalog;
use crate::store::objects::ObjectStorage;
use crate::store::orphans::delete_uncommitted;

use super::intake::remove;
use super::queue::{CommitError, CommitQueue, Receipt};
use super::upload::{Upload, Work};

/// Commits `upload`. When this returns, it is durable, or an error says what became of it.
pub async fn submit(
    commits: &CommitQueue,
    catalog: &Catalog,
    objects: &ObjectStorage,
    upload: Upload,
) -> Result<Receipt, CommitError> {
    let written = match &upload.work {
        Work::Written(written) => written.pieces.clone(),
        Work::Small(_) => Vec::new(),
    };
    let committed = commits.commit(upload).await;
    match &committed {
        Ok(receipt) if !receipt.repeated => {}
        // Certainly nothing names them.
        Ok(_)
        | Err(CommitError::Busy | CommitError::Backlog | CommitError::KeyReused | CommitError::Full) => {
            remove(objects, &written).await;
        }
        Err(_) => {
            // Whatever is out of reach now may stay so for long, and the answer is not to wait for it.
            let (catalog, objects) = (catalog.clone(), objects.clone());
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
