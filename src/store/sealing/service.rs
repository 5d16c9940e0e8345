//! A key service that wraps the keys of people, so that no master key is on this machine: the transit engine
//! of Vault and of OpenBao, called over HTTP.
//!
//! It is called when a person's key is made, and when one is needed and not remembered. While it does not
//! answer, data of people whose keys are not remembered can be neither read nor written, but nothing of
//! theirs is damaged; and so that others need not wait for those, only one at a time finds out whether it
//! answers again. Never shows a key or a token.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::store::errors::StoreError;

use super::master::KEY_BYTES;

const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// How long a service that did not answer is not asked again.
const SILENCE_AFTER_TIMEOUT: Duration = Duration::from_secs(1);
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
    /// The address is not repeated: there may be a password in it.
    #[error("the key service (ALMANAC_KEY_SERVICE) cannot be used: {0}")]
    Address(String),
}

pub struct KeyService {
    client: reqwest::Client,
    encrypt: Url,
    decrypt: Url,
    token: PathBuf,
    patience: Duration,
    /// Until when it is not asked, because it did not answer.
    silent_until: Mutex<Option<Instant>>,
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
        Self::with_patience(settings, ANSWER_PATIENCE)
    }

    fn with_patience(settings: &KeyServiceSettings, patience: Duration) -> Result<Self, KeyServiceError> {
        let wrong = |reason: &str| KeyServiceError::Address(reason.to_owned());
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
            .timeout(patience)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build();
        Ok(Self {
            client: client.map_err(|error| wrong(&error.to_string()))?,
            encrypt: address("encrypt")?,
            decrypt: address("decrypt")?,
            token: settings.token.clone(),
            patience,
            silent_until: Mutex::default(),
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
        self.may_be_asked(Instant::now())?;
        let failed = |error: reqwest::Error| {
            // Whatever else happens takes nobody's time.
            *self.silence() = error.is_timeout().then(|| Instant::now() + SILENCE_AFTER_TIMEOUT);
            unavailable(&error.without_url().to_string())
        };
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
        *self.silence() = None;
        if status != StatusCode::OK {
            // The answer may repeat the request.
            return Err(unavailable(&format!("it answered {status}")));
        }
        serde_json::from_slice(&body).map_err(|_| unavailable("its answer is not one of a transit engine"))
    }

    /// Fails while the service is silent. Afterwards whoever comes first finds out, and others do not wait
    /// for that.
    fn may_be_asked(&self, now: Instant) -> Result<(), StoreError> {
        let mut silence = self.silence();
        match *silence {
            Some(until) if now < until => Err(unavailable("it did not answer a moment ago")),
            Some(_) => {
                *silence = Some(now + self.patience);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn silence(&self) -> MutexGuard<'_, Option<Instant>> {
        self.silent_until.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[tokio::test]
    async fn whoever_needs_a_silent_service_does_not_wait_for_others_who_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, "secret").unwrap();
        // It takes connections and says nothing.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let key = format!("http://{}/v1/transit/keys/a", listener.local_addr().unwrap());
        let patience = Duration::from_millis(100);
        let service = KeyService::with_patience(&KeyServiceSettings { key, token }, patience).unwrap();
        let begun = Instant::now();
        assert!(service.may_be_asked(begun).is_ok());
        service.unwrap(b"vault:v1:a", b"").await.unwrap_err();
        let until = service.silence().expect("it did not answer");
        assert!(until >= begun + patience + SILENCE_AFTER_TIMEOUT);
        // The times are said, so that it does not matter how busy the machine is.
        assert!(service.may_be_asked(begun).is_err());
        assert!(service.may_be_asked(until).is_ok(), "somebody has to find out");
        assert!(service.may_be_asked(until).is_err(), "and only one");
        assert!(
            service.may_be_asked(until + patience).is_ok(),
            "whoever was to find out may have gone away"
        );
    }
}
