//! What is promised of sessions, shown on SQLite and, where `ALMANAC_TEST_POSTGRES_URL` names one, on a
//! PostgreSQL database.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::catalog::test_databases::{databases_at_hand, file_in};
use crate::model::clock::ManualClock;
use crate::model::ids::SystemIds;

const NOW: Instant = Instant::from_micros(1_700_000_000_000_000);
const LIMIT: u64 = 4;
const HOUR: Duration = Duration::from_hours(1);

/// Two services upon one catalogue.
struct Bench {
    nodes: [Sessions; 2],
    clock: Arc<ManualClock>,
    directory: TempDir,
}

impl Bench {
    async fn all() -> Vec<Self> {
        let mut benches = Vec::new();
        for (directory, address) in databases_at_hand() {
            benches.push(Self::open(directory, &address).await);
        }
        benches
    }

    async fn open(directory: TempDir, address: &str) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let node = async || {
            let catalog = Catalog::open(address, clock.clone()).await.unwrap();
            Sessions::new(catalog, clock.clone(), Arc::new(SystemIds::default()), LIMIT).keeping_ends(1 << 10)
        };
        let nodes = [node().await, node().await];
        Self {
            nodes,
            clock,
            directory,
        }
    }
}

fn named(text: &str) -> Name {
    Name::try_from(text.to_owned()).unwrap()
}

fn person() -> PersonId {
    PersonId(Uuid::new_v4())
}

#[tokio::test]
async fn a_revoked_session_is_refused_by_every_node_at_once() {
    for bench in Bench::all().await {
        let [here, there] = &bench.nodes;
        let owner = person();
        let session = here.open(owner, named("laptop"), HOUR).await.unwrap();
        assert!(there.accepts(owner, session.id).await.unwrap());
        assert!(
            !there.accepts(person(), session.id).await.unwrap(),
            "of somebody else"
        );
        here.revoke(owner, session.id, &Condition::NONE).await.unwrap();
        assert!(!there.accepts(owner, session.id).await.unwrap());
        assert!(!there.accepts(owner, Uuid::new_v4()).await.unwrap(), "of nobody");
    }
}

#[tokio::test]
async fn somebody_elses_session_is_as_unknown_as_none() {
    for bench in Bench::all().await {
        let [node, _] = &bench.nodes;
        let session = node.open(person(), named("laptop"), HOUR).await.unwrap();
        let stranger = person();
        for outcome in [
            node.get(stranger, session.id).await,
            node.rename(stranger, session.id, &named("mine"), &Condition::NONE)
                .await,
            node.revoke(stranger, session.id, &Condition::NONE).await,
        ] {
            assert!(matches!(outcome, Err(SessionError::Unknown(id)) if id == session.id));
        }
        assert!(node.accepts(session.person, session.id).await.unwrap());
    }
}

#[tokio::test]
async fn of_many_who_race_for_the_last_places_as_many_get_one_as_there_are() {
    for bench in Bench::all().await {
        let owner = person();
        let racers = (0..12).map(|number| bench.nodes[number % 2].open(owner, named("one of many"), HOUR));
        let outcomes = futures::future::join_all(racers).await;
        assert_eq!(
            outcomes.iter().filter(|outcome| outcome.is_ok()).count(),
            LIMIT as usize
        );
        assert!(
            outcomes
                .iter()
                .filter_map(|outcome| outcome.as_ref().err())
                .all(|error| matches!(
                    error,
                    SessionError::LimitReached(LimitReached { limit: LIMIT, .. })
                ))
        );
    }
}

#[tokio::test]
async fn a_limit_below_the_open_sessions_is_reached_whatever_has_ended() {
    for mut bench in Bench::all().await {
        let [node, lowered] = &mut bench.nodes;
        lowered.limit = 2;
        let owner = person();
        for number in 1..LIMIT {
            node.open(owner, named(&format!("program {number}")), HOUR * 2)
                .await
                .unwrap();
        }
        let ended = node.open(owner, named("the last"), HOUR).await.unwrap();
        node.revoke(owner, ended.id, &Condition::NONE).await.unwrap();
        assert!(matches!(
            lowered.open(owner, named("one more"), HOUR).await,
            Err(SessionError::LimitReached(LimitReached { limit: 2, .. }))
        ));
        // What was refused has changed nothing.
        assert!(node.get(owner, ended.id).await.is_ok());
        assert!(node.open(owner, named("one more"), HOUR).await.is_ok());
    }
}

#[tokio::test]
async fn open_sessions_are_counted_without_reading_them_until_one_changes() {
    let bench = Bench::all().await.swap_remove(0);
    let ([node, other], owner) = (&bench.nodes, person());
    assert_eq!(node.count_open(owner).await.unwrap(), 0);
    let session = node.open(owner, named("laptop"), HOUR).await.unwrap();
    other.open(owner, named("phone"), HOUR * 2).await.unwrap();
    assert_eq!(node.count_open(owner).await.unwrap(), 2);
    // From now on nobody can read it.
    let catalogue = rusqlite::Connection::open(file_in(bench.directory.path())).unwrap();
    let sql = "UPDATE documents SET checksum = checksum + 1 WHERE document = ?1";
    assert_eq!(catalogue.execute(sql, [session.id.as_bytes()]).unwrap(), 1);
    assert_eq!(node.count_open(owner).await.unwrap(), 2);
    bench.clock.set(later(NOW, 1));
    assert_eq!(node.count_open(owner).await.unwrap(), 1, "one is over");
    other.open(owner, named("watch"), HOUR).await.unwrap();
    let failed = node.count_open(owner).await;
    assert!(matches!(failed, Err(SessionError::Catalog(_))), "{failed:?}");
}

