//! The keys that an outside identity provider publishes.
//!
//! A key set is fetched when it is first needed, kept for its lifetime, and fetched again when a token names
//! a key that is not in it, but never more often than the minimum interval, so that made-up key names cannot
//! turn this service against the provider. While the provider does not answer, the last set stays in use for
//! as long as the operator says. After a clock that was ahead is put right, nobody knows how old the set is,
//! and it is fetched again.
//!
//! A fetch is a task of its own: it goes on when the request that began it has given up, so a provider that
//! hangs delays few requests, and those briefly.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::Algorithm;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::model::clock::Clock;
use crate::model::time::Instant;

use super::key_set::KeySet;
use super::settings::OutsideProvider;

mod document;
mod errors;
#[cfg(test)]
mod tests;

pub use errors::JwksError;

use document::{library_name, verifying_keys};
use errors::LARGEST_DOCUMENT;

const FETCH_LIMIT: Duration = Duration::from_secs(5);

/// How long the request that finds the keys expired waits for newer ones. A healthy provider answers within
/// it, so a withdrawn key is trusted no longer than its lifetime; beyond it, accepting a good token matters
/// more.
const RENEWAL_PATIENCE: Duration = Duration::from_millis(250);

/// How long a token with an unknown key waits: the key may be new.
const NEW_KEY_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct CachedKeys {
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
    published: Arc<Published>,
    /// Held while fetching: one request at a time goes to the provider.
    attempts: Arc<Mutex<Attempts>>,
}

/// A provider, and the keys that it has published.
struct Published {
    provider: OutsideProvider,
    client: reqwest::Client,
    clock: Arc<dyn Clock>,
    held: RwLock<Option<CachedKeys>>,
}

/// A fetch under way.
type Fetching = JoinHandle<Result<Arc<KeySet>, JwksError>>;

