//! Finds out what happened to a transaction when the database's answer to COMMIT is lost.
//!
//! Each transaction leaves a row of its own, its witness. If the answer is lost, the caller inserts the same
//! row over a fresh connection. The database makes it wait for a transaction that is still on its way. Then
//! either the row is there, and the transaction happened, or the caller's is the first, and the transaction
//! never can. So the answer is certain, and stays open only if the database stays away.
//!
//! A process removes its witnesses again: some at a time, and the last ones when it ends in order. Those of
//! one that was killed are removed by another that has seen them for long enough, whatever any clock says.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as Moment};

use uuid::Uuid;

use super::database::{Database, LOCK_PATIENCE, Session, Value};
use super::errors::CatalogError;
use super::rows::id;
use super::verified_rows::one_of;
use crate::model::ids::{IdSource, SystemIds};

/// How long to ask the database. A caller waits for this answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(20);
/// The pause between two attempts.
const PAUSE_BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);
/// A transaction that finds this many spent witnesses of its process removes them.
const SPENT_AT_ONCE: usize = 64;
/// How many witnesses are looked at together for whether they were left behind.
const SEEN_AT_ONCE: usize = 10_000;
/// How often a transaction is repeated that the database undid in favour of another.
const REPETITIONS: u32 = 6;

/// The witnesses of a process: the source of new ones, and those that nobody will ask for any more.
#[derive(Clone)]
pub(super) struct Witnesses {
    /// Not the source that is passed in: a witness must differ from those of all other processes, and nobody
    /// ever sees it.
    ids: Arc<SystemIds>,
    spent: Arc<Mutex<Vec<Uuid>>>,
    seen: Arc<Mutex<Option<Seen>>>,
    /// How long to ask the database.
    pub(super) patience: Duration,
}

/// The witnesses of all processes that were there at an earlier look.
struct Seen {
    at: Moment,
    witnesses: HashSet<Uuid>,
}

impl Default for Witnesses {
    fn default() -> Self {
        Self {
            ids: Arc::default(),
            spent: Arc::default(),
            seen: Arc::default(),
            patience: ANSWER_PATIENCE,
        }
    }
}

impl Witnesses {
    fn spend(&self, witness: Uuid) {
        self.spent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(witness);
    }

    /// The witnesses to remove now, if there are enough of them.
    fn take_spent(&self) -> Vec<Uuid> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.len() < SPENT_AT_ONCE {
            return Vec::new();
        }
        let kept = spent.len() - SPENT_AT_ONCE;
        spent.split_off(kept)
    }

    /// Those of `present` that were there at a look at least `age` ago. What is there now is remembered for
    /// later, if it is time for that.
    fn seen_for(&self, age: Duration, present: HashSet<Uuid>) -> Vec<Uuid> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left_behind = Vec::new();
        match &*seen {
            Some(earlier) if earlier.at.elapsed() < age => return left_behind,
            Some(earlier) => left_behind.extend(earlier.witnesses.intersection(&present)),
            None => {}
        }
        *seen = Some(Seen {
            at: Moment::now(),
            witnesses: present,
        });
        left_behind
    }
}

impl Witnesses {
    /// Commits to `database`, and finds out what happened if it does not say.
    pub(super) async fn conclude(
        &self,
        database: &Database,
        mut session: Session,
    ) -> Result<(), CatalogError> {
        let witness = self.ids.next();
        testify(&mut session, witness, true).await?;
        let spent = self.take_spent();
        forget(&mut session, &spent).await?;
        match session.commit().await {
            // In all other cases the database itself refused.
            Err(lost @ CatalogError::Unavailable { .. }) => self.find_out(database, witness, lost).await?,
            outcome => outcome?,
        }
        self.spend(witness);
        Ok(())
    }

