//! One world: a few nodes over one catalogue and one store, what they are asked, and what befalls them, step
//! by step as its seed has it.
//!
//! A step is one of: a request or a job begins; one of those that wait goes on to where it waits again, or
//! suffers a fault there; time passes; a node dies or starts; something worse happens.

mod answers;
mod asking;
mod ending;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use tokio::task::JoinHandle;

use super::answer::Answer;
use super::chance::Chance;
use super::disasters::harm::{Backup, Damage, Earlier};
use super::gates::{Gates, Opened, Stillness, What};
use super::history::{Effect, History, Key, Rows, Token};
use super::node::{Node, Shared};
use super::requests::Job;
use super::sharing::Shares;
use super::trouble_rates::TroubleRates;
use crate::ingest::compile::CompiledTypes;
use crate::model::clock::{Clock as _, ManualClock};
use crate::model::registry::Registry;
use crate::model::time::Instant;
use crate::store::faults::Operation;
use crate::store::objects::ObjectStorage;

pub(super) const PEOPLE: usize = 3;
const NODES: usize = 3;
/// What is under way at the same time.
const AT_ONCE: usize = 10;
/// Writes of one person whose outcome is open.
const MOST_OPEN: usize = 6;
/// Lines that are told of everything when something is wrong, and of requests alone.
const TOLD: usize = 120;
const TOLD_OF_REQUESTS: usize = 300;
/// No hours pass at once in a world that is older.
const AGE: Duration = Duration::from_hours(120);
/// 2026-05-28T20:26:40Z
const BEGINNING: i64 = 1_780_000_000_000_000;

/// Something under way.
struct Running {
    about: About,
    life: usize,
    owner: usize,
    began: u64,
    began_at: Instant,
    /// How often its node began or ended a change of the catalogue since it had everything it needed from its
    /// client.
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
pub(super) struct Told {
    pub steps: u64,
    pub writes: u64,
    pub reads: u64,
    pub jobs: u64,
    pub faults: u64,
    pub disasters: u64,
    /// How often the node of a write went on, at the most, until it was answered.
    pub longest: u64,
    /// How often a write was overtaken, at the most.
    pub overtaken: usize,
    /// Of everything that happened, in its order.
    pub digest: u64,
}

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) trouble: TroubleRates,
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
    pub(super) keyed: Vec<(usize, Effect)>,
    /// Values that each record had, to be sent again.
    sent: BTreeMap<(usize, Key), Vec<Token>>,
    /// What was read under each stamp.
    stamped: BTreeMap<(usize, Vec<(i64, u32)>), Rows>,
    step: u64,
    /// Everything comes to its end now.
    drains: bool,
    /// Every line is told at once.
    tells: bool,
    log: VecDeque<String>,
    requests: VecDeque<String>,
    pub(super) told: Told,
}

impl World {
    pub(super) async fn new(seed: u64, trouble: TroubleRates, stillness: Arc<Stillness>) -> Self {
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
            trouble,
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
            drains: false,
            tells: std::env::var_os("ALMANAC_SIMULATION_TELLS").is_some(),
            log: VecDeque::new(),
            requests: VecDeque::new(),
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
        node.settle(false).await;
        node.stores.catalog.close().await;
    }

    pub(super) async fn run(mut self, steps: u64) -> Told {
        while self.step < steps {
            self.next().await;
            let unknown = self.histories.iter().any(|history| history.open() > MOST_OPEN);
            if unknown || self.step.is_multiple_of(self.trouble.pauses) {
                self.pause().await;
            }
        }
        self.end().await;
        self.told.steps = self.step;
        self.told
    }

