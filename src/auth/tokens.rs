//! Turns tokens into readers.
//!
//! A [`Verifier`] lives as long as the service. It trusts either the key in the data directory or the keys
//! that an outside provider publishes, never both, and each key only with the one algorithm it was made for,
//! so that no header of a token can choose how the token is checked. Verified tokens are remembered until
//! they expire or the keys change, because a signature costs more than most answers. No token is ever logged.

use std::sync::Arc;

use jsonwebtoken::{Algorithm, Header, Validation};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::model::cache::Cache;
use crate::model::clock::Clock;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

use super::disclosures::Disclosures;
use super::jwks::Jwks;
use super::key_set::{KeySet, VerifyingKey};
use super::keys::SigningKey;
use super::keys::ring::KeyRing;
use super::reach::Reach;
use super::settings::IdentitySettings;

pub(super) use claims::SESSION_CLAIM;
pub use identity::Refusal;

use identity::{Identity, LONGEST_TOKEN};

mod claims;
mod identity;
#[cfg(test)]
mod tests;

/// Bytes for remembered tokens: a few thousand of them.
const REMEMBERED_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes that a token takes besides its text and what it narrows.
const ENTRY_BYTES: usize = 256;
/// The size of a large token in bytes.
const LARGE_TOKEN: u64 = 2048;

/// The person behind a verified token, in one request. Made only here; clones belong to the same request.
#[derive(Clone, Debug)]
pub struct Reader {
    identity: Identity,
    disclosures: Arc<Disclosures>,
}

impl Reader {
    fn new(identity: Identity) -> Self {
        Self {
            identity,
            disclosures: Arc::default(),
        }
    }

    #[must_use]
    pub const fn person(&self) -> PersonId {
        self.identity.person
    }

    /// The person that a request is about, if it names `owner` or nobody: a participant whom the reader knows
    /// only by a group, else `owner`, else the reader.
    #[must_use]
    pub fn asks_about(&self, owner: Option<PersonId>) -> PersonId {
        self.disclosures.subject_of(owner).unwrap_or(self.person())
    }

    /// Whether `owner` is the reader, asking in this request about their own data.
    #[must_use]
    pub fn owns(&self, owner: PersonId) -> bool {
        self.person() == owner && self.disclosures.participation().is_none()
    }

    /// What the request was permitted to read of others.
    #[must_use]
    pub fn disclosures(&self) -> &Disclosures {
        &self.disclosures
    }

    /// The person's name in the token.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.identity.name.as_deref()
    }

    /// When the token expires.
    #[must_use]
    pub const fn expires(&self) -> Instant {
        self.identity.expires
    }

    /// When the token was made, if it says so.
    #[must_use]
    pub const fn issued(&self) -> Option<Instant> {
        self.identity.issued
    }

    /// The session that the token belongs to. A verified token says nothing about whether it is still open.
    #[must_use]
    pub const fn session(&self) -> Option<Uuid> {
        self.identity.session
    }

    /// The token's own id.
    #[must_use]
    pub const fn token(&self) -> Option<&Arc<str>> {
        self.identity.token.as_ref()
    }

    /// What the token may do, if less than its person may.
    #[must_use]
    pub const fn reach(&self) -> &Reach {
        &self.identity.reach
    }

    #[cfg(test)]
    pub(crate) fn for_tests(person: PersonId) -> Self {
        Self::new(Identity {
            person,
            session: None,
            issued: None,
            name: None,
            expires: Instant::from_micros(i64::MAX),
            token: None,
            reach: Reach::default(),
        })
    }
}

enum Keys {
    Own(Arc<KeySet>),
    /// This installation's own keys, following their files.
    Ring(Arc<KeyRing>),
    Published(Jwks),
}

type Token = Box<str>;

#[derive(Clone)]
struct Remembered {
    identity: Identity,
    generation: u64,
}

impl Remembered {
    /// About how many bytes it takes, beside its token.
    fn bytes(&self) -> usize {
        let Identity {
            name, token, reach, ..
        } = &self.identity;
        let texts = [name, token].into_iter().flatten().map(|text| text.len());
        ENTRY_BYTES + texts.sum::<usize>() + reach.memory()
    }
}

/// Decides who sends a request.
pub struct Verifier {
    keys: Keys,
    settings: IdentitySettings,
    clock: Arc<dyn Clock>,
    remembered: Cache<Token, Remembered>,
}

impl Verifier {
    /// Accepts tokens that were signed with `key`.
    #[must_use]
    pub fn embedded(key: &SigningKey, settings: IdentitySettings, clock: Arc<dyn Clock>) -> Self {
        let own = VerifyingKey {
            id: None,
            algorithm: Algorithm::HS256,
            key: key.decoding(),
        };
        Self::new(
            Keys::Own(Arc::new(KeySet {
                generation: 0,
                keys: vec![own],
            })),
            settings,
            clock,
        )
    }

    /// Accepts tokens that were signed with a key of `ring`.
    #[must_use]
    pub fn following(ring: Arc<KeyRing>, settings: IdentitySettings, clock: Arc<dyn Clock>) -> Self {
        Self::new(Keys::Ring(ring), settings, clock)
    }

    /// Accepts tokens that were signed with a key published at `jwks`.
    #[must_use]
    pub fn outside(jwks: Jwks, settings: IdentitySettings, clock: Arc<dyn Clock>) -> Self {
        Self::new(Keys::Published(jwks), settings, clock)
    }

