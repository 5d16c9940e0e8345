//! The end of a group: the group is removed in one transaction, with which it is over for everybody, and its
//! memberships after that.
//!
//! A membership without its group has no effect, so the answer does not depend on whether they could be
//! removed. Those that stay count against the limits of their people until these leave. No job looks for
//! them: a group whose row is damaged or lost looks like one that was removed. Whoever has joined a group
//! looks again whether it is there, and ends a membership that was too late to be ended here.

use uuid::Uuid;

use crate::catalog::CatalogError;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind};
use crate::catalog::granting::MEMBER_OF;
use crate::model::ids::PersonId;
use crate::people::attempts::{ATTEMPTS, repeat_while_overtaken};
use crate::people::condition::Condition;

use super::errors::SharingError;
use super::handle::Sharing;

/// How many memberships one transaction removes.
const MEMBERS_AT_ONCE: usize = 256;

impl Sharing {
    /// Removes a group, and with it everything shared with it.
    pub async fn remove_group(
        &self,
        owner: PersonId,
        id: Uuid,
        condition: &Condition,
    ) -> Result<(), SharingError> {
        repeat_while_overtaken(|| async {
            let group = self.own_group(owner, id).await?;
            condition.hold().await?;
            let remove = Change::remove(DocumentKind::Group, id, owner, group.version);
            self.commit(remove).await
        })
        .await?;
        if let Err(error) = self.end_memberships(id).await {
            tracing::warn!(%error, "memberships of a removed group stay, without effect");
        }
        Ok(())
    }

    /// Ends the memberships of a group that is gone, without those that are damaged. Those that somebody
    /// changed meanwhile are looked up again.
    async fn end_memberships(&self, group: Uuid) -> Result<(), CatalogError> {
        for _ in 0..ATTEMPTS {
            let members = self
                .catalog
                .sound_documents_linked(DocumentKind::Membership, MEMBER_OF, group)
                .await?
                .reported();
            if members.is_empty() {
                break;
            }
            for some in members.chunks(MEMBERS_AT_ONCE) {
                self.end_some(some).await?;
            }
        }
        Ok(())
    }

    /// Ends memberships together. If that does not succeed, because a member left meanwhile, ends each on its
    /// own.
    async fn end_some(&self, members: &[Document]) -> Result<(), CatalogError> {
        let removals: Vec<Change> = members.iter().map(Document::removal).collect();
        if self.catalog.change_documents(removals.clone()).await? == Changed::Done {
            return Ok(());
        }
        for removal in removals {
            // One that was overtaken is gone, or is looked up again.
            let _outcome = self.catalog.change_documents(vec![removal]).await?;
        }
        Ok(())
    }
}
