//! What an operator can configure about identity. Plain data, resolved once at start.

use std::time::Duration;

/// Names of the signature algorithms that an outside provider may use. HMAC is absent on purpose: a shared
/// secret cannot come from a published key set, and accepting it there is how public keys get used as
/// secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PublicAlgorithm {
    Rs256,
    Es256,
    EdDsa,
}

impl PublicAlgorithm {
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// Whose tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Tokens signed with the key in the data directory.
    Embedded,
    /// Tokens signed with a key that the provider publishes.
    Outside(OutsideProvider),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideProvider {
    pub jwks_url: String,
    pub algorithms: Vec<PublicAlgorithm>,
    /// How long a fetched key set is used without asking again.
    pub lifetime: Duration,
    /// The least time between two requests for the key set, whatever tokens arrive.
    pub minimum_interval: Duration,
    /// How long fetched keys are trusted while the provider does not answer. A key that was withdrawn
    /// meanwhile is trusted as long.
    pub stale: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentitySettings {
    pub provider: Provider,
    /// The `iss` that tokens must carry; any when `None`.
    pub issuer: Option<String>,
    /// The `aud` that tokens must carry; any when `None`.
    pub audience: Option<String>,
    /// The claim that holds the person's id.
    pub user_claim: String,
    /// Whether `sub` of an outside provider's tokens is used if the claim is missing.
    pub subject_as_person: bool,
    /// The longest lifetime of a token.
    pub longest: Duration,
    /// How far the clock that made a token and ours may differ.
    pub leeway: Duration,
}

impl IdentitySettings {
    /// The `iss` and `aud` of the embedded key's tokens, unless the operator says otherwise.
    pub const EMBEDDED_NAME: &'static str = "almanac";
}
