//! The keys that an outside identity provider publishes.
//!
//! A key set is fetched when it is first needed, kept for its lifetime, and fetched again when a token names a key that is not in it, but never
//! more often than the minimum interval, so that made-up key names cannot turn this service against the provider. While the provider does
//! not answer, the last set stays in use for a day.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::Algorithm;
use tokio::sync::Mutex;

use crate::model::clock::Clock;
use crate::model::time::Instant;

use super::settings::{OutsideProvider, PublicAlgorithm};
use super::tokens::{KeySet, VerifyingKey};

mod document;
#[cfg(test)]
mod tests;

/// How long keys stay believed while the provider cannot be reached. A key that was withdrawn meanwhile is believed as long.
const STALE_LIMIT: Duration = Duration::from_hours(24);

const FETCH_LIMIT: Duration = Duration::from_secs(5);

/// No provider's key set is near this large.
const LARGEST_DOCUMENT: usize = 1024 * 1024;

#[derive(Clone, Debug, thiserror::Error)]
pub enum JwksError {
    #[error("the key set address {url} cannot be used: {reason}")]
    Address { url: String, reason: String },
    #[error("fetching the key set failed: {0}")]
    Fetch(String),
    #[error("the key set is larger than {LARGEST_DOCUMENT} bytes")]
    TooLarge,
    #[error("the key set is not a JSON object with an array `keys`")]
    Malformed,
    #[error("the key set holds no key for an allowed algorithm")]
    NoKeys,
    #[error("no key set could be fetched yet; the next attempt has to wait")]
    Waiting,
}

#[derive(Clone)]
struct Held {
    keys: Arc<KeySet>,
    fetched_at: Instant,
}

#[derive(Default)]
struct Attempts {
    last: Option<Instant>,
    generation: u64,
}

/// A provider's published keys.
pub struct Jwks {
    provider: OutsideProvider,
    client: reqwest::Client,
    clock: Arc<dyn Clock>,
    held: RwLock<Option<Held>>,
    /// Held while fetching: one request at a time goes to the provider.
    attempts: Mutex<Attempts>,
}

impl Jwks {
    pub fn new(provider: OutsideProvider, clock: Arc<dyn Clock>) -> Result<Self, JwksError> {
        let address = |reason: String| JwksError::Address {
            url: provider.jwks_url.clone(),
            reason,
        };
        let url = reqwest::Url::parse(&provider.jwks_url).map_err(|error| address(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(address("expected http:// or https://".to_owned()));
        }
        // A redirect could lead from the address that the operator vouches for to one that nobody does. Proxies are no setting of ours.
        let client = reqwest::Client::builder()
            .timeout(FETCH_LIMIT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build();
        let client = client.map_err(|error| address(error.to_string()))?;
        Ok(Self {
            provider,
            client,
            clock,
            held: RwLock::new(None),
            attempts: Mutex::default(),
        })
    }

    pub(super) fn allows(&self, algorithm: Algorithm) -> bool {
        self.provider.algorithms.iter().any(|allowed| library_name(*allowed) == algorithm)
    }

    /// The keys to use now.
    pub(super) async fn current(&self) -> Result<Arc<KeySet>, JwksError> {
        let Some(held) = self.held() else {
            return self.first().await;
        };
        if self.age(held.fetched_at) < self.provider.lifetime {
            return Ok(held.keys);
        }
        // One caller renews; the others go on with what there is instead of waiting for the provider.
        let Ok(mut attempts) = self.attempts.try_lock() else {
            return self.usable(held);
        };
        match self.fetch_if_due(&mut attempts).await {
            Ok(keys) => Ok(keys),
            Err(error) => {
                tracing::warn!(%error, "the identity provider's keys could not be renewed");
                self.usable(held)
            }
        }
    }

    /// The keys after a look at the provider, because `seen` did not have the one that a token names.
    pub(super) async fn refreshed(&self, seen: Arc<KeySet>) -> Result<Arc<KeySet>, JwksError> {
        let mut attempts = self.attempts.lock().await;
        if let Some(held) = self.held()
            && held.keys.generation != seen.generation
        {
            return Ok(held.keys);
        }
        match self.fetch_if_due(&mut attempts).await {
            Ok(keys) => Ok(keys),
            Err(error) => {
                tracing::warn!(%error, "the identity provider's keys were not renewed for an unknown key");
                Ok(seen)
            }
        }
    }

    async fn first(&self) -> Result<Arc<KeySet>, JwksError> {
        let mut attempts = self.attempts.lock().await;
        match self.held() {
            Some(held) => Ok(held.keys),
            None => self.fetch_if_due(&mut attempts).await,
        }
    }

    fn usable(&self, held: Held) -> Result<Arc<KeySet>, JwksError> {
        if self.age(held.fetched_at) < STALE_LIMIT {
            Ok(held.keys)
        } else {
            Err(JwksError::Waiting)
        }
    }

    async fn fetch_if_due(&self, attempts: &mut Attempts) -> Result<Arc<KeySet>, JwksError> {
        if attempts.last.is_some_and(|last| self.age(last) < self.provider.minimum_interval) {
            return Err(JwksError::Waiting);
        }
        attempts.last = Some(self.clock.now());
        let document = self.fetch().await?;
        let keys = document::verifying_keys(&document, &self.provider.algorithms)?;
        // Equal documents still get a new generation: the only price is that remembered tokens are verified once more.
        attempts.generation += 1;
        let keys = Arc::new(KeySet {
            generation: attempts.generation,
            keys,
        });
        let held = Held {
            keys: Arc::clone(&keys),
            fetched_at: self.clock.now(),
        };
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(keys)
    }

    async fn fetch(&self) -> Result<Vec<u8>, JwksError> {
        let failed = |error: reqwest::Error| JwksError::Fetch(error.without_url().to_string());
        let mut response = self.client.get(&self.provider.jwks_url).send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(JwksError::Fetch(format!("the provider answered {}", response.status())));
        }
        let mut document = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if document.len() + chunk.len() > LARGEST_DOCUMENT {
                return Err(JwksError::TooLarge);
            }
            document.extend_from_slice(&chunk);
        }
        Ok(document)
    }

    fn held(&self) -> Option<Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn age(&self, since: Instant) -> Duration {
        let micros = self.clock.now().micros().saturating_sub(since.micros());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }
}

const fn library_name(algorithm: PublicAlgorithm) -> Algorithm {
    match algorithm {
        PublicAlgorithm::Rs256 => Algorithm::RS256,
        PublicAlgorithm::Es256 => Algorithm::ES256,
        PublicAlgorithm::EdDsa => Algorithm::EdDSA,
    }
}
