//! `almanac init`: makes an empty installation that is ready to be served. An existing one stays as it is.

use crate::auth::keys::SigningKey;
use crate::auth::settings::Provider;

use super::failed::Failed;
use super::settings::Settings;
use super::standard_output::print;
use super::{data_directory, installation, runtimes, standard_error, stores};

pub(super) fn run(settings: &Settings) -> Result<(), Failed> {
    installation::makeable(settings)?;
    data_directory::open(&settings.data_dir)?;
    make_signing_key(settings)?;
    let runtime = runtimes::one_thread()?;
    runtime.block_on(made(settings))?;
    let place = data_directory::shown(&settings.data_dir);
    print(&format!("there is an installation in {place}\n"))
}

/// Makes the key that signs tokens, if this installation issues them.
pub(super) fn make_signing_key(settings: &Settings) -> Result<(), Failed> {
    if settings.identity.provider == Provider::Embedded {
        SigningKey::open_or_create(&settings.data_dir).map_err(Failed::from_error)?;
    }
    Ok(())
}

/// Makes the catalogue and the object store, as a pair.
async fn made(settings: &Settings) -> Result<(), Failed> {
    let catalog = stores::catalog_brought_up_to_date(settings).await?;
    let paired = stores::paired(settings, &catalog, standard_error::tell).await;
    catalog.close().await;
    paired.map(drop)
}
