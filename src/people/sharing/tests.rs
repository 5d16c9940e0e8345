//! What becomes of groups and memberships when requests about them meet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use sqlx::Connection as _;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::groups::{Group, GroupChange, Membership};
use super::shares::ShareChange;
use super::terms::Terms;
use super::{Sharing, SharingError};
use crate::catalog::access_log::LogEntry;
use crate::catalog::documents::DocumentKind;
use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::{Clock, SystemClock};
use crate::model::ids::{IdSource, ParticipantId, PersonId, SystemIds};
use crate::model::registry::Registry;
use crate::model::stored_json;
use crate::model::time::{Instant, TimeRange};
use crate::people::condition::{Condition, Look, Outdated};
use crate::people::limits::{LimitReached, PersonLimits};
use crate::people::sharing::access_log::AccessLog;
use crate::people::types::Types;

type Interruption = Box<dyn FnOnce() + Send>;

/// Ids from a source that once does something else first.
#[derive(Default)]
struct InterruptedIds {
    ids: SystemIds,
    interruption: Mutex<Option<Interruption>>,
}

impl IdSource for InterruptedIds {
    fn next(&self) -> Uuid {
        let interruption = self.interruption.lock().unwrap().take();
        if let Some(interruption) = interruption {
            interruption();
        }
        self.ids.next()
    }
}

struct Bench {
    sharing: Arc<Sharing>,
    catalog: Catalog,
    ids: Arc<InterruptedIds>,
    directory: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("sqlite://{}", directory.path().join("catalogue.db").display());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let catalog = Catalog::open(&address, Arc::clone(&clock)).await.unwrap();
        let ids = Arc::new(InterruptedIds::default());
        let (log, _task) = AccessLog::start(catalog.clone(), Arc::clone(&clock), ids.clone());
        let sharing = Sharing::new(catalog.clone(), clock, ids.clone(), log, PersonLimits::GENEROUS);
        Self {
            sharing: Arc::new(sharing),
            catalog,
            ids,
            directory,
        }
    }

    async fn group(&self, owner: PersonId) -> Uuid {
        let group = Group {
            title: "group".to_owned(),
            is_public: true,
            ..Group::default()
        };
        let registry = Registry::builtin().unwrap();
        let made = self.sharing.create_group(&registry, owner, group).await;
        made.unwrap().id
    }

    fn types(&self) -> Types {
        let registry = Arc::new(Registry::builtin().unwrap());
        let (clock, ids) = (Arc::clone(&self.sharing.clock), Arc::clone(&self.sharing.ids));
        Types::new(registry, self.catalog.clone(), clock, ids, 10)
    }

    async fn members(&self, group: Uuid, count: usize) -> Vec<PersonId> {
        let members: Vec<PersonId> = (0..count).map(|_| person()).collect();
        for member in &members {
            self.sharing.join(*member, group).await.unwrap();
        }
        members
    }

    /// A removal of a group that has begun.
    fn removing(&self, owner: PersonId, group: Uuid) -> JoinHandle<Result<(), SharingError>> {
        let sharing = Arc::clone(&self.sharing);
        tokio::spawn(async move { sharing.remove_group(owner, group, &Condition::NONE).await })
    }

    /// How many memberships somebody has, wherever they lead.
    async fn memberships(&self, member: PersonId) -> usize {
        let found = self.catalog.documents_of(member, DocumentKind::Membership).await;
        found.unwrap().len()
    }
}

