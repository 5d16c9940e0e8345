//! Scans new files for malware with an antivirus daemon beside the service.
//!
//! A file that arrives while a scanner is configured is `pending` until the scanner has decided; the
//! catalogue stores that state, so a restart forgets nothing, and one node at a time does the work. As long
//! as the scanner does not answer, files stay pending.

mod clamd;
mod failed;

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use clamd::{ClamdAddress, Verdict};
pub use failed::Silent;

use failed::Failed;

use super::errors::FilesError;
use super::file::{File, SCAN_LINK, ScanState, TO_SCAN};
use super::handle::Files;
use crate::catalog::documents::DocumentKind;
use crate::model::ids::PersonId;
use crate::people::attempts::repeat_while_overtaken;
use crate::store::StoreError;
use crate::upkeep::lease::Leases;
use crate::upkeep::round::FAILURES_IN_A_ROW;

/// The pause between two looks for waiting files.
const LOOK_PAUSE: Duration = Duration::from_secs(5);

/// How many files are with the scanner at the same time.
const AT_ONCE: usize = 4;

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
                self.leases.note_failure();
                tracing::warn!(%error, "files could not be scanned and will be tried again");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.files.to_scan.notified() => {}
                () = tokio::time::sleep(LOOK_PAUSE) => {}
            }
        }
    }

    /// Scans what waits, some files of different people at a time, and what comes meanwhile. A file that
    /// takes long holds up its person's others, and so does one without a verdict; nobody else waits for
    /// them.
    async fn round(&self) -> Result<(), StoreError> {
        let mut round = Round::default();
        round.look_at(self.files.to_scan().await?);
        let mut scanned = FuturesUnordered::new();
        let mut looks = tokio::time::interval_at(tokio::time::Instant::now() + LOOK_PAUSE, LOOK_PAUSE);
        loop {
            while scanned.len() < AT_ONCE
                && let Some(file) = round.next()
            {
                scanned.push(async {
                    let verdict = self.verdict(&file).await;
                    (file, verdict)
                });
            }
            tokio::select! {
                next = scanned.next() => {
                    let Some((file, verdict)) = next else { return Ok(()) };
                    round.being_scanned.remove(&file.person);
                    match round.outcome(&file, verdict) {
                        Ok(Some(outcome)) => match self.files.note_scan(&file, outcome).await {
                            Err(error) if error.is_damage() => {
                                tracing::error!(file = %file.id, %error, "a file stays pending");
                                round.put_off.insert(file.person);
                            }
                            noted => noted?,
                        },
                        Ok(None) => {}
                        Err(failed) => return failed.ends_a_round(),
                    }
                }
                _ = looks.tick() => round.look_at(self.files.to_scan().await?),
            }
        }
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

/// How far a round has come.
#[derive(Default)]
struct Round {
    waiting: VecDeque<File>,
    /// The files that are with the scanner: one of a person.
    being_scanned: HashMap<PersonId, Uuid>,
    /// People whose files wait for the next round.
    put_off: HashSet<PersonId>,
    failures_in_a_row: usize,
}

impl Round {
    /// Replaces what waits.
    fn look_at(&mut self, mut pending: Vec<File>) {
        pending.retain(|file| self.being_scanned.get(&file.person) != Some(&file.id));
        self.waiting = in_turns(pending);
    }

    /// The next file of somebody who has none with the scanner.
    fn next(&mut self) -> Option<File> {
        let may_be_next = |file: &File| {
            !self.being_scanned.contains_key(&file.person) && !self.put_off.contains(&file.person)
        };
        let place = self.waiting.iter().position(may_be_next)?;
        let file = self.waiting.remove(place)?;
        self.being_scanned.insert(file.person, file.id);
        Some(file)
    }

    /// What is to be noted of a file; `None` if it stays as it is. An error ends the round: the cause is not
    /// the files.
    fn outcome(
        &mut self,
        file: &File,
        verdict: Result<Verdict, Failed>,
    ) -> Result<Option<ScanState>, Failed> {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            // Damage is not malware, and does not go away.
            Err(Failed::Store(StoreError::Corrupt { what })) => Verdict::Unknown(what),
            // It was removed while the scanner had it.
            Err(Failed::Store(gone @ StoreError::Missing { .. })) => Verdict::Unknown(gone.to_string()),
            Err(failed) => {
                self.failures_in_a_row += 1;
                if self.failures_in_a_row >= FAILURES_IN_A_ROW {
                    return Err(failed);
                }
                failed.told_of(file);
                self.put_off.insert(file.person);
                return Ok(None);
            }
        };
        self.failures_in_a_row = 0;
        Ok(Some(match verdict {
            Verdict::Clean => ScanState::Clean,
            Verdict::Infected(what) => {
                tracing::warn!(file = %file.id, what, "a file was found harmful and will not be handed out");
                ScanState::Infected
            }
            Verdict::Unknown(reason) => {
                tracing::warn!(file = %file.id, reason, "a file could not be looked through");
                ScanState::Failed
            }
        }))
    }
}

/// The files, so that people take turns: nobody waits for all that somebody else sent.
fn in_turns(mut files: Vec<File>) -> VecDeque<File> {
    let mut turns: HashMap<PersonId, usize> = HashMap::new();
    files.sort_by_cached_key(|file| {
        let turn = turns.entry(file.person).or_default();
        *turn += 1;
        *turn
    });
    files.into()
}

impl Files {
    /// The files of all people that wait to be scanned. A damaged document does not affect the other files.
    pub(super) async fn to_scan(&self) -> Result<Vec<File>, StoreError> {
        let found = self
            .catalog
            .sound_documents_linked(DocumentKind::File, SCAN_LINK, TO_SCAN);
        let found = found.await?.reported();
        let read = |document| File::of(document).inspect_err(|error| tracing::error!(%error, "left alone"));
        Ok(found.iter().filter_map(|document| read(document).ok()).collect())
    }

    /// Records the scanner's verdict on a waiting file.
    async fn note_scan(&self, file: &File, outcome: ScanState) -> Result<(), StoreError> {
        let noted = repeat_while_overtaken(|| async {
            let Some(current) = self.find(file.id).await? else {
                return Ok(());
            };
            if current.scan_state != ScanState::Pending {
                return Ok(());
            }
            let scanned = current.scanned(outcome, self.now().await?);
            self.commit(vec![Self::update(&scanned)?]).await
        });
        match noted.await {
            // It stays pending, and is scanned again.
            Err(FilesError::Overtaken) => Ok(()),
            noted => noted.map_err(in_store),
        }
    }
}

fn in_store(error: FilesError) -> StoreError {
    match error {
        FilesError::Store(error) => error,
        other => StoreError::corrupt(other.to_string()),
    }
}
