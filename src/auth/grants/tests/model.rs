//! Compares the decision with a model that looks at every share and every moment.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::json;
use uuid::Uuid;

use super::super::*;
use crate::model::clock::{Clock, SystemClock};
use crate::model::ids::{IdSource, SystemIds};
use crate::model::registry::Base;
use crate::people::condition::Condition;
use crate::people::limits::PersonLimits;
use crate::people::sharing::Sharing;
use crate::people::sharing::access_log::AccessLog;
use crate::people::sharing::groups::Group as GroupBody;
use crate::people::sharing::shares::ShareChange;
use crate::people::types::Types;

const PEOPLE: usize = 3;
const GROUPS: usize = 3;
/// Stands for the type that the owner has defined.
const OWN: &str = "Event/own";
const TYPES: [&str; 5] = ["HeartRate", "StepCount", "Event", OWN, "MomentAnnotation"];
/// The types that are asked for: among them one upon a base that no share names by itself, and one that no
/// share names at all.
const ASKED: [&str; 7] = [
    "HeartRate",
    "StepCount",
    "Event",
    OWN,
    "Event/0193b5a2-0000-7000-8000-000000000001",
    "MomentAnnotation",
    "BodyMass",
];
const END: i64 = 12;

#[derive(Clone, Debug)]
enum Step {
    Share(Shared),
    Unshare(usize),
    Join(usize, usize),
    Quit(usize, usize),
    RemoveGroup(usize),
}

#[derive(Clone, Debug)]
struct Shared {
    owner: usize,
    types: Vec<usize>,
    all: bool,
    start: Option<i64>,
    length: Option<i64>,
    people: Vec<usize>,
    groups: Vec<usize>,
}

fn person(index: usize) -> PersonId {
    PersonId(Uuid::from_u128(1 + index as u128))
}

fn shared() -> impl Strategy<Value = Shared> {
    let some = |of: usize| prop::collection::vec(0..of, 0..3);
    (
        0..PEOPLE,
        some(TYPES.len()),
        prop::bool::weighted(0.2),
        prop::option::of(0..END),
        prop::option::of(1..END),
        some(PEOPLE),
        some(GROUPS),
    )
        .prop_map(|(owner, types, all, start, length, people, groups)| Shared {
            owner,
            types,
            all,
            start,
            length,
            people,
            groups,
        })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => shared().prop_map(Step::Share),
        1 => (0..8_usize).prop_map(Step::Unshare),
        4 => (0..PEOPLE, 0..GROUPS).prop_map(|(person, group)| Step::Join(person, group)),
        1 => (0..PEOPLE, 0..GROUPS).prop_map(|(person, group)| Step::Quit(person, group)),
        1 => (0..GROUPS).prop_map(Step::RemoveGroup),
    ];
    prop::collection::vec(step, 1..14)
}

impl Shared {
    fn holds_at(&self, moment: i64) -> bool {
        let start = self.start.unwrap_or(i64::MIN);
        let end = self.length.map(|length| self.start.unwrap_or(0) + length);
        start <= moment && end.is_none_or(|end| moment < end)
    }

    fn covers(&self, asked: &str) -> bool {
        let base = asked.split('/').next().unwrap_or(asked);
        let mut named = self.types.iter().map(|index| TYPES[*index]);
        self.all || named.any(|name| name == asked || name == base)
    }
}

/// The shares and groups, in the service and in the model.
struct World {
    _directory: tempfile::TempDir,
    grants: Grants,
    sharing: Sharing,
    types: Types,
    /// What each person has defined.
    own: Vec<TypeId>,
    groups: Vec<Uuid>,
    gone: BTreeSet<usize>,
    members: BTreeSet<(usize, usize)>,
    shares: Vec<(Uuid, Shared)>,
}