fn person() -> PersonId {
    PersonId(Uuid::now_v7())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_joins_a_group_while_it_is_removed_is_no_member() {
    let bench = Bench::new().await;
    let (owner, member) = (person(), person());
    let group = bench.group(owner).await;
    let sharing = Arc::clone(&bench.sharing);
    let removing = move || {
        let removed = sharing.remove_group(owner, group, &Condition::NONE);
        let wait = || tokio::runtime::Handle::current().block_on(removed);
        tokio::task::block_in_place(wait).unwrap();
    };
    // The membership has an id only after the group was seen.
    *bench.ids.interruption.lock().unwrap() = Some(Box::new(removing));
    let refused = bench.sharing.join(member, group).await;
    assert!(
        matches!(refused, Err(SharingError::Unknown("group"))),
        "{refused:?}"
    );
    assert_eq!(bench.memberships(member).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_stays_in_a_group_that_is_removed_while_members_leave() {
    let bench = Bench::new().await;
    for _ in 0..3 {
        let owner = person();
        let group = bench.group(owner).await;
        let members = bench.members(group, 20).await;
        let removing = bench.removing(owner, group);
        let leaving = members.iter().step_by(2).map(|member| {
            let (sharing, member) = (Arc::clone(&bench.sharing), *member);
            tokio::spawn(async move { sharing.quit(member, group).await })
        });
        for left in join_all(leaving).await {
            let left = left.unwrap();
            assert!(
                matches!(left, Ok(_) | Err(SharingError::Unknown("membership"))),
                "{left:?}"
            );
        }
        removing.await.unwrap().unwrap();
        for member in members {
            assert_eq!(bench.memberships(member).await, 0);
        }
    }
}

#[tokio::test]
async fn a_group_is_removed_whatever_becomes_of_its_memberships() {
    let bench = Bench::new().await;
    let owner = person();
    let group = bench.group(owner).await;
    let members = bench.members(group, 3).await;
    let file = bench.directory.path().join("catalogue.db");
    let address = format!("sqlite://{}", file.display());
    let mut connection = sqlx::SqliteConnection::connect(&address).await.unwrap();
    let sql = "UPDATE documents SET checksum = checksum + 1 WHERE kind = 'membership' AND person = $1";
    let damaged = sqlx::query(sql).bind(members[0].0.as_bytes().to_vec());
    assert_eq!(damaged.execute(&mut connection).await.unwrap().rows_affected(), 1);
    connection.close().await.unwrap();

    let removed = bench.sharing.remove_group(owner, group, &Condition::NONE);
    removed.await.unwrap();
    let stays = bench
        .catalog
        .documents_of(members[0], DocumentKind::Membership)
        .await;
    assert!(matches!(stays, Err(CatalogError::Corrupt { .. })), "{stays:?}");
    for member in &members[1..] {
        assert_eq!(bench.memberships(*member).await, 0);
    }
}

/// Changes a group when it is looked at for the first time.
struct ChangedOnce {
    sharing: Arc<Sharing>,
    owner: PersonId,
    group: Uuid,
    is_changed: AtomicBool,
}

impl Look for ChangedOnce {
    fn look(&self) -> BoxFuture<'_, Result<(), Outdated>> {
        async {
            if !self.is_changed.swap(true, Ordering::SeqCst) {
                let change = GroupChange {
                    description: Some(Some("new".to_owned())),
                    ..GroupChange::default()
                };
                let changed = self
                    .sharing
                    .change_group(self.owner, self.group, change, &Condition::NONE);
                changed.await.unwrap();
            }
            Ok(())
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_group_that_changes_while_it_is_removed_goes_all_the_same() {
    let bench = Bench::new().await;
    let owner = person();
    let group = bench.group(owner).await;
    let condition = Condition::of(Arc::new(ChangedOnce {
        sharing: Arc::clone(&bench.sharing),
        owner,
        group,
        is_changed: AtomicBool::new(false),
    }));
    let removed = bench.sharing.remove_group(owner, group, &condition).await;
    removed.unwrap();
    let gone = bench.sharing.group(owner, group).await;
    assert!(matches!(gone, Err(SharingError::Unknown("group"))), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_remove_a_group_one_does_and_the_others_find_none() {
    let bench = Bench::new().await;
    let owner = person();
    let group = bench.group(owner).await;
    let removals = (0..8).map(|_| bench.removing(owner, group));
    let outcomes: Vec<_> = join_all(removals).await.into_iter().map(Result::unwrap).collect();
    let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let nothing = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Err(SharingError::Unknown("group"))))
        .count();
    assert_eq!((done, nothing), (1, 7), "{outcomes:?}");
}

#[tokio::test]
async fn a_page_of_the_log_ends_where_its_entries_are_long() {
    let bench = Bench::new().await;
    let owner = person();
    bench.catalog.ensure_person(owner, None).await.unwrap();
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(3 << 20));
    let mut entries: Vec<LogEntry> = (0..3)
        .map(|number| LogEntry {
            person: owner,
            id: Uuid::from_u128(number),
            at: SystemClock.now(),
            actor: owner,
            body: body.clone(),
            rows: None,
            outcome: "done".to_owned(),
        })
        .collect();
    bench.catalog.log_access(entries.clone()).await.unwrap();
    entries.reverse();
    let mut before = None;
    for (place, entry) in entries.into_iter().enumerate() {
        let page = bench.sharing.log().entries(owner, before, 10).await.unwrap();
        before = Some(entry.id);
        assert_eq!(page.is_last, place == 2);
        assert!(page.entries == [entry], "page {place}");
    }
}

#[tokio::test]
async fn a_share_beyond_the_limit_is_refused_before_it_is_logged() {
    let bench = Bench::new().await;
    let owner = person();
    let limits = PersonLimits {
        shares: 1,
        ..PersonLimits::GENEROUS
    };
    let (clock, ids) = (Arc::clone(&bench.sharing.clock), Arc::clone(&bench.sharing.ids));
    let sharing = Sharing::new(
        bench.catalog.clone(),
        clock,
        ids,
        bench.sharing.log.clone(),
        limits,
    );
    let types = bench.types();
    let create = || {
        let change = ShareChange {
            name: Some("a share".to_owned()),
            people: Some(vec![person()]),
            ..ShareChange::default()
        };
        sharing.create_share(&types, owner, None, change)
    };
    create().await.unwrap();
    let refused = create().await;
    assert!(
        matches!(
            refused,
            Err(SharingError::LimitReached(LimitReached { limit: 1, .. }))
        ),
        "{refused:?}"
    );
    let log = sharing.log().entries(owner, None, 10).await.unwrap();
    assert_eq!(log.entries.len(), 1);
}

#[tokio::test]
async fn each_share_of_a_list_has_its_own_receivers() {
    let bench = Bench::new().await;
    let owner = person();
    let groups = vec![bench.group(owner).await];
    let mut made = Vec::new();
    for (count, groups) in [(2, groups), (0, vec![bench.group(owner).await]), (1, Vec::new())] {
        let change = ShareChange {
            name: Some("a share".to_owned()),
            people: Some((0..count).map(|_| person()).collect()),
            groups: Some(groups),
            ..ShareChange::default()
        };
        let share = bench
            .sharing
            .create_share(&bench.types(), owner, None, change)
            .await;
        made.push(share.unwrap());
    }
    assert_eq!(bench.sharing.shares_of(owner).await.unwrap(), made);
}

#[test]
fn windows_of_shares_and_groups_are_stored_as_microseconds() {
    let share = concat!(
        r#"{"name":"a share","user_name":null,"data_types":["HeartRate"],"share_all_data":false,"#,
        r#""time_start":-62135596800000000,"time_end":1700000000000001}"#,
    );
    let terms: Terms = stored_json::read(share).unwrap();
    let end = Instant::from_micros(1_700_000_000_000_001);
    assert_eq!(Some(terms.window()), TimeRange::new(Instant::MIN, end));
    assert_eq!(serde_json::to_string(&terms).unwrap(), share);

    let group = concat!(
        r#"{"title":"a group","responsible_entity":null,"description":null,"data_types":[],"#,
        r#""time_start":7,"time_end":null,"is_public":true,"group_url":null,"detail_markdown":null,"#,
        r#""agreement_markdown":null,"withdraw_markdown":null,"header_image_url":null,"#,
        r#""preview_image_url":null,"friendly_id":null,"view_description":null,"invited":[]}"#,
    );
    let read: Group = stored_json::read(group).unwrap();
    let start = Instant::from_micros(7);
    assert_eq!(
        Some(read.window()),
        TimeRange::new(start, TimeRange::ALWAYS.end())
    );
    assert_eq!(serde_json::to_string(&read).unwrap(), group);
}

#[test]
fn a_membership_is_stored_with_the_ids_of_group_and_participant() {
    let membership = concat!(
        r#"{"group":"00000000-0000-0000-0000-000000000001","#,
        r#""participant":"00000000-0000-0000-0000-000000000002","metadata":{}}"#,
    );
    let read: Membership = stored_json::read(membership).unwrap();
    assert_eq!(read.group, Uuid::from_u128(1));
    assert_eq!(read.participant, ParticipantId(Uuid::from_u128(2)));
    assert_eq!(serde_json::to_string(&read).unwrap(), membership);
}
