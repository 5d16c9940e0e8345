//! One world: a few nodes over one catalogue and one store, what they are asked, and what befalls them, step by
//! step as its seed has it.
//!
//! A step is one of: a request or a job begins; one of those that wait goes on to where it waits again, or suffers a
//! fault there; time passes; a node dies or starts; something worse happens.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use tokio::task::JoinHandle;

use super::chance::Chance;
use super::disasters::{Backup, Damage, Earlier};
use super::gates::{Gates, Opened, Stillness, What};
use super::history::{Effect, History, Key, Line, Rows, Token};
use super::mood::Mood;
use super::node::{GRACE, Node, Shared};
use super::requests::{self, Answer, Job, Seen};
use super::sharing::{self, Shares, Sharing, Terms};
use crate::catalog::records::Stamp;
use crate::ingest::compile::CompiledTypes;
use crate::model::clock::{Clock as _, ManualClock};
use crate::model::ids::SystemIds;
use crate::model::registry::Registry;
use crate::model::time::Instant;
use crate::store::faults::Operation;
use crate::store::objects::ObjectStorage;
use crate::upkeep::identity;

pub const PEOPLE: usize = 3;
const NODES: usize = 3;
/// What is under way at the same time.
const AT_ONCE: usize = 10;
/// Writes of one person whose outcome is open.
const MOST_OPEN: usize = 6;
/// A write that has not ended after its node went on so often is starved, where its node has little else to do.
const STARVED: u64 = 200;
/// After so many steps everything that is under way has an end, whatever comes first.
const ENDLESS: u64 = 20_000;
/// Steps that are told when something is wrong.
const TOLD: usize = 80;
/// 2026-05-28T20:26:40Z
const BEGINNING: i64 = 1_780_000_000_000_000;
/// The largest number of records of one type, and of keys of one person.
const RECORDS: usize = 40;

/// Something under way.
struct Running {
    about: About,
    life: usize,
    owner: usize,
    began: u64,
    began_at: Instant,
    /// How often its node went on since it had everything it needed from its client.
    waited: u64,
    /// A fault befell its node, or damage its owner: it may fail.
    may_fail: bool,
    task: JoinHandle<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Write,
    Read,
    Share,
    /// Looks at what another shares with this person.
    Look(usize),
    Work(Job),
}

/// What a world came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub steps: u64,
    pub writes: u64,
    pub reads: u64,
    pub jobs: u64,
    pub faults: u64,
    pub disasters: u64,
    /// How often the node of a write went on, at the most, until it was answered.
    pub longest: u64,
    /// Of everything that happened, in its order.
    pub digest: u64,
}

pub struct World {
    pub(super) seed: u64,
    pub(super) mood: Mood,
    pub(super) chance: Chance,
    pub(super) shared: Shared,
    pub(super) directory: tempfile::TempDir,
    pub(super) histories: Vec<History>,
    pub(super) shares: Shares,
    pub(super) damages: Vec<Damage>,
    pub(super) earlier: Option<Earlier>,
    pub(super) backup: Option<Backup>,
    /// Objects may be kept that nothing names.
    pub(super) keeps_more: bool,
    /// How many catalogues there were before.
    pub(super) lost: usize,
    nodes: Vec<Option<Arc<Node>>>,
    lives: usize,
    running: BTreeMap<u64, Running>,
    begun: u64,
    tokens: Token,
    keys: u32,
    bodies: u32,
    /// What was sent under keys that may be sent again.
    keyed: Vec<(usize, Effect)>,
    /// Values that each record had, to be sent again.
    sent: BTreeMap<(usize, Key), Vec<Token>>,
    /// What was read under each stamp.
    stamped: BTreeMap<(usize, Vec<(i64, u32)>), Rows>,
    step: u64,
    log: VecDeque<String>,
    pub(super) told: Told,
}

