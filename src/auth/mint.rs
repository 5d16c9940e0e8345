//! Makes tokens for people of an installation that is its own identity provider.

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::{Algorithm, Header};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::model::ids::PersonId;
use crate::model::time::{Instant, MICROS_PER_SECOND};

use super::keys::SigningKey;
use super::keys::ring::KeyRing;
use super::reach::Reach;
use super::settings::IdentitySettings;
use super::tokens::SESSION_CLAIM;

/// The lifetime of a token for which nobody asks for another, if tokens may live that long.
pub const USUAL_LIFETIME: Duration = Duration::from_hours(365 * 24);

/// Makes tokens that name a session. Lives as long as the service.
#[derive(Clone, Debug)]
pub struct Minter {
    key: Signing,
    settings: IdentitySettings,
}

/// The key that signs.
#[derive(Clone, Debug)]
enum Signing {
    Always(SigningKey),
    Current(Arc<KeyRing>),
}

impl Minter {
    #[must_use]
    pub const fn new(key: SigningKey, settings: IdentitySettings) -> Self {
        Self {
            key: Signing::Always(key),
            settings,
        }
    }

    /// Signs with the current key of `ring`.
    #[must_use]
    pub const fn following(ring: Arc<KeyRing>, settings: IdentitySettings) -> Self {
        Self {
            key: Signing::Current(ring),
            settings,
        }
    }

    /// The longest lifetime of a token.
    #[must_use]
    pub const fn longest(&self) -> Duration {
        self.settings.longest
    }

    /// The lifetime of a token for which nobody named one: `usual`, or as long as is allowed.
    #[must_use]
    pub fn lifetime(&self, usual: Duration) -> Duration {
        usual.min(self.settings.longest)
    }

    /// The token of `session`, accepted from `now` on for as long as the session is open.
    pub fn token(&self, order: &TokenOrder, session: Uuid, now: Instant) -> Result<String, MintError> {
        let key = match &self.key {
            Signing::Always(key) => key.clone(),
            Signing::Current(ring) => ring.signing(),
        };
        mint(&key, &self.settings, order, Some(session), now)
    }
}

/// The contents of a token to make.
#[derive(Clone, Debug)]
pub struct TokenOrder {
    pub person: PersonId,
    pub name: Option<String>,
    pub lifetime: Duration,
    pub reach: Reach,
}

#[derive(Debug, thiserror::Error)]
pub enum MintError {
    #[error("the token could not be signed: {0}")]
    Signing(#[from] jsonwebtoken::errors::Error),
}

/// A token that a verifier with the same key and settings accepts from `now` on. Without a session it cannot
/// be revoked: it is accepted until it expires.
pub(crate) fn mint(
    key: &SigningKey,
    settings: &IdentitySettings,
    order: &TokenOrder,
    session: Option<Uuid>,
    now: Instant,
) -> Result<String, MintError> {
    let issued = now.micros().div_euclid(MICROS_PER_SECOND);
    let expires = issued.saturating_add_unsigned(order.lifetime.as_secs());
    let person = order.person.to_string();
    let mut claims = Map::new();
    if let Some(issuer) = &settings.issuer {
        claims.insert("iss".to_owned(), json!(issuer));
    }
    if let Some(audience) = &settings.audience {
        claims.insert("aud".to_owned(), json!(audience));
    }
    claims.insert("sub".to_owned(), json!(person));
    claims.insert(settings.user_claim.clone(), json!(person));
    if let Some(name) = &order.name {
        claims.insert("name".to_owned(), json!(name));
    }
    order.reach.write_into(&mut claims);
    claims.insert("iat".to_owned(), json!(issued));
    claims.insert("exp".to_owned(), json!(expires));
    if let Some(session) = session {
        claims.insert("jti".to_owned(), json!(session));
        claims.insert(SESSION_CLAIM.to_owned(), json!(session));
    }
    let header = Header {
        kid: Some(key.id()),
        ..Header::new(Algorithm::HS256)
    };
    Ok(jsonwebtoken::encode(
        &header,
        &Value::Object(claims),
        &key.encoding(),
    )?)
}
