//! The keys with which tokens are signed and checked, as the settings want them.

use std::sync::Arc;

use crate::auth::jwks::Jwks;
use crate::auth::keys::ring::KeyRing;
use crate::auth::settings::Provider;
use crate::auth::tokens::Verifier;
use crate::model::clock::Clock;

use super::failed::Failed;
use super::settings::Settings;

/// The keys of tokens, if this installation issues them.
pub(super) fn ring(settings: &Settings, clock: &Arc<dyn Clock>) -> Result<Option<Arc<KeyRing>>, Failed> {
    match &settings.identity.provider {
        Provider::Outside(_) => Ok(None),
        Provider::Embedded => {
            let ring = KeyRing::open_or_create(&settings.data_dir, Arc::clone(clock));
            Ok(Some(Arc::new(ring.map_err(Failed::from_error)?)))
        }
    }
}

pub(super) fn verifier(
    settings: &Settings,
    ring: Option<&Arc<KeyRing>>,
    clock: &Arc<dyn Clock>,
) -> Result<Verifier, Failed> {
    let identity = settings.identity.clone();
    match (&settings.identity.provider, ring) {
        (Provider::Outside(provider), _) => {
            let jwks = Jwks::new(provider.clone(), Arc::clone(clock)).map_err(Failed::from_error)?;
            Ok(Verifier::outside(jwks, identity, Arc::clone(clock)))
        }
        (Provider::Embedded, Some(ring)) => {
            Ok(Verifier::following(Arc::clone(ring), identity, Arc::clone(clock)))
        }
        (Provider::Embedded, None) => Err(Failed::because("there is no key to check tokens with")),
    }
}
