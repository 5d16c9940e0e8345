//! `almanac token`: an access token on standard output and nothing else. Works beside a running service with
//! the same settings.

use std::sync::Arc;

use crate::auth::keys::SigningKey;
use crate::auth::mint::{TokenOrder, mint};
use crate::auth::settings::Provider;
use crate::catalog::Catalog;
use crate::model::clock::{Clock, SystemClock};
use crate::model::ids::{IdSource, SystemIds};

use super::settings::Settings;
use super::{Failed, data_directory, print};

pub fn run(settings: &Settings, order: &TokenOrder) -> Result<(), Failed> {
    if let Provider::Outside(provider) = &settings.identity.provider {
        return Err(Failed::because(format!(
            "tokens come from the identity provider at {}; this service accepts none of its own",
            provider.jwks_url
        )));
    }
    data_directory::open(&settings.data_dir)?;
    let key = SigningKey::open_or_create(&settings.data_dir).map_err(Failed::from_error)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failed::from_error)?;
    runtime.block_on(known(settings, order))?;
    let token = mint(
        &key,
        &settings.identity,
        order,
        SystemIds.next(),
        SystemClock.now(),
    )
    .map_err(Failed::from_error)?;
    print(&format!("{token}\n"))
}

/// Makes sure that the person is in the catalogue.
async fn known(settings: &Settings, order: &TokenOrder) -> Result<(), Failed> {
    let catalog = Catalog::open(&settings.database_url, Arc::new(SystemClock))
        .await
        .map_err(Failed::from_error)?;
    let ensured = catalog.ensure_person(order.person, order.name.as_deref()).await;
    catalog.close().await;
    ensured.map(drop).map_err(Failed::from_error)
}
