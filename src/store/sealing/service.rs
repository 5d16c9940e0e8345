//! A key service that wraps the keys of people, so that no master key is on this machine: the transit engine
//! of Vault and of OpenBao, called over HTTP.
//!
//! It is called when a person's key is made, and when one is needed and not remembered. While it does not
//! answer, data of people whose keys are not remembered can be neither read nor written, but nothing of
//! theirs is damaged. Never shows a key or a token.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::store::errors::StoreError;

use super::master::KEY_BYTES;

const PATIENCE: Duration = Duration::from_secs(5);
/// The prefix of everything that a service wrapped.
const WRAPPED: &[u8] = b"vault:";
/// No valid answer is nearly this large.
const LARGEST_ANSWER: usize = 64 << 10;

/// The address of a key service, and the token for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyServiceSettings {
    /// The address of the key: `https://host/v1/transit/keys/NAME`.
    pub key: String,
    /// The file that holds the token, read each time: tokens are renewed.
    pub token: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum KeyServiceError {
    #[error("the key service {address} cannot be used: {reason}")]
    Address { address: String, reason: String },
}

pub struct KeyService {
    client: reqwest::Client,
    encrypt: Url,
    decrypt: Url,
    token: PathBuf,
}

impl fmt::Debug for KeyService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyService({})", self.encrypt)
    }
}

#[derive(Deserialize)]
struct Answer<T> {
    data: T,
}

#[derive(Deserialize)]
struct Wrapped {
    ciphertext: String,
}

#[derive(Deserialize)]
struct Unwrapped {
    plaintext: String,
}

impl KeyService {
    pub fn new(settings: &KeyServiceSettings) -> Result<Self, KeyServiceError> {
        let wrong = |reason: &str| KeyServiceError::Address {
            address: settings.key.clone(),
            reason: reason.to_owned(),
        };
        let expected = "expected https://HOST/v1/transit/keys/NAME";
        let (engine, name) = settings
            .key
            .rsplit_once("/keys/")
            .filter(|(_, name)| !name.is_empty() && !name.contains(['/', '?', '#']))
            .ok_or_else(|| wrong(expected))?;
        let address = |does: &str| {
            let url = Url::parse(&format!("{engine}/{does}/{name}")).ok();
            url.filter(|url| matches!(url.scheme(), "http" | "https"))
                .ok_or_else(|| wrong(expected))
        };
        // A redirect would send keys of people to somebody whom the operator did not name.
        let client = reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build();
        Ok(Self {
            client: client.map_err(|error| wrong(&error.to_string()))?,
            encrypt: address("encrypt")?,
            decrypt: address("decrypt")?,
            token: settings.token.clone(),
        })
    }

    /// Whether a service wrapped this.
    pub(super) fn has_wrapped(wrapped: &[u8]) -> bool {
        wrapped.starts_with(WRAPPED)
    }

    pub(super) async fn wrap(&self, secret: &[u8; KEY_BYTES], bound: &[u8]) -> Result<Vec<u8>, StoreError> {
        let question = json!({"plaintext": BASE64.encode(secret), "associated_data": BASE64.encode(bound)});
        let Answer { data } = self.ask::<Wrapped>(&self.encrypt, &question).await?;
        if Self::has_wrapped(data.ciphertext.as_bytes()) {
            return Ok(data.ciphertext.into_bytes());
        }
        Err(unavailable("its answer is not one of a transit engine"))
    }

    pub(super) async fn unwrap(&self, wrapped: &[u8], bound: &[u8]) -> Result<[u8; KEY_BYTES], StoreError> {
        let question =
            json!({"ciphertext": String::from_utf8_lossy(wrapped), "associated_data": BASE64.encode(bound)});
        let Answer { data } = self.ask::<Unwrapped>(&self.decrypt, &question).await?;
        let opened = BASE64.decode(data.plaintext).ok();
        opened
            .and_then(|opened| opened.try_into().ok())
            .ok_or_else(|| unavailable("what it opened is no key of a person"))
    }

    async fn ask<T: for<'a> Deserialize<'a>>(
        &self,
        address: &Url,
        question: &Value,
    ) -> Result<Answer<T>, StoreError> {
        let token = tokio::fs::read_to_string(&self.token).await.map_err(|error| {
            unavailable(&format!(
                "its token {} cannot be read: {error}",
                self.token.display()
            ))
        })?;
        let failed = |error: reqwest::Error| unavailable(&error.without_url().to_string());
        let mut answer = self
            .client
            .post(address.clone())
            .header("x-vault-token", token.trim())
            .json(question)
            .send()
            .await
            .map_err(failed)?;
        let status = answer.status();
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                return Err(unavailable("its answer has no end"));
            }
            body.extend_from_slice(&chunk);
        }
        if status != StatusCode::OK {
            // The answer may repeat the request.
            return Err(unavailable(&format!("it answered {status}")));
        }
        serde_json::from_slice(&body).map_err(|_| unavailable("its answer is not one of a transit engine"))
    }
}

fn unavailable(detail: &str) -> StoreError {
    StoreError::Unavailable {
        detail: format!("the key service: {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(key: &str) -> Result<KeyService, KeyServiceError> {
        KeyService::new(&KeyServiceSettings {
            key: key.to_owned(),
            token: PathBuf::from("token"),
        })
    }

    #[test]
    fn the_addresses_are_those_of_a_transit_engine() {
        let found = service("https://keys.example:8200/v1/some/transit/keys/almanac").unwrap();
        assert_eq!(
            found.encrypt.as_str(),
            "https://keys.example:8200/v1/some/transit/encrypt/almanac"
        );
        assert_eq!(
            found.decrypt.as_str(),
            "https://keys.example:8200/v1/some/transit/decrypt/almanac"
        );
        for wrong in [
            "https://keys.example/v1/transit",
            "https://keys.example/v1/transit/keys/",
            "https://keys.example/v1/transit/keys/a/b",
            "ftp://keys.example/v1/transit/keys/a",
            "keys/a",
        ] {
            assert!(service(wrong).is_err(), "{wrong}");
        }
    }
}
