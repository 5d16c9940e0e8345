//! `almanac key`: the keys that tokens are signed and checked with. Works beside a running service, which follows.

use std::path::Path;

use crate::auth::keys::KeyError;
use crate::auth::keys::ring;
use crate::auth::settings::Provider;

use super::settings::Settings;
use super::{Failed, data_directory, print};

/// What is to be done with the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    List,
    Rotate,
    Retire(String),
}

pub fn run(settings: &Settings, order: &KeyOrder) -> Result<(), Failed> {
    if let Provider::Outside(provider) = &settings.identity.provider {
        return Err(Failed::because(format!(
            "tokens come from the identity provider at {}; its keys are its own",
            provider.jwks_url
        )));
    }
    data_directory::open(&settings.data_dir)?;
    let said = done(&settings.data_dir, order).map_err(Failed::from_error)?;
    print(&said.ok_or_else(|| {
        Failed::because(
            "there is no such key among those that only check tokens; `almanac key list` shows them",
        )
    })?)
}

fn done(directory: &Path, order: &KeyOrder) -> Result<Option<String>, KeyError> {
    match order {
        KeyOrder::Rotate => ring::rotate(directory).map(|id| Some(format!("{id}\n"))),
        KeyOrder::Retire(id) => Ok(ring::retire(directory, id)?.then(String::new)),
        KeyOrder::List => {
            let line = |key: ring::ListedKey| {
                let does = if key.signs { "signs and checks" } else { "checks" };
                format!("{} {does} {}\n", key.id, key.path.display())
            };
            Ok(Some(ring::list(directory)?.into_iter().map(line).collect()))
        }
    }
}
