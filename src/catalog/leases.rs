//! Leases: which of several processes does a piece of work that only one may do at a time.
//!
//! Knows names and holders; knows nothing of the work.

use std::time::Duration;

use super::Catalog;
use super::database::{Row, Session, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::rows::text;
use super::sound_rows::sound_among;
use super::tables::LEASES;

impl Catalog {
    /// Takes the lease called `name` for `holder`, who may have it. `false` while somebody else holds it. The
    /// time is the database's. A lease that ends later than any taken now could was taken under a wrong
    /// clock, and counts as ended.
    pub async fn acquire_lease(
        &self,
        name: &str,
        holder: &str,
        length: Duration,
    ) -> Result<bool, CatalogError> {
        let mut session = self.database.write().await?;
        let now = session.now(&*self.time).await?;
        let until = now.after(length);
        // Leases of other names may be longer, but not by that much.
        let longest = until.after(length);
        let holds = |until: i64| until > now.micros() && until <= longest.micros();
        let row = vec![text(name), text(holder), Value::Int(until.micros())];
        let found = locked(&mut session, name).await?;
        let taken = match sound_among(&LEASES, &found)?.sound.first() {
            Some(lease) if lease.text(1)? != holder && holds(lease.int(2)?) => false,
            // Somebody else may insert the same name meanwhile; then theirs holds.
            None if found.is_empty() => session.insert(&LEASES, vec![row], Existing::Keep).await?.rows == 1,
            // What is damaged says nothing, and is replaced.
            _ => session.insert(&LEASES, vec![row], Existing::Replace).await?.rows == 1,
        };
        session.commit().await?;
        Ok(taken)
    }

    /// Renews the lease called `name` for `holder`. `false` where it is theirs no longer: somebody else may
    /// have had it meanwhile, even if nobody holds it now. One that is over is theirs until somebody takes
    /// it.
    pub async fn renew_lease(
        &self,
        name: &str,
        holder: &str,
        length: Duration,
    ) -> Result<bool, CatalogError> {
        let mut session = self.database.write().await?;
        let until = session.now(&*self.time).await?.after(length);
        let found = locked(&mut session, name).await?;
        // What is damaged says nothing of who has it.
        let is_theirs = match sound_among(&LEASES, &found)?.sound.first() {
            Some(lease) => lease.text(1)? == holder,
            None => false,
        };
        if is_theirs {
            let row = vec![text(name), text(holder), Value::Int(until.micros())];
            session.insert(&LEASES, vec![row], Existing::Replace).await?;
        }
        session.commit().await?;
        Ok(is_theirs)
    }

    /// Gives a lease back, if `holder` has it.
    pub async fn release_lease(&self, name: &str, holder: &str) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        session
            .execute(
                "DELETE FROM leases WHERE name = $1 AND holder = $2".to_owned(),
                vec![text(name), text(holder)],
            )
            .await?;
        session.commit().await
    }
}

/// The lease of this name, if there is one, which nobody else changes until the transaction ends.
async fn locked(session: &mut Session, name: &str) -> Result<Vec<Row>, CatalogError> {
    let rest = format!("WHERE name = $1{}", session.locking());
    session.fetch(LEASES.select(&rest), vec![text(name)]).await
}
