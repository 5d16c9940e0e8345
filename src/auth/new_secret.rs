//! Makes secrets to sign with. Knows nothing of where they are kept.

use uuid::Uuid;

/// Three random ids, of 122 random bits each from the system's generator: more than the 256 bits that a
/// signature can use. In hexadecimal digits.
#[expect(
    clippy::disallowed_methods,
    reason = "nobody may know where a secret comes from, least of all a caller"
)]
pub(super) fn new_secret() -> String {
    let ids = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()];
    ids.iter().map(|id| id.simple().to_string()).collect()
}
