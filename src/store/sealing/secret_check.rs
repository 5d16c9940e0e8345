//! A check value beside a key that a service wrapped: whether what the service opens is what it wrapped.
//!
//! A service that answers with other bytes would have people's data sealed under a key that nobody has again.
//! The value is derived from the key and says nothing of it. Keys that were wrapped before there were such
//! values have none, and are taken as they are opened. A master key of a file needs none: it seals what it
//! wraps.

use ring::hkdf::{HKDF_SHA256, KeyType, Salt};

use super::master::KEY_BYTES;
use crate::model::hexadecimal::hexadecimal;

const LENGTH: usize = 16;
const PURPOSE: &[u8] = b"check value of a wrapped key";
/// Between what a service wrapped, which is text, and the check value in hexadecimal digits.
const BETWEEN: u8 = b'\n';

/// What is stored of a key that a service wrapped.
pub(super) struct Checked<'a> {
    pub wrapped: &'a [u8],
    pub check: Option<&'a [u8]>,
}

struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        LENGTH
    }
}

/// What a service wrapped, with the check value of the key.
pub(super) fn beside(mut wrapped: Vec<u8>, secret: &[u8; KEY_BYTES], bound: &[u8]) -> Option<Vec<u8>> {
    let check = check_of(secret, bound)?;
    wrapped.push(BETWEEN);
    wrapped.extend_from_slice(hexadecimal(&check).as_bytes());
    Some(wrapped)
}

pub(super) fn parted(stored: &[u8]) -> Checked<'_> {
    let at = stored.iter().position(|byte| *byte == BETWEEN);
    let (wrapped, check) = at.map_or((stored, None), |at| {
        let (wrapped, rest) = stored.split_at(at);
        (wrapped, rest.get(1..))
    });
    Checked { wrapped, check }
}

pub(super) fn fits(check: &[u8], secret: &[u8; KEY_BYTES], bound: &[u8]) -> bool {
    check_of(secret, bound).is_some_and(|expected| hexadecimal(&expected).as_bytes() == check)
}

fn check_of(secret: &[u8; KEY_BYTES], bound: &[u8]) -> Option<[u8; LENGTH]> {
    let mut check = [0; LENGTH];
    let info = [PURPOSE, bound];
    let extracted = Salt::new(HKDF_SHA256, &[]).extract(secret);
    extracted.expand(&info, Length).ok()?.fill(&mut check).ok()?;
    Some(check)
}
