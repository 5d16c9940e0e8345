//! Keys for checking tokens. Knows nothing of where they come from, nor of what tokens say.

use jsonwebtoken::{Algorithm, DecodingKey, Header};

/// A key and the only algorithm it is used with.
#[derive(Clone)]
pub(super) struct VerifyingKey {
    pub(super) id: Option<String>,
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
}

/// Keys that were current together. A set with other keys has another generation.
pub(super) struct KeySet {
    pub(super) generation: u64,
    pub(super) keys: Vec<VerifyingKey>,
}

impl KeySet {
    pub(super) fn fitting(&self, header: &Header) -> impl Iterator<Item = &VerifyingKey> {
        let wanted = header.kid.as_deref();
        let algorithm = header.alg;
        self.keys.iter().filter(move |key| {
            // A provider that names its keys names them in its tokens too; a token without a name may fit any
            // key of its algorithm.
            key.algorithm == algorithm
                && (wanted.is_none() || key.id.is_none() || key.id.as_deref() == wanted)
        })
    }
}
