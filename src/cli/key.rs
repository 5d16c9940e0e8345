//! `almanac key`: the keys that sign and check tokens, and the wrapping of people's keys. Works beside a
//! running service, which follows.

use std::path::Path;

use crate::auth::keys::KeyError;
use crate::auth::keys::ring;
use crate::auth::settings::Provider;
use crate::store::StoreError;

use super::failed::Failed;
use super::settings::{Settings, without_passwords};
use super::standard_output::print;
use super::{data_directory, installation, runtimes, stores};

/// What to do with the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyOrder {
    /// With those that sign tokens.
    Signing(SigningOrder),
    /// Wrap those of people anew.
    Rewrap,
}

/// What to do with the keys that sign tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SigningOrder {
    List,
    Rotate,
    Retire(String),
}

pub(super) fn run(settings: &Settings, order: &KeyOrder) -> Result<(), Failed> {
    match order {
        KeyOrder::Signing(order) => signing(settings, order),
        KeyOrder::Rewrap => runtimes::one_thread()?.block_on(Box::pin(rewrap(settings))),
    }
}

fn signing(settings: &Settings, order: &SigningOrder) -> Result<(), Failed> {
    if let Provider::Outside(provider) = &settings.identity.provider {
        return Err(Failed::because(format!(
            "tokens come from the identity provider at {}, which keeps its own keys",
            without_passwords(&provider.jwks_url)
        )));
    }
    installation::signing_key(settings)?;
    data_directory::open(&settings.data_dir)?;
    let said = done(&settings.data_dir, order).map_err(Failed::from_error)?;
    print(&said.ok_or_else(|| {
        Failed::because(
            "there is no such key among those that only check tokens; `almanac key list` shows them",
        )
    })?)
}

fn done(directory: &Path, order: &SigningOrder) -> Result<Option<String>, KeyError> {
    match order {
        SigningOrder::Rotate => ring::rotate(directory).map(|id| Some(format!("{id}\n"))),
        SigningOrder::Retire(id) => Ok(ring::retire(directory, id)?.then(String::new)),
        SigningOrder::List => {
            let line = |key: ring::ListedKey| {
                let does = if key.signs { "signs and checks" } else { "checks" };
                format!("{} {does} {}\n", key.id, key.path.display())
            };
            Ok(Some(ring::list(directory)?.into_iter().map(line).collect()))
        }
    }
}

/// Wraps everybody's keys with the current wrapping key, so that the previous one can be destroyed. Can be
/// interrupted at any point and run again.
async fn rewrap(settings: &Settings) -> Result<(), Failed> {
    let Some(encryption) = &settings.encryption else {
        return Err(Failed::because(
            "nothing is encrypted: neither ALMANAC_MASTER_KEY_FILE nor ALMANAC_KEY_SERVICE is set",
        ));
    };
    installation::needed(settings)?;
    let catalog = stores::catalog(settings).await?;
    let keys = stores::person_keys(encryption)?;
    let (mut anew, mut failed) = (0, 0);
    let people = keys.people().await.map_err(Failed::from_error)?;
    for person in &people {
        match keys.wrap_anew(*person).await {
            Ok(did) => anew += usize::from(did),
            // It was destroyed after it was listed.
            Err(StoreError::Missing { .. }) => {}
            Err(error) => {
                failed += 1;
                print(&format!("{person}: {error}\n"))?;
            }
        }
        // An erasure is noted before its key is destroyed, so this finds a key that was destroyed while it
        // was being wrapped.
        let is_being_erased = catalog.is_being_erased(*person).await;
        if is_being_erased.map_err(Failed::from_error)? {
            keys.forget(*person).await.map_err(Failed::from_error)?;
        }
    }
    print(&format!("rewrapped {anew} of {} keys\n", people.len()))?;
    match failed {
        0 => Ok(()),
        failed => Err(Failed::because(format!(
            "{failed} keys are still wrapped as before: keep the old wrapping key, and run this again"
        ))),
    }
}
