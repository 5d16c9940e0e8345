//! Scans new files for malware with an antivirus daemon beside the service.
//!
//! A file that arrives while a scanner is configured is `pending` until the scanner has decided; the
//! catalogue stores that state, so a restart forgets nothing, and one node at a time does the work. As long
//! as the scanner does not answer, files stay pending.

mod clamd;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use clamd::{ClamdAddress, Silent, Verdict};

use super::file::{SCAN_LINK, TO_SCAN};
use super::{File, Files, FilesError, ScanState, TRIES};
use crate::store::StoreError;
use crate::upkeep::lease::Leases;

/// The pause between two looks for waiting files.
const PAUSE: Duration = Duration::from_secs(5);

/// The background work of scanning on one node.
pub struct Scanning {
    files: Files,
    scanner: ClamdAddress,
    leases: Leases,
}

impl Scanning {
    #[must_use]
    pub const fn new(files: Files, scanner: ClamdAddress, leases: Leases) -> Self {
        Self {
            files,
            scanner,
            leases,
        }
    }

    /// Scans waiting files until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            if let Err(error) = Box::pin(self.leases.alone("scan", &stop, self.round())).await {
                tracing::warn!(%error, "files could not be scanned and will be tried again");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.files.to_scan.notified() => {}
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    async fn round(&self) -> Result<(), StoreError> {
        for file in self.files.to_scan().await? {
            let verdict = match self.verdict(&file).await {
                Ok(verdict) => verdict,
                // Damage is not malware, and does not go away.
                Err(Failed::Store(StoreError::Corrupt { what })) => Verdict::Unknown(what),
                Err(Failed::Store(error)) => return Err(error),
                Err(Failed::Silent(silent)) => {
                    tracing::warn!(%silent, "the scanner does not answer; files stay pending");
                    return Ok(());
                }
            };
            let outcome = match verdict {
                Verdict::Clean => ScanState::Clean,
                Verdict::Infected(what) => {
                    tracing::warn!(file = %file.id, what, "a file is harmful and is not handed out");
                    ScanState::Infected
                }
                Verdict::Unknown(reason) => {
                    tracing::warn!(file = %file.id, reason, "a file could not be looked through");
                    ScanState::Failed
                }
            };
            self.files.note_scan(&file, outcome).await?;
        }
        Ok(())
    }

    async fn verdict(&self, file: &File) -> Result<Verdict, Failed> {
        let content = self
            .files
            .contents
            .get(file.content)
            .await
            .map_err(Failed::Store)?;
        let Some(content) = content else {
            return Ok(Verdict::Unknown("its content is gone".to_owned()));
        };
        let bytes = self.files.contents.read(&content, 0..content.length);
        clamd::scan(&self.scanner, bytes).await
    }
}

/// Why there is no verdict.
enum Failed {
    Silent(Silent),
    Store(StoreError),
}

impl Files {
    /// The files of all people that wait to be scanned.
    async fn to_scan(&self) -> Result<Vec<File>, StoreError> {
        let found = self.catalog.documents_linked(SCAN_LINK, &[TO_SCAN]).await?;
        found
            .iter()
            .map(|document| File::of(document).map_err(in_store))
            .collect()
    }

    /// Records the scanner's verdict on a waiting file.
    async fn note_scan(&self, file: &File, outcome: ScanState) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let Some(current) = self.find(file.id).await.map_err(in_store)? else {
                return Ok(());
            };
            if current.scan_state != ScanState::Pending {
                return Ok(());
            }
            let scanned = current.scanned(outcome, self.clock.now());
            let update = Self::update(&scanned).map_err(in_store)?;
            if self.attempt(vec![update]).await.map_err(in_store)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn in_store(error: FilesError) -> StoreError {
    match error {
        FilesError::Store(error) => error,
        other => StoreError::corrupt(other.to_string()),
    }
}