    fn new(keys: Keys, settings: IdentitySettings, clock: Arc<dyn Clock>) -> Self {
        let weigh = |token: &Token, remembered: &Remembered| token.len() + remembered.bytes();
        let remembered = Cache::of_bytes(REMEMBERED_BYTES, LARGE_TOKEN, weigh);
        Self {
            keys,
            settings,
            clock,
            remembered,
        }
    }

    /// Drops all remembered tokens, of everybody.
    pub fn forget_all(&self) {
        self.remembered.clear();
    }

    /// The reader of the token in the `authorization` header.
    pub async fn verify(&self, authorization: Option<&[u8]>) -> Result<Reader, Refusal> {
        let token = bearer(authorization.ok_or(Refusal::Missing)?)?;
        let keys = match self.current_keys().await {
            Ok(keys) => keys,
            // A token that no key could make valid is refused as such even while there are no keys.
            Err(unavailable) => return Err(self.header(token).err().unwrap_or(unavailable)),
        };
        let now = self.clock.now();
        // The whole token is the cache key: two tokens could have the same digest.
        if let Some(known) = self.remembered.get(token)
            && known.generation == keys.generation
            && now < known.identity.expires
        {
            return Ok(Reader::new(known.identity));
        }
        let (identity, generation) = self.judge(token, keys, now).await?;
        self.remembered.insert(
            token.into(),
            Remembered {
                identity: identity.clone(),
                generation,
            },
        );
        Ok(Reader::new(identity))
    }

    async fn judge(
        &self,
        token: &str,
        mut keys: Arc<KeySet>,
        now: Instant,
    ) -> Result<(Identity, u64), Refusal> {
        let header = self.header(token)?;
        if keys.fitting(&header).next().is_none()
            && let Keys::Published(jwks) = &self.keys
        {
            keys = jwks.refreshed(keys).await?;
        }
        let mut outcome = Err(Refusal::UnknownKey);
        for key in keys.fitting(&header) {
            outcome = signed_claims(token, key);
            if outcome.is_ok() {
                break;
            }
        }
        let identity = claims::identity(&outcome?, &self.settings, now)?;
        Ok((identity, keys.generation))
    }

    /// The header of a token, if its algorithm is allowed and it has no critical extension.
    fn header(&self, token: &str) -> Result<Header, Refusal> {
        let header = jsonwebtoken::decode_header(token).map_err(|error| header_refusal(&error))?;
        if header.crit.is_some() {
            return Err(Refusal::CriticalExtension);
        }
        if self.allows(header.alg) {
            Ok(header)
        } else {
            Err(Refusal::Algorithm)
        }
    }

    async fn current_keys(&self) -> Result<Arc<KeySet>, Refusal> {
        match &self.keys {
            Keys::Own(keys) => Ok(Arc::clone(keys)),
            Keys::Ring(ring) => Ok(ring.keys()),
            Keys::Published(jwks) => Ok(jwks.current().await?),
        }
    }

    fn allows(&self, algorithm: Algorithm) -> bool {
        match &self.keys {
            Keys::Own(_) | Keys::Ring(_) => algorithm == Algorithm::HS256,
            Keys::Published(jwks) => jwks.allows(algorithm),
        }
    }
}

/// The token after the scheme, which may be in any case.
fn bearer(authorization: &[u8]) -> Result<&str, Refusal> {
    if authorization.len() > LONGEST_TOKEN {
        return Err(Refusal::TooLong);
    }
    let text = std::str::from_utf8(authorization).map_err(|_| Refusal::Malformed)?;
    let (scheme, token) = text.trim_ascii().split_once(' ').ok_or(Refusal::Malformed)?;
    let token = token.trim_ascii();
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::Missing);
    }
    // Most tokens are sound, so nothing is gained by stopping at the first character that is not.
    let is_sound = token
        .bytes()
        .fold(true, |sound, byte| sound & may_be_in_token(byte));
    if token.is_empty() || !is_sound {
        return Err(Refusal::Malformed);
    }
    Ok(token)
}

const fn may_be_in_token(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'=')
}

fn header_refusal(error: &jsonwebtoken::errors::Error) -> Refusal {
    use jsonwebtoken::errors::ErrorKind;
    match error.kind() {
        // The library's list of algorithms lacks those that it does not know, among them `none`, so they are
        // data errors.
        ErrorKind::Json(inner) if inner.is_data() => Refusal::Algorithm,
        _ => Refusal::Malformed,
    }
}

fn signed_claims(token: &str, key: &VerifyingKey) -> Result<Map<String, Value>, Refusal> {
    use jsonwebtoken::errors::ErrorKind;
    // The library checks only the signature. Claims are judged against our own clock, and in the same way for
    // every signer.
    let mut validation = Validation::new(key.algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    match jsonwebtoken::decode::<Map<String, Value>>(token, &key.key, &validation) {
        Ok(data) => Ok(data.claims),
        Err(error) => Err(match error.kind() {
            ErrorKind::InvalidAlgorithm => Refusal::Algorithm,
            ErrorKind::InvalidToken | ErrorKind::Base64(_) | ErrorKind::Json(_) | ErrorKind::Utf8(_) => {
                Refusal::Malformed
            }
            _ => Refusal::Signature,
        }),
    }
}
