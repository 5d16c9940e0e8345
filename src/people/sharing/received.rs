//! Shares from the receiver's point of view.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::catalog::granting::SHARED_WITH_GROUP;
use crate::model::ids::PersonId;
use crate::model::permit::{Opening, Windows};
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;

use super::errors::SharingError;
use super::grantee::{Grantee, grant_id};
use super::handle::Sharing;
use super::terms::Terms;

/// A share that a person received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub grant: Uuid,
    pub share: Uuid,
    pub sharer: PersonId,
    /// The group through which it was received, if any.
    pub group: Option<Uuid>,
    pub terms: Terms,
}

/// What listings about a sharer may show, and the grants that say so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenedBySharer {
    pub openings: Vec<Opening>,
    pub grants: Vec<Uuid>,
}

/// The part of a sharer's data that may be read through the whole of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub all_data_types: bool,
    /// The types that shares name.
    pub data_types: Vec<TypeId>,
}

impl Sharing {
    /// What others share with `reader`, by sharer and share.
    pub async fn received(&self, reader: PersonId) -> Result<Vec<Received>, SharingError> {
        let mut received = Vec::new();
        for grant in self.catalog.grants_to(reader).await? {
            let grantee = grant.group.map_or(Grantee::Person(reader), Grantee::Group);
            received.push(Received {
                grant: grant_id(grant.share.id, grantee),
                share: grant.share.id,
                sharer: grant.share.person,
                group: grant.group,
                terms: Terms::of(&grant.share)?,
            });
        }
        received.retain(|received| received.sharer != reader);
        received.sort_by_key(|received| (received.sharer, received.share, received.group));
        Ok(received)
    }

    /// What listings about each sharer may show to `reader`, over all time.
    pub async fn openings_for(
        &self,
        reader: PersonId,
    ) -> Result<BTreeMap<PersonId, OpenedBySharer>, SharingError> {
        let mut opened: BTreeMap<PersonId, OpenedBySharer> = BTreeMap::new();
        for received in self.received(reader).await? {
            let of_sharer = opened.entry(received.sharer).or_default();
            of_sharer.openings.push(received.terms.opening(TimeRange::ALWAYS));
            of_sharer.grants.push(received.grant);
        }
        Ok(opened)
    }

    /// Gives up `grant` for `reader`, or takes it back from a group if the share is `reader`'s own.
    pub async fn leave(&self, reader: PersonId, grant: Uuid) -> Result<(), SharingError> {
        let received = self.received(reader).await?;
        let direct = received
            .iter()
            .find(|received| received.grant == grant && received.group.is_none());
        if let Some(found) = direct {
            return self
                .end_grant(found.sharer, found.share, Grantee::Person(reader), reader)
                .await;
        }
        let given = self.catalog.links_by(reader, SHARED_WITH_GROUP).await?;
        let given = given
            .iter()
            .find(|link| grant_id(link.document, Grantee::Group(link.target)) == grant);
        match given {
            Some(link) => {
                self.end_grant(reader, link.document, Grantee::Group(link.target), reader)
                    .await
            }
            None => Err(SharingError::Unknown("grant to give up")),
        }
    }

    /// The part of `sharer`'s data that `reader` may read through the whole of `range`.
    pub async fn access(
        &self,
        reader: PersonId,
        sharer: PersonId,
        range: TimeRange,
    ) -> Result<Access, SharingError> {
        let grants = self.catalog.grants_between(sharer, reader).await?;
        if reader == sharer {
            return Ok(Access {
                all_data_types: true,
                data_types: Vec::new(),
            });
        }
        let terms = grants
            .iter()
            .map(|grant| Terms::of(&grant.share))
            .collect::<Result<Vec<Terms>, _>>()?;
        let covered = |shares: &dyn Fn(&Terms) -> bool| {
            let windows = terms.iter().filter(|terms| shares(terms)).map(Terms::window);
            Windows::new(windows).cover(range)
        };
        let mut named: Vec<TypeId> = terms.iter().flat_map(Terms::named_types).collect();
        named.sort_unstable();
        named.dedup();
        named.retain(|data_type| covered(&|terms: &Terms| terms.covers(data_type)));
        Ok(Access {
            all_data_types: covered(&|terms: &Terms| terms.share_all_data),
            data_types: named,
        })
    }
}