impl Jwks {
    pub fn new(provider: OutsideProvider, clock: Arc<dyn Clock>) -> Result<Self, JwksError> {
        let url =
            reqwest::Url::parse(&provider.jwks_url).map_err(|error| JwksError::Address(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(JwksError::Address("expected http:// or https://".to_owned()));
        }
        // A redirect could lead from the address that the operator trusts to one that nobody does. No setting
        // names a proxy.
        let client = reqwest::Client::builder()
            .timeout(FETCH_LIMIT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build();
        let client = client.map_err(|error| JwksError::Address(error.to_string()))?;
        Ok(Self {
            published: Arc::new(Published {
                provider,
                client,
                clock,
                held: RwLock::new(None),
            }),
            attempts: Arc::default(),
        })
    }

    pub(super) fn allows(&self, algorithm: Algorithm) -> bool {
        let allowed = &self.published.provider.algorithms;
        allowed.iter().any(|allowed| library_name(*allowed) == algorithm)
    }

    /// The keys to use now.
    pub(super) async fn current(&self) -> Result<Arc<KeySet>, JwksError> {
        let Some(held) = self.published.held() else {
            return self.first().await;
        };
        if self
            .published
            .is_within(self.published.provider.lifetime, held.fetched_at)
        {
            return Ok(held.keys);
        }
        // One request renews; the others use the held keys instead of waiting for the provider.
        let Ok(attempts) = Arc::clone(&self.attempts).try_lock_owned() else {
            return self.published.usable(held);
        };
        let fetching = self.fetch_if_due(attempts);
        match within(RENEWAL_PATIENCE, async { outcome(fetching?).await }).await {
            Ok(keys) => Ok(keys),
            Err(error) => {
                tracing::warn!(%error, "the identity provider's keys are not renewed yet");
                self.published.usable(held)
            }
        }
    }

    /// The keys after asking the provider again, because `seen` lacked the one that a token names.
    pub(super) async fn refreshed(&self, seen: Arc<KeySet>) -> Result<Arc<KeySet>, JwksError> {
        let looked = async {
            let attempts = Arc::clone(&self.attempts).lock_owned().await;
            match self.published.held() {
                Some(held) if held.keys.generation != seen.generation => Ok(held.keys),
                _ => outcome(self.fetch_if_due(attempts)?).await,
            }
        };
        match within(NEW_KEY_PATIENCE, looked).await {
            Ok(keys) => Ok(keys),
            Err(error) => {
                tracing::warn!(%error, "the identity provider's keys were not renewed for an unknown key");
                Ok(seen)
            }
        }
    }

    async fn first(&self) -> Result<Arc<KeySet>, JwksError> {
        let attempts = Arc::clone(&self.attempts).lock_owned().await;
        match self.published.held() {
            Some(held) => Ok(held.keys),
            None => outcome(self.fetch_if_due(attempts)?).await,
        }
    }

    /// Asks the provider, unless it was asked just now.
    fn fetch_if_due(&self, mut attempts: OwnedMutexGuard<Attempts>) -> Result<Fetching, JwksError> {
        let published = Arc::clone(&self.published);
        let is_recent = |last| published.is_within(published.provider.minimum_interval, last);
        if attempts.last.is_some_and(is_recent) {
            return Err(JwksError::Waiting);
        }
        attempts.last = Some(published.clock.now());
        Ok(tokio::spawn(async move { published.renew(&mut attempts).await }))
    }
}

async fn within<T>(
    patience: Duration,
    renewed: impl Future<Output = Result<T, JwksError>>,
) -> Result<T, JwksError> {
    timeout(patience, renewed).await.unwrap_or(Err(JwksError::Late))
}

async fn outcome(fetching: Fetching) -> Result<Arc<KeySet>, JwksError> {
    fetching
        .await
        .unwrap_or_else(|error| Err(JwksError::Fetch(error.to_string())))
}

impl Published {
    fn usable(&self, held: CachedKeys) -> Result<Arc<KeySet>, JwksError> {
        if self.is_within(self.provider.stale, held.fetched_at) {
            Ok(held.keys)
        } else {
            Err(JwksError::Waiting)
        }
    }

    async fn renew(&self, attempts: &mut Attempts) -> Result<Arc<KeySet>, JwksError> {
        let document = self.fetch().await?;
        let keys = verifying_keys(&document, &self.provider.algorithms)?;
        // Equal documents still get a new generation: the only cost is that remembered tokens are verified
        // once more.
        attempts.generation += 1;
        let keys = Arc::new(KeySet {
            generation: attempts.generation,
            keys,
        });
        let held = CachedKeys {
            keys: Arc::clone(&keys),
            fetched_at: self.clock.now(),
        };
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(keys)
    }

    async fn fetch(&self) -> Result<Vec<u8>, JwksError> {
        let failed = |error: reqwest::Error| JwksError::Fetch(error.without_url().to_string());
        let mut response = self
            .client
            .get(&self.provider.jwks_url)
            .send()
            .await
            .map_err(failed)?;
        if !response.status().is_success() {
            return Err(JwksError::Fetch(format!(
                "the provider answered {}",
                response.status()
            )));
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

    /// The keys that were fetched last. What was fetched at a time that has not come, because a clock was
    /// ahead and was put right, counts from when that is noticed as if its lifetime had just ended: it is
    /// renewed, and is believed for a while if the provider does not answer.
    fn held(&self) -> Option<CachedKeys> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        if held.fetched_at <= self.clock.now() {
            return Some(held);
        }
        let mut place = self.held.write().unwrap_or_else(PoisonError::into_inner);
        // Another request may have noticed it, or renewed the keys.
        let (now, held) = (self.clock.now(), place.as_mut()?);
        if held.fetched_at > now {
            held.fetched_at = now.before(self.provider.lifetime);
            tracing::warn!("a clock was ahead and was put right: the identity provider's keys are renewed");
        }
        Some(held.clone())
    }

    /// Whether `since` is less than `length` ago. A time that has not come yet is not: the clock was ahead.
    fn is_within(&self, length: Duration, since: Instant) -> bool {
        let now = self.clock.now();
        since <= now && now < since.after(length)
    }
}
