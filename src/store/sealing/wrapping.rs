//! Wraps the keys of people: with a key service, a file of master keys, or the service while some keys are
//! still wrapped by the file.
//!
//! One of them wraps, the service where there is one; each opens what it wrapped. Knows no people.

use crate::store::errors::StoreError;

use super::master::{KEY_BYTES, MasterKeys, NONCE_BYTES};
use super::secret_check::{self, Checked};
use super::service::KeyService;

/// To open a key, say what it belongs to; it cannot be opened as anything else.
#[derive(Debug)]
pub struct Wrapping {
    file: Option<MasterKeys>,
    service: Option<KeyService>,
}

impl Wrapping {
    #[must_use]
    pub const fn new(file: Option<MasterKeys>, service: Option<KeyService>) -> Self {
        Self { file, service }
    }

    /// The secret as it may be stored.
    pub(super) async fn wrap(
        &self,
        secret: &[u8; KEY_BYTES],
        nonce: [u8; NONCE_BYTES],
        bound: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        match (&self.service, &self.file) {
            (Some(service), _) => {
                let wrapped = service.wrap(secret, bound).await?;
                // Before anything rests on it: what cannot be opened would be lost with all that it seals.
                if service.unwrap(&wrapped, bound).await? != *secret {
                    return Err(unusable("the key service does not open what it wrapped"));
                }
                secret_check::beside(wrapped, secret, bound)
                    .ok_or_else(|| unusable("no check can be made of it"))
            }
            (None, Some(file)) => file
                .wrap(secret, nonce, bound)
                .ok_or_else(|| unusable("it cannot be wrapped")),
            (None, None) => Err(unusable("nothing here wraps it")),
        }
    }

    /// The secret, unwrapped by whichever of them wrapped it.
    pub(super) async fn unwrap(&self, wrapped: &[u8], bound: &[u8]) -> Result<[u8; KEY_BYTES], StoreError> {
        if KeyService::has_wrapped(wrapped) {
            let service = self.service.as_ref();
            let service = service.ok_or_else(|| unusable("ALMANAC_KEY_SERVICE wrapped it"))?;
            let Checked { wrapped, check } = secret_check::parted(wrapped);
            let secret = service.unwrap(wrapped, bound).await?;
            if check.is_some_and(|check| !secret_check::fits(check, &secret, bound)) {
                return Err(unusable("what the key service opened is another key"));
            }
            return Ok(secret);
        }
        let opened = self.file.as_ref().and_then(|file| file.unwrap(wrapped, bound));
        opened.ok_or_else(|| unusable("no master key here opens it"))
    }

    /// Whether it would be wrapped the same way today. A service does not say which of its own keys it used.
    pub(super) fn is_current(&self, wrapped: &[u8]) -> bool {
        let file = self.file.as_ref().filter(|_| self.service.is_none());
        file.is_some_and(|file| file.is_current(wrapped))
    }
}

/// The bytes are intact; it is the key that is missing.
pub(super) fn unusable(detail: &str) -> StoreError {
    StoreError::Unavailable {
        detail: format!("a person's key: {detail}"),
    }
}
