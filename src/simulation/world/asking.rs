//! What the nodes of a world are asked to do.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::answer::Answer;
use super::super::history::{Effect, Key, Line, Token};
use super::super::node::Node;
use super::super::records::{MINUTE, TYPES, start_of};
use super::super::requests::{self, Job};
use super::super::sharing::{self, Sharing, Terms};
use super::{About, MOST_OPEN, NODES, PEOPLE, Running, World};

/// The largest number of records of one type, and of keys of one person.
const RECORDS: usize = 40;

impl World {
    /// A request or a job begins at some node.
    pub(super) async fn begin(&mut self) {
        let alive: Vec<usize> = (0..NODES).filter(|slot| self.nodes[*slot].is_some()).collect();
        if alive.is_empty() {
            let slot = self.chance.below(NODES);
            return self.start(slot).await;
        }
        let slot = *self.chance.pick(&alive);
        let slot = self
            .trouble
            .favourite
            .filter(|_| self.chance.below(6) > 0)
            .unwrap_or(slot);
        let Some(node) = self.nodes[slot].clone() else {
            return;
        };
        if self.trouble.crowd && self.chance.below(4) > 0 {
            return self.join_crowd(&node, self.trouble.favourite == Some(slot));
        }
        let owner = self.chance.below(PEOPLE);
        let may_write = self.histories[owner].open() < MOST_OPEN;
        let which = if self.trouble.busy && may_write && self.chance.below(3) > 0 {
            0
        } else {
            self.chance.below(23)
        };
        match which {
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
                if self.trouble.searches && self.chance.one_in(2) {
                    return self.work(&node, Job::Orphans);
                }
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

    pub(super) fn work(&mut self, node: &Arc<Node>, job: Job) {
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
        let written = self.histories[owner].effect(self.begun);
        let written = written.map_or_else(String::new, |effect| format!(" {effect}"));
        self.say_of_request(&format!(
            "life {} begins {}: {about:?} of person {owner}{written}",
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
            start: start_of(0) + i64::from(first) * MINUTE,
            end: start_of(0) + i64::from(last) * MINUTE,
        }
    }

    fn is_damaged(&self, owner: usize, about: About) -> bool {
        let mut damages = self.damages.iter();
        damages.any(|damage| damage.owner == owner || matches!(about, About::Work(_)))
    }

    /// Whatever reads what was damaged now may say so.
    pub(in super::super) fn damaged(&mut self) {
        let damaged: BTreeSet<usize> = self.damages.iter().map(|damage| damage.owner).collect();
        for running in self.running.values_mut() {
            let is_work = matches!(running.about, About::Work(_));
            running.may_fail |= is_work || damaged.contains(&running.owner);
        }
    }

    fn write_small(&mut self, node: &Arc<Node>, owner: usize) {
        let mut effect = Effect::default();
        if self.chance.one_in(6) && !self.keyed.is_empty() {
            // A client that heard nothing repeats what it sent, or by mistake something else under the same
            // key.
            let (of, repeated) = self.chance.pick(&self.keyed.clone()).clone();
            let effect = if self.chance.one_in(5) {
                let key = repeated.key.map(|(key, _)| (key, self.bodies + 1));
                let lines = self.lines(of, 2);
                Effect {
                    lines,
                    key,
                    is_large: false,
                }
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
        let only = self.chance.below(TYPES.len());
        let mixed = self.chance.one_in(3);
        for _ in 0..count {
            let data_type = if mixed {
                self.chance.below(TYPES.len())
            } else {
                only
            };
            let key = Key::Given(
                data_type,
                self.chance.below(self.trouble.records.min(RECORDS)) as u8,
            );
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
        let data_type = self.chance.below(TYPES.len());
        let mut effect = Effect {
            is_large: true,
            ..Effect::default()
        };
        // Much of it may be what was sent before, as when an import is repeated.
        for _ in 0..80 + self.chance.below(40) {
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
}
