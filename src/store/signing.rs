//! Addresses at which others than this process put objects into S3.
//!
//! An address is good for one object, one length and some time; the store itself refuses whatever is longer
//! or shorter, so nobody fills it with more than was announced. Knows the signatures of S3; knows nothing of
//! files.

use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use object_store::aws::{AmazonS3, AwsCredential};
use object_store::path::Path;
use object_store::signer::Signer as _;
use reqwest::{Method, Url};
use sha2::{Digest as _, Sha256};

use super::errors::StoreError;
use crate::model::hexadecimal::hexadecimal;

/// S3 takes no signature that is good for longer.
const LONGEST_LIFETIME: Duration = Duration::from_hours(7 * 24);
/// The headers that a sender has to send as they were signed.
const SIGNED_HEADERS: &str = "content-length;host";

/// Signs with the credentials of a store.
#[derive(Clone, Debug)]
pub(super) struct Signing {
    store: Arc<AmazonS3>,
    /// What stands before each path.
    prefix: Path,
}

impl Signing {
    pub(super) const fn new(store: Arc<AmazonS3>, prefix: Path) -> Self {
        Self { store, prefix }
    }

    /// An address at which one PUT of `length` bytes makes the object at `path`, until `lifetime` is over.
    pub(super) async fn put_url(
        &self,
        path: &Path,
        length: u64,
        lifetime: Duration,
    ) -> Result<String, StoreError> {
        let path = self.prefix.parts().chain(path.parts()).collect();
        let signed = self
            .store
            .signed_url(Method::PUT, &path, lifetime.min(LONGEST_LIFETIME))
            .await?;
        let credential = self.store.credentials().get_credential().await?;
        with_length(&signed, length, &credential).ok_or_else(|| StoreError::Settings {
            detail: "no address can be signed for this store".to_owned(),
        })
    }
}

/// The address `signed`, which any number of bytes may be sent to, as one for `length` bytes.
fn with_length(signed: &Url, length: u64, credential: &AwsCredential) -> Option<String> {
    let mut parameters: Vec<(String, String)> = signed.query_pairs().into_owned().collect();
    let given = |wanted: &str| {
        let found = parameters.iter().find(|(name, _)| name == wanted)?;
        Some(found.1.clone())
    };
    let (date, named) = (given("X-Amz-Date")?, given("X-Amz-Credential")?);
    // Day, region, service and purpose; before them stands the name of the key.
    let (before, _) = named.rmatch_indices('/').nth(3)?;
    let scope = named.get(before + 1..)?;
    let ours = [
        "X-Amz-Credential",
        "X-Amz-Security-Token",
        "X-Amz-SignedHeaders",
        "X-Amz-Signature",
    ];
    parameters.retain(|(name, _)| !ours.contains(&name.as_str()));
    let [key, token, headers, signature_name] = ours.map(str::to_owned);
    parameters.push((key, format!("{}/{scope}", credential.key_id)));
    parameters.extend(credential.token.clone().map(|value| (token, value)));
    parameters.push((headers, SIGNED_HEADERS.to_owned()));
    parameters.sort();
    let query: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect();
    let query = query.join("&");

    let host = signed.host_str()?;
    let port = signed.port().map(|port| format!(":{port}")).unwrap_or_default();
    let request = format!(
        "PUT\n{}\n{query}\ncontent-length:{length}\nhost:{host}{port}\n\n{SIGNED_HEADERS}\nUNSIGNED-PAYLOAD",
        signed.path()
    );
    let signature = signature(&request, &date, scope, &credential.secret_key)?;
    let mut address = signed.clone();
    address.set_query(None);
    Some(format!("{address}?{query}&{signature_name}={signature}"))
}

/// The signature, version 4, of a request in its canonical form.
fn signature(request: &str, date: &str, scope: &str, secret: &str) -> Option<String> {
    let digest = hexadecimal(&Sha256::digest(request));
    let statement = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}");
    let keyed = |key: &[u8], text: &str| {
        let mut mac = <Hmac<Sha256>>::new_from_slice(key).ok()?;
        mac.update(text.as_bytes());
        Some(mac.finalize().into_bytes().to_vec())
    };
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in scope.split('/') {
        key = keyed(&key, part)?;
    }
    keyed(&key, &statement).map(|signature| hexadecimal(&signature))
}

/// As S3 writes names and values of a query before it signs them.
fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    const SCOPE: &str = "20130524/us-east-1/s3/aws4_request";

    /// The example of the documentation of S3, "Authenticating Requests: Using Query Parameters".
    #[test]
    fn signatures_are_those_of_s3() {
        let request = "GET\n/test.txt\nX-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE\
                       %2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z\
                       &X-Amz-Expires=86400&X-Amz-SignedHeaders=host\n\
                       host:examplebucket.s3.amazonaws.com\n\nhost\nUNSIGNED-PAYLOAD";
        assert_eq!(
            signature(request, "20130524T000000Z", SCOPE, SECRET).unwrap(),
            "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        );
    }

    #[test]
    fn an_address_names_its_length_among_what_is_signed() {
        let signed = "https://bucket.example:8333/a%20b?X-Amz-Algorithm=AWS4-HMAC-SHA256\
                      &X-Amz-Credential=old%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
                      &X-Amz-Date=20130524T000000Z&X-Amz-Expires=60\
                      &X-Amz-SignedHeaders=host&X-Amz-Security-Token=old&X-Amz-Signature=0";
        let signed = Url::parse(signed).unwrap();
        let address = |length: u64, token: Option<&str>| {
            let credential = AwsCredential {
                key_id: "a/key".to_owned(),
                secret_key: SECRET.to_owned(),
                token: token.map(str::to_owned),
            };
            with_length(&signed, length, &credential).unwrap()
        };
        let one = address(1, None);
        let head = "https://bucket.example:8333/a%20b?X-Amz-Algorithm=AWS4-HMAC-SHA256\
                    &X-Amz-Credential=a%2Fkey%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
                    &X-Amz-Date=20130524T000000Z&X-Amz-Expires=60\
                    &X-Amz-SignedHeaders=content-length%3Bhost&X-Amz-Signature=";
        assert!(one.starts_with(head), "{one}");
        assert_ne!(one, address(2, None));
        let with_token = address(1, Some("a+b"));
        assert!(
            with_token.contains("&X-Amz-Security-Token=a%2Bb&"),
            "{with_token}"
        );
        assert_ne!(one.rsplit('=').next(), with_token.rsplit('=').next());
    }
}
