//! Parses a JSON Web Key Set. A key that is not understood, not for signatures, or too weak is skipped; the
//! others stay usable.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

use super::errors::JwksError;
use crate::auth::key_set::VerifyingKey;
use crate::auth::settings::PublicAlgorithm;

/// 2,048 bits in base64 without padding; shorter RSA keys can be broken.
const LEAST_MODULUS_DIGITS: usize = 342;

pub(super) fn verifying_keys(
    document: &[u8],
    allowed: &[PublicAlgorithm],
) -> Result<Vec<VerifyingKey>, JwksError> {
    let document: Value = serde_json::from_slice(document).map_err(|_| JwksError::Malformed)?;
    let entries = document
        .get("keys")
        .and_then(Value::as_array)
        .ok_or(JwksError::Malformed)?;
    let keys: Vec<VerifyingKey> = entries
        .iter()
        .filter_map(|entry| verifying_key(entry, allowed))
        .collect();
    if keys.is_empty() {
        Err(JwksError::NoKeys)
    } else {
        Ok(keys)
    }
}

fn verifying_key(entry: &Value, allowed: &[PublicAlgorithm]) -> Option<VerifyingKey> {
    let jwk: Jwk = serde_json::from_value(entry.clone()).ok()?;
    if jwk
        .common
        .public_key_use
        .as_ref()
        .is_some_and(|purpose| *purpose != PublicKeyUse::Signature)
    {
        return None;
    }
    let algorithm = algorithm_of(&jwk)?;
    // `alg` is optional; if it is given, it must be the algorithm that this kind of key is used with here.
    let stated = entry.get("alg").and_then(Value::as_str);
    if !allowed.contains(&algorithm) || stated.is_some_and(|stated| stated != algorithm.name()) {
        return None;
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    Some(VerifyingKey {
        id: jwk.common.key_id,
        algorithm: library_name(algorithm),
        key,
    })
}

/// The algorithm for the kind of key, so that no public key is ever used as a shared secret.
fn algorithm_of(jwk: &Jwk) -> Option<PublicAlgorithm> {
    match &jwk.algorithm {
        AlgorithmParameters::RSA(key) if key.n.trim_end_matches('=').len() >= LEAST_MODULUS_DIGITS => {
            Some(PublicAlgorithm::Rs256)
        }
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            Some(PublicAlgorithm::Es256)
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            Some(PublicAlgorithm::EdDsa)
        }
        _ => None,
    }
}

pub(super) const fn library_name(algorithm: PublicAlgorithm) -> Algorithm {
    match algorithm {
        PublicAlgorithm::Rs256 => Algorithm::RS256,
        PublicAlgorithm::Es256 => Algorithm::ES256,
        PublicAlgorithm::EdDsa => Algorithm::EdDSA,
    }
}
