//! What people let others read: shares, the groups they are given to, and the log of what was read.
//!
//! A share names types and files, a window of time, and people and groups. It gives nothing but reading, and nothing
//! beyond what it names. Knows documents and types; knows nothing of HTTP, and makes no permits.

pub mod groups;
pub mod terms;

use uuid::Uuid;

use crate::model::ids::PersonId;

/// To whom a share is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grantee {
    Person(PersonId),
    Group(Uuid),
}

/// The id under which a receiver knows a share. It follows from share and grantee, so giving again what was revoked
/// gives the same.
#[must_use]
pub fn grant_id(share: Uuid, grantee: Grantee) -> Uuid {
    let (kind, target) = match grantee {
        Grantee::Person(person) => ("person", person.0),
        Grantee::Group(group) => ("group", group),
    };
    Uuid::new_v5(&share, format!("{kind} {target}").as_bytes())
}