/// One step of a person with several programs.
#[derive(Clone, Debug)]
enum Step {
    Open { hours: u8 },
    Rename(usize),
    Revoke(usize),
    Wait { hours: u8 },
}

/// What a session is in the model: open until a time, or revoked at one.
#[derive(Clone, Debug, PartialEq)]
struct Modelled {
    name: String,
    until: Instant,
    revoked_at: Option<Instant>,
}

impl Modelled {
    fn is_open(&self, now: Instant) -> bool {
        self.revoked_at.is_none() && now < self.until
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..6_u8).prop_map(|hours| Step::Open { hours }),
        2 => (0..8_usize).prop_map(Step::Rename),
        2 => (0..8_usize).prop_map(Step::Revoke),
        1 => (1..4_u8).prop_map(|hours| Step::Wait { hours }),
    ]
}

fn later(now: Instant, hours: u8) -> Instant {
    Instant::from_micros(now.micros() + i64::from(hours) * 3_600_000_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// After any steps on any node, sessions are what a map of them would be: open, over or revoked, never
    /// more than the limit, those that are over leaving only when room is needed.
    #[test]
    fn sessions_are_opened_named_and_ended_as_in_a_map(
        steps in prop::collection::vec((step(), 0..2_usize), 1..24),
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            for bench in Bench::all().await {
                follow(&bench, &steps).await;
            }
        });
    }
}

async fn follow(bench: &Bench, steps: &[(Step, usize)]) {
    let owner = person();
    let mut now = NOW;
    // In the order in which they were opened, which is that of their ids.
    let mut model: BTreeMap<Uuid, Modelled> = BTreeMap::new();
    let nth = |model: &BTreeMap<Uuid, Modelled>, number: usize| model.keys().nth(number).copied();
    for (number, (step, node)) in steps.iter().enumerate() {
        let sessions = &bench.nodes[*node];
        let name = format!("step {number}");
        match step {
            Step::Wait { hours } => {
                now = later(now, *hours);
                bench.clock.set(now);
            }
            Step::Open { hours } => {
                let opened = sessions.open(owner, named(&name), HOUR * u32::from(*hours)).await;
                if model.len() as u64 == LIMIT {
                    model.retain(|_, session| session.is_open(now));
                }
                if model.len() as u64 == LIMIT {
                    assert!(matches!(
                        opened,
                        Err(SessionError::LimitReached(LimitReached { limit: LIMIT, .. }))
                    ));
                } else {
                    let opened = opened.unwrap();
                    let until = later(now, *hours);
                    model.insert(
                        opened.id,
                        Modelled {
                            name,
                            until,
                            revoked_at: None,
                        },
                    );
                }
            }
            Step::Rename(which) => {
                let Some(id) = nth(&model, *which) else { continue };
                let renamed = sessions.rename(owner, id, &named(&name), &Condition::NONE).await;
                let known = model.get_mut(&id).unwrap();
                if known.revoked_at.is_some() {
                    assert!(matches!(renamed, Err(SessionError::Revoked(_))));
                } else {
                    assert_eq!(renamed.unwrap().name.as_str(), name);
                    known.name = name;
                }
            }
            Step::Revoke(which) => {
                let Some(id) = nth(&model, *which) else { continue };
                let revoked = sessions.revoke(owner, id, &Condition::NONE).await.unwrap();
                let known = model.get_mut(&id).unwrap();
                known.revoked_at = known.revoked_at.or(Some(now));
                assert_eq!(revoked.revoked_at, known.revoked_at);
            }
        }
        let other = &bench.nodes[1 - node];
        let open: Vec<Uuid> = model
            .iter()
            .filter(|(_, session)| session.is_open(now))
            .map(|(id, _)| *id)
            .collect();
        let listed: Vec<Uuid> = other
            .open_of(owner)
            .await
            .unwrap()
            .iter()
            .map(|session| session.id)
            .collect();
        assert_eq!(listed, open);
        for node in &bench.nodes {
            assert_eq!(node.count_open(owner).await.unwrap(), open.len() as u64);
        }
        for (id, known) in &model {
            let found = other.get(owner, *id).await.unwrap();
            let found = Modelled {
                name: found.name.into(),
                until: found.expires_at,
                revoked_at: found.revoked_at,
            };
            assert_eq!(found, *known);
            let accepted = other.accepts(owner, *id).await.unwrap();
            assert_eq!(accepted, known.revoked_at.is_none());
        }
    }
}

#[test]
fn the_end_of_a_session_is_stored_as_microseconds() {
    let document = Document {
        kind: DocumentKind::Session,
        id: Uuid::from_u128(1),
        person: PersonId(Uuid::from_u128(2)),
        name: None,
        body: r#"{"name":"laptop","expires_at":1700003600000000}"#.to_owned(),
        version: 3,
        created_at: NOW,
        updated_at: NOW,
        deleted_at: None,
    };
    let session = Session::read(&document).unwrap();
    assert_eq!(session.expires_at, NOW.after(HOUR));
    assert_eq!(session.written(NOW).unwrap(), document);
}
