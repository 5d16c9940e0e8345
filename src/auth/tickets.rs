//! Tickets: signed addresses that open one thing until a moment.
//!
//! A ticket carries the id of what it opens, the second in which it ends, and a signature over both with a
//! secret from the catalogue: the first node that needs the secret makes it, all nodes share it, and it
//! exists whoever issues the tokens. Its holder needs no token. Knows nothing of what is opened.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

use super::new_secret::new_secret;
use crate::catalog::{Catalog, CatalogError};
use crate::model::hexadecimal::{from_hexadecimal, hexadecimal};
use crate::model::time::{Instant, MICROS_PER_SECOND};

/// The name of the secret in the catalogue.
const SECRET: &str = "ticket_secret";
/// Signed before everything else, so that a signature made for another purpose is not valid here.
const UPLOADS: &[u8] = b"almanac upload ticket 1";
/// The purpose of confirmations of an erasure.
const ERASURES: &[u8] = b"almanac erasure confirmation 1";
/// The purpose of tickets for frames.
const FRAMES: &[u8] = b"almanac frame ticket 1";
/// The purpose of tags of answers.
const TAGS: &[u8] = b"almanac tag of an answer 1";

/// The ticket is not one of ours, or it has expired. The caller does not learn which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this address is not valid, or has expired")]
pub struct InvalidTicket;

/// Issues tickets and checks them. Lives as long as the service.
#[derive(Clone)]
pub struct Tickets {
    keyed: Hmac<Sha256>,
    purpose: &'static [u8],
}

impl std::fmt::Debug for Tickets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Tickets(..)")
    }
}

impl Tickets {
    /// Tickets with the secret in `catalog`, which is made if there is none.
    pub async fn open(catalog: &Catalog) -> Result<Self, CatalogError> {
        let secret = catalog.settled_fact(SECRET, &new_secret()).await?;
        Self::keyed_with(secret.as_bytes())
    }

    fn keyed_with(secret: &[u8]) -> Result<Self, CatalogError> {
        let keyed = <Hmac<Sha256>>::new_from_slice(secret);
        let keyed = keyed.map_err(|error| CatalogError::Corrupt {
            what: format!("the secret of tickets: {error}"),
        })?;
        Ok(Self {
            keyed,
            purpose: UPLOADS,
        })
    }

    /// Tickets with the same secret that confirm an erasure, and open nothing else.
    #[must_use]
    pub fn of_erasures(&self) -> Self {
        Self {
            purpose: ERASURES,
            ..self.clone()
        }
    }

    /// Tickets with the same secret that open frames.
    #[must_use]
    pub fn of_frames(&self) -> Self {
        Self {
            purpose: FRAMES,
            ..self.clone()
        }
    }

    /// Replaces `number` by one that cannot be computed without the secret: for tags of answers to readers
    /// who must not learn what the answer was made from.
    #[must_use]
    pub fn sealed(&self, number: u64) -> u64 {
        let mut mac = self.keyed.clone();
        mac.update(TAGS);
        mac.update(&number.to_be_bytes());
        let digest = mac.finalize().into_bytes();
        digest
            .iter()
            .take(8)
            .fold(0, |all, byte| all << 8 | u64::from(*byte))
    }

    /// A ticket for `id` that ends at `until`, or up to a second before.
    #[must_use]
    pub fn issue(&self, id: Uuid, until: Instant) -> String {
        let second = until.micros().div_euclid(MICROS_PER_SECOND);
        let signature = self.mac(id, second).finalize().into_bytes();
        format!("{}.{second}.{}", id.simple(), hexadecimal(&signature))
    }

