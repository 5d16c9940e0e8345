//! Why there are no keys of an outside identity provider.

/// Larger than any provider's key set.
pub(super) const LARGEST_DOCUMENT: usize = 1024 * 1024;

#[derive(Clone, Debug, thiserror::Error)]
pub enum JwksError {
    /// The address is not repeated: there may be a password in it.
    #[error("the address of the key set (ALMANAC_JWKS_URL) cannot be used: {0}")]
    Address(String),
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
    #[error("the provider has not answered yet")]
    Late,
}