impl World {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("sqlite://{}", directory.path().join("catalogue.db").display());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids: Arc<dyn IdSource> = Arc::new(SystemIds::default());
        let catalog = Catalog::open(&address, Arc::clone(&clock)).await.unwrap();
        let registry = Arc::new(Registry::builtin().unwrap());
        let (log, _task) = AccessLog::start(catalog.clone(), Arc::clone(&clock), Arc::clone(&ids));
        let limits = PersonLimits::GENEROUS;
        let sharing = Sharing::new(catalog.clone(), Arc::clone(&clock), Arc::clone(&ids), log, limits);
        let mut groups = Vec::new();
        for _ in 0..GROUPS {
            let body = GroupBody {
                title: "group".to_owned(),
                is_public: true,
                ..GroupBody::default()
            };
            groups.push(sharing.create_group(&registry, person(0), body).await.unwrap().id);
        }
        let grants = Grants::new(catalog.clone(), Arc::clone(&registry));
        let types = Types::new(registry, catalog, clock, ids, 1000);
        let mut own = Vec::new();
        for owner in 0..PEOPLE {
            let body = json!({"name": "Own", "description": "x"});
            let defined = types.create(person(owner), Base::Event, &body).await.unwrap();
            own.push(defined.data_type.id.clone());
        }
        Self {
            _directory: directory,
            grants,
            sharing,
            types,
            own,
            groups,
            gone: BTreeSet::new(),
            members: BTreeSet::new(),
            shares: Vec::new(),
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Share(shared) => self.share(shared).await,
            Step::Unshare(index) => {
                if index < self.shares.len() {
                    let (id, shared) = self.shares.remove(index);
                    self.sharing
                        .remove_share(person(shared.owner), id, &Condition::NONE)
                        .await
                        .unwrap();
                }
            }
            Step::Join(who, group) => {
                let joined = self.sharing.join(person(who), self.groups[group]).await.is_ok();
                assert_eq!(joined, !self.gone.contains(&group));
                if joined {
                    self.members.insert((who, group));
                }
            }
            Step::Quit(who, group) => {
                let left = self.sharing.quit(person(who), self.groups[group]).await.is_ok();
                assert_eq!(left, self.members.remove(&(who, group)));
            }
            Step::RemoveGroup(group) => {
                let removed = self
                    .sharing
                    .remove_group(person(0), self.groups[group], &Condition::NONE)
                    .await
                    .is_ok();
                assert_eq!(removed, self.gone.insert(group));
                self.members.retain(|(_, joined)| *joined != group);
            }
        }
    }

    async fn share(&mut self, shared: Shared) {
        let micros = |moment: i64| Some(Instant::from_micros(moment));
        let change = ShareChange {
            name: Some("share".to_owned()),
            data_types: Some(
                shared
                    .types
                    .iter()
                    .map(|index| self.id_of(shared.owner, TYPES[*index]).to_string())
                    .collect(),
            ),
            share_all_data: Some(shared.all),
            time_start: Some(shared.start.and_then(micros)),
            time_end: Some(
                shared
                    .length
                    .and_then(|length| micros(shared.start.unwrap_or(0) + length)),
            ),
            people: Some(shared.people.iter().map(|index| person(*index)).collect()),
            groups: Some(shared.groups.iter().map(|index| self.groups[*index]).collect()),
            ..ShareChange::default()
        };
        let nobody = shared.people.is_empty() && shared.groups.is_empty();
        let missing = shared.groups.iter().any(|group| self.gone.contains(group));
        let owner = person(shared.owner);
        let made = self.sharing.create_share(&self.types, owner, None, change).await;
        assert_eq!(made.is_ok(), !nobody && !missing, "{made:?}");
        if let Ok(made) = made {
            self.shares.push((made.id, shared));
        }
    }

    /// The id of the type that a name of the model stands for.
    fn id_of(&self, owner: usize, name: &str) -> TypeId {
        if name == OWN {
            self.own[owner].clone()
        } else {
            TypeId::new(name)
        }
    }

    /// Whether a share reaches the reader, directly or as a member of a group that still exists.
    fn reaches(&self, shared: &Shared, reader: usize) -> bool {
        shared.people.contains(&reader)
            || shared
                .groups
                .iter()
                .any(|group| self.members.contains(&(reader, *group)))
    }

    async fn check(&self, reader: usize, owner: usize, asked: &str, range: TimeRange) -> TestCaseResult {
        let covering =
            self.shares.iter().map(|(_, shared)| shared).filter(|shared| {
                shared.owner == owner && self.reaches(shared, reader) && shared.covers(asked)
            });
        let covering: Vec<&Shared> = covering.collect();
        let who = Reader::for_tests(person(reader));
        let decided = self
            .grants
            .windows(&who, person(owner), &self.id_of(owner, asked), range)
            .await;
        let permit = match decided {
            Err(Denied::Refused(_)) => {
                prop_assert!(covering.is_empty() && reader != owner, "refused: {covering:?}");
                return Ok(());
            }
            decided => decided.unwrap(),
        };
        prop_assert!(reader == owner || !covering.is_empty());
        for moment in -1..=END {
            let asked_for = range.start().micros() <= moment && moment < range.end().micros();
            let given = reader == owner || covering.iter().any(|shared| shared.holds_at(moment));
            let permitted = permit.windows().contain(Instant::from_micros(moment));
            prop_assert_eq!(permitted, asked_for && given, "at {}: {:?}", moment, &covering);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// For every reader, owner, type and range, the windows are the moments of the range that some live share
    /// covers.
    #[test]
    fn rule_9_2b_windows_are_the_union_of_live_grants(
        steps in steps(),
        start in 0..END,
        length in 0..END,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in steps {
                world.take(step).await;
            }
            let range = TimeRange::between(Instant::from_micros(start), Instant::from_micros(start + length));
            for reader in 0..PEOPLE {
                for owner in 0..PEOPLE {
                    for asked in ASKED {
                        world.check(reader, owner, asked, range).await?;
                    }
                }
            }
            Ok::<(), TestCaseError>(())
        })?;
    }
}
