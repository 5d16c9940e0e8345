//! Who a share is given to, and the id under which they know it. Knows ids only.

use uuid::Uuid;

use crate::model::ids::PersonId;

/// The receiver of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grantee {
    Person(PersonId),
    Group(Uuid),
}

/// The id under which a receiver knows a share. It is derived from share and grantee, so sharing again after
/// a revocation yields the same id.
#[must_use]
pub fn grant_id(share: Uuid, grantee: Grantee) -> Uuid {
    let (kind, target) = match grantee {
        Grantee::Person(person) => ("person", person.0),
        Grantee::Group(group) => ("group", group),
    };
    Uuid::new_v5(&share, format!("{kind} {target}").as_bytes())
}
