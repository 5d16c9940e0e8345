//! What a token says of its person and itself, or why it was refused. Knows nothing of keys and signatures.

use std::sync::Arc;

use uuid::Uuid;

use crate::auth::jwks::JwksError;
use crate::auth::reach::Reach;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// Longer than any token of a provider we know, and short enough that nobody can fill memory with tokens.
pub(super) const LONGEST_TOKEN: usize = 8 * 1024;

/// What a token says about its person and itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub person: PersonId,
    pub name: Option<Arc<str>>,
    pub expires: Instant,
    pub issued: Option<Instant>,
    pub session: Option<Uuid>,
    /// The token's own id, to find it in logs.
    pub token: Option<Arc<str>>,
    pub reach: Reach,
}

/// Why a token was refused. For the log: the answer is the same for every reason.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the request carries no bearer token")]
    Missing,
    #[error("the authorization header or the token is malformed")]
    Malformed,
    #[error("the token is longer than {LONGEST_TOKEN} bytes")]
    TooLong,
    #[error("the token's algorithm is not allowed")]
    Algorithm,
    #[error("the token asks for an extension that is not understood")]
    CriticalExtension,
    #[error("none of the keys that are trusted here matches the token")]
    UnknownKey,
    #[error("the signature does not match")]
    Signature,
    #[error("the token has no usable expiry")]
    NoExpiry,
    #[error("the token has expired")]
    Expired,
    #[error("the token is valid for longer than tokens may be")]
    LongLived,
    #[error("the token is not valid yet")]
    NotYet,
    #[error("the token comes from another issuer")]
    Issuer,
    #[error("the token is meant for another audience")]
    Audience,
    #[error("the token does not name a person by UUID")]
    NoPerson,
    /// Not the token's fault: it cannot be checked at the moment.
    #[error("the provider's keys are unavailable: {0}")]
    Unavailable(#[from] JwksError),
}