impl World {
    pub async fn new(seed: u64, mood: Mood, stillness: Arc<Stillness>) -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let directory = tempfile::tempdir_in(memory)
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let registry = Arc::new(Registry::builtin().unwrap());
        let shared = Shared {
            gates: Arc::new(Gates::new(stillness)),
            time: Arc::new(ManualClock::at(Instant::from_micros(BEGINNING))),
            objects: Arc::new(InMemory::new()),
            address: address_of(&directory, 0),
            compiled: Arc::new(CompiledTypes::new(Arc::clone(&registry))),
            registry,
        };
        let mut world = Self {
            seed,
            mood,
            chance: Chance::of(seed),
            shared,
            directory,
            histories: std::iter::repeat_with(History::default).take(PEOPLE).collect(),
            shares: Shares::default(),
            damages: Vec::new(),
            earlier: None,
            backup: None,
            keeps_more: false,
            lost: 0,
            nodes: vec![None; NODES],
            lives: 0,
            running: BTreeMap::new(),
            begun: 0,
            tokens: 0,
            keys: 0,
            bodies: 0,
            keyed: Vec::new(),
            sent: BTreeMap::new(),
            stamped: BTreeMap::new(),
            step: 0,
            log: VecDeque::new(),
            told: Told::default(),
        };
        world.found().await;
        for slot in 0..NODES {
            world.start(slot).await;
        }
        world
    }

    /// Catalogue and store become a pair.
    async fn found(&self) {
        let node = Node::undisturbed(&self.shared).await;
        identity::settle(&node.stores.catalog, node.stores.objects(), &SystemIds, false)
            .await
            .unwrap();
        node.stores.catalog.close().await;
    }

    pub async fn run(mut self, steps: u64) -> Told {
        while self.step < steps {
            self.next().await;
            let unknown = self.histories.iter().any(|history| history.open() > MOST_OPEN);
            if unknown || self.step.is_multiple_of(self.mood.pauses) {
                self.pause().await;
            }
        }
        self.end().await;
        self.told.steps = self.step;
        self.told
    }

    async fn next(&mut self) {
        self.begin_step();
        let mood = self.mood;
        if self.chance.one_in(40) {
            let length = Duration::from_millis(self.chance.between(500, 90_000) as u64);
            self.pass(length);
        } else if self.chance.one_in(mood.long_times) {
            let hours = Duration::from_mins(self.chance.between(7 * 60, 9 * 60) as u64);
            let minutes = Duration::from_mins(self.chance.between(10, 25) as u64);
            let length = if self.chance.one_in(3) { hours } else { minutes };
            self.pass(length);
        } else if self.chance.one_in(mood.clocks) {
            self.skew();
        } else if self.chance.one_in(mood.crashes) {
            let slot = self.chance.below(NODES);
            if self.nodes[slot].is_some() {
                self.crash(slot);
            } else {
                self.start(slot).await;
            }
        } else if self.chance.one_in(mood.damages) {
            self.damage_or_mend().await;
        } else if self.chance.one_in(mood.failovers) {
            self.fail_over().await;
        } else if self.shared.gates.is_late() && self.chance.one_in(6) {
            self.release_late().await;
        } else if self.running.len() < AT_ONCE && self.chance.one_in(4) {
            self.begin().await;
        } else if !self.open_one(mood.faults) {
            self.begin().await;
        }
        self.settle().await;
    }

    fn begin_step(&mut self) {
        self.step += 1;
        for history in &mut self.histories {
            history.moves_to(self.step);
        }
        let passes = Duration::from_micros(self.chance.between(0, 40_000) as u64);
        let now = self.now().micros() + passes.as_micros() as i64;
        self.shared.time.set(Instant::from_micros(now));
    }

    pub(super) async fn settle(&mut self) {
        self.shared.gates.stillness.settled().await;
        self.harvest().await;
    }

    pub(super) fn now(&self) -> Instant {
        self.shared.time.now()
    }

    pub(super) fn pass(&mut self, length: Duration) {
        let now = self.now().micros() + length.as_micros() as i64;
        self.shared.time.set(Instant::from_micros(now));
        self.say(&format!("{} s pass", length.as_secs()));
    }

    fn skew(&mut self) {
        let slot = self.chance.below(NODES);
        let length = *self.chance.pick(&[
            Duration::from_secs(1),
            Duration::from_mins(2),
            Duration::from_hours(9),
            Duration::from_hours(24 * 365),
        ]);
        let is_ahead = self.chance.one_in(2);
        if let Some(node) = &self.nodes[slot] {
            node.clock.jump(length, is_ahead);
            let side = if is_ahead { "ahead" } else { "behind" };
            self.say(&format!(
                "the clock of node {slot} is {} s {side}",
                length.as_secs()
            ));
        }
    }

    pub(super) async fn start(&mut self, slot: usize) {
        self.lives += 1;
        let node = Node::start(&self.shared, self.lives, self.chance.next()).await;
        if self.mood.clocks != 0 && self.chance.one_in(2) {
            let ahead = Duration::from_secs(self.chance.between(0, 40_000) as u64);
            node.clock.jump(ahead, self.chance.one_in(2));
        }
        self.nodes[slot] = Some(Arc::new(node));
        self.say(&format!("node {slot} starts life {}", self.lives));
    }

    pub(super) fn crash(&mut self, slot: usize) {
        let Some(node) = self.nodes[slot].take() else {
            return;
        };
        self.say(&format!("node {slot} dies, life {}", node.life));
        self.shared.gates.kill(node.life);
        node.die();
        let gone: Vec<u64> = self
            .running
            .iter()
            .filter(|(_, running)| running.life == node.life)
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            if let Some(running) = self.running.remove(&id) {
                running.task.abort();
                // Whoever wrote does not know what became of it.
                self.histories[running.owner].forgets(id);
            }
        }
    }

    async fn release_late(&mut self) {
        let (choice, happens) = (self.chance.next() as usize, !self.chance.one_in(3));
        let told = self.shared.gates.release(|count| choice % count, happens).await;
        self.say(&told.unwrap_or_default());
    }

    /// Opens one of the gates; `false` if none is closed. `faults`: one in so many leads to a fault.
    fn open_one(&mut self, faults: usize) -> bool {
        let gates = self
            .shared
            .gates
            .waiting(|place, gate| Some((place, gate.life, gate.what)));
        if gates.is_empty() {
            return false;
        }
        let favoured = self.mood.favourite.and_then(|slot| self.nodes[slot].as_ref());
        let favoured = favoured.map(|node| node.life).filter(|_| !self.chance.one_in(8));
        let is_preferred = |(_, life, what): &&(usize, usize, What)| {
            favoured.is_none_or(|favoured| *life == favoured)
                && !(self.mood.slow_clients && *what == What::Client)
        };
        let preferred: Vec<(usize, usize, What)> = gates.iter().filter(is_preferred).copied().collect();
        let among = if preferred.is_empty() || self.chance.one_in(16) {
            &gates
        } else {
            &preferred
        };
        let (place, life, what) = *self.chance.pick(among);
        let opened = if self.chance.one_in(faults) {
            self.fault(what)
        } else {
            Opened::Goes
        };
        let told = self.shared.gates.open(place, opened);
        self.say(&told);
        if opened != Opened::Goes {
            self.told.faults += 1;
        }
        for running in self.running.values_mut().filter(|running| running.life == life) {
            running.may_fail |= opened != Opened::Goes;
            running.waited = if what == What::Client {
                0
            } else {
                running.waited + 1
            };
        }
        true
    }

    fn fault(&mut self, what: What) -> Opened {
        *match what {
            What::Client | What::Read | What::Write => self.chance.pick(&[Opened::Fails]),
            What::Commit => self.chance.pick(&[Opened::Fails, Opened::Unheard, Opened::Later]),
            What::Store(Operation::Put) => {
                self.chance
                    .pick(&[Opened::Fails, Opened::NoRoom, Opened::Unheard, Opened::Later])
            }
            What::Store(Operation::Delete) => {
                self.chance.pick(&[Opened::Fails, Opened::Unheard, Opened::Later])
            }
            What::Store(_) => self.chance.pick(&[Opened::Fails]),
        }
    }

    /// A request or a job begins at some node.
    async fn begin(&mut self) {
        let alive: Vec<usize> = (0..NODES).filter(|slot| self.nodes[*slot].is_some()).collect();
        if alive.is_empty() {
            let slot = self.chance.below(NODES);
            return self.start(slot).await;
        }
        let slot = *self.chance.pick(&alive);
        let slot = self
            .mood
            .favourite
            .filter(|_| self.chance.below(6) > 0)
            .unwrap_or(slot);
        let Some(node) = self.nodes[slot].clone() else {
            return;
        };
        if self.mood.crowd && self.chance.below(4) > 0 {
            return self.join_crowd(&node, self.mood.favourite == Some(slot));
        }
        let owner = self.chance.below(PEOPLE);
        let may_write = self.histories[owner].open() < MOST_OPEN;
        match self.chance.below(23) {
            20 => self.share(&node),
            21 | 22 => {
                let reader = (owner + 1 + self.chance.below(PEOPLE - 1)) % PEOPLE;
                let look = sharing::look_at(node.clone(), owner, reader);
                self.begin_running(&node, owner, About::Look(reader), look);
            }
            0..9 if may_write => self.write_small(&node, owner),
            9..11 if may_write => self.write_large(&node, owner),
            0..15 => {
                self.begin_running(&node, owner, About::Read, requests::read(node.clone(), owner));
            }
            _ => {
                let job = *self.chance.pick(&[
                    Job::Flush,
                    Job::Flush,
                    Job::Compact,
                    Job::Compact,
                    Job::Collect,
                    Job::Orphans,
                    Job::Manifests,
                    Job::Purge,
                    Job::Scrub,
                    Job::Check,
                ]);
                self.work(&node, job);
            }
        }
    }

    /// One more of many who write what is one person's, or one who does so with much at once.
    fn join_crowd(&mut self, node: &Arc<Node>, is_inside: bool) {
        if self.histories[0].open() >= MOST_OPEN {
            return;
        }
        if is_inside {
            self.write_small(node, 0);
        } else if self.running.values().all(|running| running.life != node.life) {
            self.write_large(node, 0);
        }
    }

    fn work(&mut self, node: &Arc<Node>, job: Job) {
        self.begin_running(node, 0, About::Work(job), requests::work(node.clone(), job));
    }

    fn begin_running(
        &mut self,
        node: &Arc<Node>,
        owner: usize,
        about: About,
        task: impl Future<Output = Answer> + Send + 'static,
    ) {
        self.begun += 1;
        let may_fail = self.is_damaged(owner, about);
        if matches!(about, About::Read | About::Look(_)) {
            self.histories[owner].begins_to_read(self.begun);
        }
        self.say(&format!(
            "life {} begins {}: {about:?} of person {owner}",
            node.life, self.begun
        ));
        let running = Running {
            about,
            life: node.life,
            owner,
            began: self.step,
            began_at: self.now(),
            waited: 0,
            may_fail,
            task: tokio::spawn(Box::pin(task)),
        };
        self.running.insert(self.begun, running);
    }

    fn share(&mut self, node: &Arc<Node>) {
        let known = self.shares.known();
        let known = (!known.is_empty() && self.chance.one_in(2)).then(|| self.chance.pick(&known).clone());
        let (owner, sharing) = match known {
            Some((share, before)) if self.chance.one_in(2) => (before.owner, Sharing::TakesBack(share)),
            Some((share, before)) => {
                let terms = self.terms(before.owner, before.reader);
                (before.owner, Sharing::Changes(share, terms))
            }
            None => {
                let owner = self.chance.below(PEOPLE);
                let reader = (owner + 1 + self.chance.below(PEOPLE - 1)) % PEOPLE;
                (owner, Sharing::Gives(self.terms(owner, reader)))
            }
        };
        self.shares.begins(self.begun + 1, &sharing, self.step);
        self.begin_running(
            node,
            owner,
            About::Share,
            sharing::share(node.clone(), owner, sharing),
        );
    }

    fn terms(&mut self, owner: usize, reader: usize) -> Terms {
        let types = self.chance.pick(&[vec![0], vec![1], vec![0, 1]]).clone();
        let first = self.chance.below(200) as Token;
        let last = first + 1 + self.chance.below(100) as Token;
        Terms {
            owner,
            reader,
            types,
            start: requests::start_of(0) + i64::from(first) * requests::MINUTE,
            end: requests::start_of(0) + i64::from(last) * requests::MINUTE,
        }
    }

    fn is_damaged(&self, owner: usize, about: About) -> bool {
        let mut damages = self.damages.iter();
        damages.any(|damage| damage.owner == owner || matches!(about, About::Work(_)))
    }

    /// Whatever reads what was damaged now may say so.
    pub(super) fn damaged(&mut self) {
        let damaged: BTreeSet<usize> = self.damages.iter().map(|damage| damage.owner).collect();
        for running in self.running.values_mut() {
            let is_work = matches!(running.about, About::Work(_));
            running.may_fail |= is_work || damaged.contains(&running.owner);
        }
    }

    fn write_small(&mut self, node: &Arc<Node>, owner: usize) {
        let mut effect = Effect::default();
        if self.chance.one_in(6) && !self.keyed.is_empty() {
            // A client that heard nothing repeats what it sent, or by mistake something else under the same key.
            let (of, repeated) = self.chance.pick(&self.keyed.clone()).clone();
            let effect = if self.chance.one_in(5) {
                let key = repeated.key.map(|(key, _)| (key, self.bodies + 1));
                let lines = self.lines(of, 2);
                Effect { lines, key }
            } else {
                repeated
            };
            if self.histories[of].open() < MOST_OPEN {
                self.bodies += 1;
                return self.begin_write(node, of, effect, false, false);
            }
        }
        let count = 1 + self.chance.below(5);
        effect.lines = self.lines(owner, count);
        if self.chance.one_in(4) {
            self.bodies += 1;
            effect.key = Some((self.keys, self.bodies));
            self.keys += 1;
            self.keyed.push((owner, effect.clone()));
            if self.keyed.len() > 8 {
                self.keyed.remove(0);
            }
        }
        self.begin_write(node, owner, effect, false, false);
    }

    fn lines(&mut self, owner: usize, count: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let only = self.chance.below(requests::TYPES.len());
        let mixed = self.chance.one_in(3);
        for _ in 0..count {
            let data_type = if mixed {
                self.chance.below(requests::TYPES.len())
            } else {
                only
            };
            let key = Key::Given(data_type, self.chance.below(self.mood.records.min(RECORDS)) as u8);
            lines.push(match self.chance.below(10) {
                0 | 1 => Line::Delete(key),
                2 => {
                    self.tokens += 1;
                    Line::Put(Key::New(data_type, self.tokens), self.tokens)
                }
                _ => Line::Put(key, self.token(owner, key)),
            });
        }
        lines
    }

    /// A new value, or one that the record had before.
    fn token(&mut self, owner: usize, key: Key) -> Token {
        let sent = self.sent.entry((owner, key)).or_default();
        if !sent.is_empty() && self.chance.one_in(3) {
            return sent[self.chance.below(sent.len())];
        }
        self.tokens += 1;
        sent.push(self.tokens);
        self.tokens
    }

    fn write_large(&mut self, node: &Arc<Node>, owner: usize) {
        let data_type = self.chance.below(requests::TYPES.len());
        let mut effect = Effect::default();
        // Much of it may be what was sent before, as when an import is repeated.
        for _ in 0..30 + self.chance.below(20) {
            let key = Key::Given(data_type, self.chance.below(RECORDS) as u8);
            let sent = self.sent.get(&(owner, key)).and_then(|sent| sent.last()).copied();
            let token = match sent {
                Some(token) if self.chance.one_in(2) => token,
                _ => self.token(owner, key),
            };
            effect.lines.push(Line::Put(key, token));
        }
        let breaks_off = self.chance.one_in(10);
        self.begin_write(node, owner, effect, true, breaks_off);
    }

    fn begin_write(
        &mut self,
        node: &Arc<Node>,
        owner: usize,
        effect: Effect,
        is_large: bool,
        breaks_off: bool,
    ) {
        self.histories[owner].begins(self.begun + 1, effect.clone());
        let shared = self.shared.clone();
        if is_large {
            let task = requests::write_large(shared, node.clone(), owner, effect, breaks_off);
            self.begin_running(node, owner, About::Write, task);
        } else {
            let task = requests::write_small(shared, node.clone(), owner, effect);
            self.begin_running(node, owner, About::Write, task);
        }
        if let Some(running) = self.running.get_mut(&self.begun) {
            running.may_fail |= breaks_off;
        }
    }

    /// Takes the answers that are there.
    async fn harvest(&mut self) {
        let over: Vec<u64> = self
            .running
            .iter()
            .filter(|(_, running)| running.task.is_finished())
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            if let Some(running) = self.running.remove(&id) {
                self.answered(id, running).await;
            }
        }
        let crowd = self.mood.favourite.filter(|_| self.mood.crowd);
        let crowd = crowd
            .and_then(|slot| self.nodes[slot].as_ref())
            .map(|node| node.life);
        let starved = self.running.iter().find(|(_, running)| {
            running.about == About::Write
                && running.waited > STARVED
                && crowd.is_some_and(|crowd| crowd != running.life)
        });
        if let Some((id, running)) = starved {
            let told = format!(
                "{id} ({:?} of person {}) never ends",
                running.about, running.owner
            );
            self.fail(&told);
        }
    }

    async fn answered(&mut self, id: u64, running: Running) {
        let may_fail =
            running.may_fail || self.now().micros() - running.began_at.micros() >= GRACE.as_micros() as i64;
        let answer = match running.task.await {
            Ok(answer) => answer,
            Err(error) => self.fail(&format!("{id} panicked: {error}")),
        };
        let (owner, about) = (running.owner, running.about);
        let told = match &answer {
            Answer::Read(seen) => format!("{id} read {} rows", seen.rows.len()),
            answer => format!("{id} ends with {answer:?}"),
        };
        self.say(&told);
        match about {
            About::Write => self.told.writes += 1,
            About::Share => self.told.writes += 1,
            About::Read | About::Look(_) => self.told.reads += 1,
            About::Work(_) => self.told.jobs += 1,
        }
        let outcome = match answer {
            Answer::Wrote(did) => self.histories[owner].acknowledged(id, did),
            Answer::Refused(why) | Answer::Unknown(why) | Answer::Failed(why) if !may_fail => {
                Err(format!("it failed although nothing had happened to it: {why}"))
            }
            Answer::Refused(_) | Answer::Overtaken(_) if about == About::Share => {
                self.shares.refused(id);
                Ok(())
            }
            Answer::Shared(share) => {
                self.shares.done(id, share, self.step);
                Ok(())
            }
            Answer::Overtaken(why) => Err(why),
            Answer::BrokenOff => {
                self.histories[owner].forgets(id);
                Ok(())
            }
            Answer::Shown(shown) => {
                let reader = if let About::Look(reader) = about {
                    reader
                } else {
                    owner
                };
                let judged = self.shares.judge(owner, reader, running.began, &shown);
                self.histories[owner]
                    .shown(id, |rows| shown.is_all_of(rows))
                    .and(judged)
            }
            Answer::Refused(_) => self.histories[owner].refused(id),
            Answer::Unknown(_) | Answer::Done => Ok(()),
            Answer::Failed(_) => {
                self.histories[owner].forgets(id);
                Ok(())
            }
            Answer::Wrong(wrong) => Err(wrong),
            Answer::Read(seen) => {
                let stamps = self.is_known_by_stamp(owner, &seen);
                self.histories[owner].answered(id, &seen.rows).and(stamps)
            }
            Answer::Complaints(complaints) if !complaints.is_empty() && !may_fail => {
                Err(format!("a check found what is not there: {complaints:?}"))
            }
            Answer::Complaints(_) => Ok(()),
        };
        if let Err(wrong) = outcome {
            self.fail(&format!("{id} ({about:?} of person {owner}): {wrong}"));
        }
    }

    /// Whoever is told that nothing changed must have what there is.
    fn is_known_by_stamp(&mut self, owner: usize, seen: &Seen) -> Result<(), String> {
        let stamp = |stamp: &Stamp| (stamp.version, stamp.digest);
        let stamps: Vec<(i64, u32)> = seen.stamps.iter().map(stamp).collect();
        let before = self
            .stamped
            .entry((owner, stamps))
            .or_insert_with(|| seen.rows.clone());
        if *before == seen.rows {
            Ok(())
        } else {
            Err(format!("two states have the same stamps {:?}", seen.stamps))
        }
    }

    /// Lets everything that is under way come to its end, without further faults.
    pub(super) async fn drain(&mut self) {
        let until = self.step + ENDLESS;
        loop {
            self.begin_step();
            if self.shared.gates.is_late() && self.chance.one_in(6) {
                self.release_late().await;
            } else if !self.open_one(0) {
                if self.shared.gates.is_late() {
                    self.release_late().await;
                } else if self.running.is_empty() {
                    return;
                }
            }
            self.settle().await;
            if self.step > until {
                self.fail("something never ends");
            }
        }
    }

    /// Nothing is under way: what is stored is held against what was acknowledged.
    pub(super) async fn pause(&mut self) {
        self.drain().await;
        self.mend_all().await;
        self.look().await;
        if self.mood.disasters != 0 && self.chance.one_in(self.mood.disasters) {
            self.disaster().await;
        }
    }

    async fn look(&mut self) {
        let node = Node::undisturbed(&self.shared).await;
        for owner in 0..PEOPLE {
            let (rows, accepted) = self.truth(&node, owner).await;
            if let Err(wrong) = self.histories[owner].ends_with(&rows, &accepted) {
                self.fail(&format!("what is stored of person {owner}: {wrong}"));
            }
        }
        node.stores.catalog.close().await;
        node.die();
    }

    /// What is stored of a person.
    pub(super) async fn truth(&mut self, node: &Node, owner: usize) -> (Rows, BTreeMap<u32, u32>) {
        match requests::read_all(node, &node.stores.snapshots, owner).await {
            Ok(Ok(seen)) => (seen.rows, requests::accepted(node, owner, self.keys).await),
            Ok(Err(wrong)) => self.fail(&format!("what is stored of person {owner}: {wrong}")),
            Err(error) => self.fail(&format!(
                "what is stored of person {owner} cannot be read: {error}"
            )),
        }
    }

    /// Everything is put right, background work comes to its end, and then all is as it should be.
    async fn end(&mut self) {
        self.drain().await;
        self.mend_all().await;
        self.mood = Mood::calm();
        for slot in 0..NODES {
            self.crash(slot);
        }
        self.look().await;
        self.start(0).await;
        for round in 0..5 {
            self.pass(if round < 3 {
                Duration::from_mins(12)
            } else {
                Duration::from_hours(8)
            });
            for job in [
                Job::Flush,
                Job::Compact,
                Job::Manifests,
                Job::Purge,
                Job::Orphans,
                Job::Collect,
                Job::Scrub,
                Job::Check,
            ] {
                if let Some(node) = self.nodes[0].clone() {
                    self.work(&node, job);
                }
                self.drain().await;
            }
        }
        self.look().await;
        self.pass(Duration::from_mins(12));
        let node = Node::undisturbed(&self.shared).await;
        let catalog = &node.stores.catalog;
        let waiting = catalog.tail_backlog().await.unwrap();
        if !waiting.sound.is_empty() || !waiting.set_aside.is_empty() {
            self.fail(&format!("flush does nothing any more: {waiting:?}"));
        }
        let named: BTreeSet<String> = catalog
            .object_paths(None)
            .await
            .unwrap()
            .into_iter()
            .map(|cursor| cursor.path)
            .collect();
        let stored = self.stored().await;
        if !named.is_subset(&stored) || (named != stored && !self.keeps_more) {
            let lost: Vec<_> = named.difference(&stored).collect();
            let left: Vec<_> = stored.difference(&named).collect();
            self.fail(&format!(
                "objects that are named and gone: {lost:?}; that nobody names: {left:?}"
            ));
        }
        catalog.close().await;
        node.die();
        self.crash(0);
    }

    /// The paths of all objects of pieces.
    pub(super) async fn stored(&self) -> BTreeSet<String> {
        use futures::TryStreamExt as _;
        let objects = ObjectStorage::over(Arc::clone(&self.shared.objects));
        let listed = objects.list("data").unwrap();
        listed.map_ok(|object| object.path).try_collect().await.unwrap()
    }

    pub(super) fn say(&mut self, what: &str) {
        for byte in what.bytes() {
            self.told.digest = (self.told.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if self.log.len() == TOLD {
            self.log.pop_front();
        }
        self.log.push_back(format!("{:>6}  {what}", self.step));
    }

    pub(super) fn fail(&self, what: &str) -> ! {
        let mut told = format!(
            "seed {} step {} ({:?}):\n{what}\nthe last steps were:\n",
            self.seed, self.step, self.mood
        );
        for line in &self.log {
            let _ = writeln!(told, "{line}");
        }
        panic!("{told}");
    }
}

pub(super) fn catalogue_in(directory: &tempfile::TempDir, lost: usize) -> PathBuf {
    directory.path().join(format!("catalogue-{lost}.db"))
}

pub(super) fn address_of(directory: &tempfile::TempDir, lost: usize) -> String {
    format!("sqlite://{}", catalogue_in(directory, lost).display())
}

/// For disasters: the store itself.
impl World {
    pub(super) fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.shared.objects)
    }

    pub(super) const fn nodes() -> usize {
        NODES
    }

    /// The database forgot: whatever is under way may find things otherwise than it left them.
    pub(super) fn everything_may_fail(&mut self) {
        for running in self.running.values_mut() {
            running.may_fail = true;
        }
    }
}
