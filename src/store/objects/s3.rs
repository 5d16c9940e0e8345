//! A bucket of S3 as a store: its address, its options, and how long it is waited for.
//!
//! Knows nothing of what is kept there.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use super::silence::BoundedSilence;
use crate::store::errors::StoreError;
use crate::store::signing::Signing;

/// The store at `url`, and what signs addresses at which others reach it. `options` are named like the usual
/// `AWS_*` variables, in any case.
pub(super) fn open_s3(
    url: &str,
    options: &[(String, String)],
) -> Result<(Arc<dyn ObjectStore>, Signing), StoreError> {
    let settings = |detail: String| StoreError::Settings { detail };
    let rest = url
        .strip_prefix("s3://")
        .ok_or_else(|| settings(format!("{url:?} is not understood: expected s3://BUCKET/PREFIX")))?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(50),
                max_backoff: Duration::from_secs(2),
                base: 2.0,
            },
            max_retries: 5,
            // Between one and two of the longest silences, so that what meets one is tried once more.
            retry_timeout: Duration::from_secs(30),
        })
        .with_http_connector(BoundedSilence)
        .with_client_options(
            ClientOptions::new()
                .with_connect_timeout(Duration::from_secs(3))
                .with_timeout_disabled(),
        );
    for (name, value) in options {
        // Other variables of the same family, such as profiles, mean nothing here.
        if let Ok(key) = AmazonS3ConfigKey::from_str(&name.to_ascii_lowercase()) {
            builder = builder.with_config(key, value);
        }
    }
    let store = builder.build().map_err(|error| settings(error.to_string()))?;
    let signer = Arc::new(store.clone());
    let prefix = Path::parse(prefix.trim_matches('/')).map_err(|error| settings(error.to_string()))?;
    let signing = Signing::new(signer, prefix.clone());
    let store: Arc<dyn ObjectStore> = if prefix.as_ref().is_empty() {
        Arc::new(store)
    } else {
        Arc::new(PrefixStore::new(store, prefix))
    };
    Ok((store, signing))
}