    /// The id of what `ticket` opens at `now`.
    pub fn opened_by(&self, ticket: &str, now: Instant) -> Result<Uuid, InvalidTicket> {
        let mut parts = ticket.split('.');
        let (Some(id), Some(second), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(InvalidTicket);
        };
        let named = Uuid::try_parse(id).map_err(|_| InvalidTicket)?;
        let ends: i64 = second.parse().map_err(|_| InvalidTicket)?;
        let signed = from_hexadecimal(signature).ok_or(InvalidTicket)?;
        self.mac(named, ends)
            .verify_slice(&signed)
            .map_err(|_| InvalidTicket)?;
        // Only one spelling is accepted: any change makes another ticket.
        let spelt = named.simple().to_string() == id
            && ends.to_string() == second
            && hexadecimal(&signed) == signature;
        if spelt && now.micros() < ends.saturating_mul(MICROS_PER_SECOND) {
            Ok(named)
        } else {
            Err(InvalidTicket)
        }
    }

    fn mac(&self, id: Uuid, second: i64) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        mac.update(self.purpose);
        mac.update(id.as_bytes());
        mac.update(&second.to_be_bytes());
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Uuid = Uuid::from_u128(7);

    fn tickets(secret: &str) -> Tickets {
        Tickets::keyed_with(secret.as_bytes()).unwrap()
    }

    fn second(second: i64) -> Instant {
        Instant::from_micros(second * MICROS_PER_SECOND)
    }

    #[test]
    fn a_ticket_opens_what_it_was_issued_for_until_its_end() {
        let tickets = tickets("secret");
        let ticket = tickets.issue(ID, second(100));
        assert_eq!(tickets.opened_by(&ticket, second(99)), Ok(ID));
        assert_eq!(tickets.opened_by(&ticket, second(100)), Err(InvalidTicket));
    }

    #[test]
    fn a_ticket_with_any_byte_changed_opens_nothing() {
        let tickets = tickets("secret");
        let ticket = tickets.issue(ID, second(100));
        for at in 0..ticket.len() {
            for other in ["0", "a", "A", ".", "-", "+", " "] {
                let mut altered = ticket.clone();
                altered.replace_range(at..=at, other);
                if altered != ticket {
                    assert_eq!(
                        tickets.opened_by(&altered, second(0)),
                        Err(InvalidTicket),
                        "{altered}"
                    );
                }
            }
            assert_eq!(tickets.opened_by(&ticket[..at], second(0)), Err(InvalidTicket));
        }
        assert_eq!(
            tickets.opened_by(&ticket.to_uppercase(), second(0)),
            Err(InvalidTicket)
        );
        let (named, signature) = ticket.rsplit_once('.').unwrap();
        let capitals = format!("{named}.{}", signature.to_uppercase());
        assert_ne!(capitals, ticket);
        assert_eq!(tickets.opened_by(&capitals, second(0)), Err(InvalidTicket));
        assert_eq!(
            tickets.opened_by(&format!("{ticket}00"), second(0)),
            Err(InvalidTicket)
        );
    }

    #[test]
    fn a_ticket_for_an_upload_confirms_no_erasure() {
        let tickets = tickets("secret");
        let (upload, erasure) = (
            tickets.issue(ID, second(100)),
            tickets.of_erasures().issue(ID, second(100)),
        );
        assert_eq!(tickets.of_erasures().opened_by(&erasure, second(0)), Ok(ID));
        assert_eq!(
            tickets.of_frames().opened_by(&upload, second(0)),
            Err(InvalidTicket)
        );
        assert_eq!(
            tickets.of_erasures().opened_by(&upload, second(0)),
            Err(InvalidTicket)
        );
        assert_eq!(tickets.opened_by(&erasure, second(0)), Err(InvalidTicket));
    }

    #[test]
    fn a_sealed_number_is_the_same_only_where_the_secret_is() {
        let (ours, theirs) = (tickets("ours"), tickets("theirs"));
        assert_eq!(ours.sealed(7), ours.sealed(7));
        assert_ne!(ours.sealed(7), ours.sealed(8));
        assert_ne!(ours.sealed(7), theirs.sealed(7));
    }

    #[test]
    fn a_ticket_of_another_installation_opens_nothing() {
        let ticket = tickets("theirs").issue(ID, second(100));
        assert_eq!(tickets("ours").opened_by(&ticket, second(0)), Err(InvalidTicket));
    }
}