    async fn next(&mut self) {
        self.begin_step();
        let trouble = self.trouble;
        if self.chance.one_in(40) {
            let length = Duration::from_millis(self.chance.between(500, 90_000) as u64);
            self.pass(length);
        } else if self.chance.one_in(trouble.long_times) {
            // Within a week, after which keys are forgotten.
            let is_young = self.now().micros() - BEGINNING < AGE.as_micros() as i64;
            let hours = Duration::from_mins(self.chance.between(7 * 60, 9 * 60) as u64);
            let minutes = Duration::from_mins(self.chance.between(10, 25) as u64);
            let length = if is_young && self.chance.one_in(3) {
                hours
            } else {
                minutes
            };
            self.pass(length);
        } else if self.chance.one_in(trouble.clocks) {
            self.skew();
        } else if self.chance.one_in(trouble.crashes) {
            let slot = self.chance.below(NODES);
            if self.nodes[slot].is_some() {
                self.crash(slot);
            } else {
                self.start(slot).await;
            }
        } else if self.chance.one_in(trouble.damages) {
            self.damage_or_mend().await;
        } else if self.chance.one_in(trouble.failovers) {
            self.fail_over().await;
        } else if self.shared.gates.is_late() && self.chance.one_in(6) {
            self.release_late().await;
        } else {
            let begins = self.running.len() < AT_ONCE && self.chance.one_in(4);
            if begins || !self.open_one(trouble.faults) {
                self.begin().await;
            }
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
        self.look_if_unclear().await;
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

    /// Does nothing while a transaction keeps the database from a node that starts.
    pub(super) async fn start(&mut self, slot: usize) {
        let gates = Arc::clone(&self.shared.gates);
        let Ok(_alone) = gates.writer.try_lock() else {
            return;
        };
        self.lives += 1;
        let node = Node::start(&self.shared, self.lives, self.chance.next()).await;
        if self.trouble.clocks != 0 && self.chance.one_in(2) {
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

    /// Opens one of the gates; `false` if none is closed that should be opened. `faults`: one in so many
    /// leads to a fault.
    fn open_one(&mut self, faults: usize) -> bool {
        let gates = self
            .shared
            .gates
            .waiting(|place, gate| Some((place, gate.life, gate.what)));
        if gates.is_empty() {
            return false;
        }
        let favoured = self.trouble.favourite.and_then(|slot| self.nodes[slot].as_ref());
        let favoured = favoured.map(|node| node.life).filter(|_| !self.chance.one_in(8));
        let is_preferred = |(_, life, what): &&(usize, usize, What)| {
            favoured.is_none_or(|favoured| *life == favoured)
                && !(self.trouble.slow_clients && *what == What::Client)
        };
        let preferred: Vec<(usize, usize, What)> = gates.iter().filter(is_preferred).copied().collect();
        let among = if preferred.is_empty() || self.chance.one_in(16) {
            &gates
        } else {
            &preferred
        };
        // Those who take their time do so even where nobody else is there.
        let may_wait = self.trouble.slow_clients && !self.drains;
        if may_wait && preferred.is_empty() && among.len() < AT_ONCE && !self.chance.one_in(8) {
            return false;
        }
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
            match what {
                What::Client => running.waited = 0,
                What::Write | What::Commit => running.waited += 1,
                What::Read | What::Store(_) => {}
            }
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
        let line = format!("{:>6}  {what}", self.step);
        if self.tells {
            println!("{line}");
        }
        remember(&mut self.log, TOLD, line);
    }

    fn say_of_request(&mut self, what: &str) {
        self.say(what);
        remember(
            &mut self.requests,
            TOLD_OF_REQUESTS,
            format!("{:>6}  {what}", self.step),
        );
    }

    pub(super) fn fail(&self, what: &str) -> ! {
        let mut told = format!(
            "seed {} step {} ({:?}):\n{what}\nagain: {}\nthe last requests were:\n",
            self.seed,
            self.step,
            self.trouble,
            super::command(self.seed)
        );
        for line in &self.requests {
            let _ = writeln!(told, "{line}");
        }
        told.push_str("the last steps were:\n");
        for line in &self.log {
            let _ = writeln!(told, "{line}");
        }
        panic!("{told}");
    }
}

fn remember(lines: &mut VecDeque<String>, most: usize, line: String) {
    if lines.len() == most {
        lines.pop_front();
    }
    lines.push_back(line);
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