    /// Removes the witnesses of this process, which ends. If that fails they count as left behind.
    pub(super) async fn leave(&self, database: &Database) {
        let spent = std::mem::take(&mut *self.spent.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(error) = forget_all(database, &spent).await {
            tracing::debug!(%error, "what transactions left behind stays until another process removes it");
        }
    }

    /// Removes witnesses, of whichever process, that this one saw at least `age` ago. Those that say that a
    /// transaction must never happen stay.
    pub(super) async fn forget_left_behind(
        &self,
        database: &Database,
        age: Duration,
    ) -> Result<(), CatalogError> {
        let sql =
            format!("SELECT witness FROM commits WHERE happened = 1 ORDER BY witness LIMIT {SEEN_AT_ONCE}");
        let mut present = HashSet::new();
        for row in database.fetch(sql, Vec::new()).await? {
            present.extend(Uuid::from_slice(&row.bytes(0)?).ok());
        }
        forget_all(database, &self.seen_for(age, present)).await
    }

    /// Returns `lost` if the transaction with this witness did not happen.
    async fn find_out(
        &self,
        database: &Database,
        witness: Uuid,
        lost: CatalogError,
    ) -> Result<(), CatalogError> {
        let asked_until = Moment::now() + self.patience;
        loop {
            match ask(database, witness).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(lost),
                Err(error) if Moment::now() >= asked_until => {
                    return Err(CatalogError::Unknown {
                        detail: format!("{lost}; asked again: {error}"),
                    });
                }
                Err(_) => tokio::time::sleep(PAUSE_BETWEEN_ATTEMPTS).await,
            }
        }
    }
}

async fn forget_all(database: &Database, witnesses: &[Uuid]) -> Result<(), CatalogError> {
    if witnesses.is_empty() {
        return Ok(());
    }
    let mut session = database.write().await?;
    forget(&mut session, witnesses).await?;
    session.commit().await
}

/// Removes witnesses that nobody will ask for any more.
async fn forget(session: &mut Session, witnesses: &[Uuid]) -> Result<(), CatalogError> {
    for some in witnesses.chunks(SPENT_AT_ONCE) {
        let (list, values) = one_of(1, some.iter().copied().map(id).collect());
        let forgetting = format!("DELETE FROM commits WHERE witness IN {list}");
        session.execute(forgetting, values).await?;
    }
    Ok(())
}

/// Whether the transaction with this witness happened. If not, it never will.
pub(super) async fn ask(database: &Database, witness: Uuid) -> Result<bool, CatalogError> {
    let mut session = database.write().await?;
    testify(&mut session, witness, false).await?;
    let found = session
        .fetch(
            "SELECT happened FROM commits WHERE witness = $1".to_owned(),
            vec![id(witness)],
        )
        .await?;
    let happened = match found.first() {
        Some(row) => row.int(0)? != 0,
        None => return Err(CatalogError::corrupt("a row that was just written is not there")),
    };
    session.commit().await?;
    Ok(happened)
}

pub(super) async fn testify(
    session: &mut Session,
    witness: Uuid,
    happened: bool,
) -> Result<(), CatalogError> {
    let written = session
        .execute(
            "INSERT INTO commits (witness, happened) VALUES ($1, $2) ON CONFLICT DO NOTHING".to_owned(),
            vec![id(witness), Value::Int(i64::from(happened))],
        )
        .await?;
    if happened && written != 1 {
        return Err(CatalogError::corrupt("an id was given out twice"));
    }
    Ok(())
}

/// Attempts at a transaction that the database may undo in favour of another.
pub(super) struct Attempts {
    begun_at: Moment,
    repetitions: u32,
}

impl Attempts {
    pub(super) fn begin() -> Self {
        Self {
            begun_at: Moment::now(),
            repetitions: 0,
        }
    }

    /// Waits and returns `true` if what failed with `error` is to be repeated. Who has waited for as long as
    /// anybody waits for a lock does not begin again.
    pub(super) async fn go_on(&mut self, error: &CatalogError) -> bool {
        let is_over = self.repetitions >= REPETITIONS || self.begun_at.elapsed() >= LOCK_PATIENCE;
        if is_over || !matches!(error, CatalogError::Contended { .. }) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5 << self.repetitions)).await;
        self.repetitions += 1;
        true
    }
}
