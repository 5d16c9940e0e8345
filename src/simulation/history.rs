//! The checker: is there one order of the acknowledged writes that agrees with time and explains every
//! answer?
//!
//! For each person it keeps all states that could be the true one, each with the writes that it takes to have
//! happened already although nobody has heard of them yet. A write may happen at any moment between its
//! beginning and its answer, all of it at once; one that was refused never; one whose outcome nobody knows at
//! any moment from its beginning on, or never. A read may be of any moment between its beginning and its
//! answer. An answer that none of the states explains is a defect.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::catalog::records::Effect as Counted;

/// Above so many possibilities, ways to the same state are taken for one, and a read may be of a moment of
/// either.
const MANY: usize = 200;

/// What a record holds; each is sent by one write first.
pub(super) type Token = u32;

/// A record by what its writer knows of it: its type and its number, or its content where it came without an
/// id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    Given(usize, u8),
    New(usize, Token),
}

pub(super) type Rows = BTreeMap<Key, Token>;

/// What stands in one line of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Put(Key, Token),
    Delete(Key),
}

/// What a write does. `key`: the number of its `Idempotency-Key`, and of the body it came with.
#[derive(Clone, Debug, Default)]
pub(super) struct Effect {
    pub lines: Vec<Line>,
    pub key: Option<(u32, u32)>,
    /// It goes past the tail, in chunks: whether a row that came again within it was written again is not
    /// told from here.
    pub is_large: bool,
}

impl Effect {
    /// What is certain of what was counted.
    fn certain(&self, counted: Counted) -> Counted {
        if !self.is_large {
            return counted;
        }
        Counted {
            replaced: counted.replaced + counted.unchanged,
            unchanged: 0,
            ..counted
        }
    }
}

/// What a write does to one record: whether it was there before, and whether its version is another one
/// afterwards.
#[derive(Clone, Copy)]
struct Touched {
    was_there: bool,
    is_there: bool,
    has_changed: bool,
}

fn counted<'t>(touched: impl Iterator<Item = &'t Touched>) -> Counted {
    let mut counted = Counted::default();
    for touched in touched {
        match (touched.was_there, touched.is_there) {
            (false, false) => {}
            (false, true) => counted.stored += 1,
            (true, false) => counted.deleted += 1,
            (true, true) if touched.has_changed => counted.replaced += 1,
            (true, true) => counted.unchanged += 1,
        }
    }
    counted
}

/// What became of a write that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Did {
    Happened(Counted),
    /// Its key was accepted before.
    Repeated,
    /// Its key was accepted before, with another body.
    KeyReused,
}

/// Told apart by what it holds, of which there is a sum, so that many can be compared.
#[derive(Clone, Debug, Default)]
struct State {
    sum_of_rows: u64,
    sum_of_keys: u64,
    rows: Arc<Rows>,
    accepted: Arc<BTreeMap<u32, u32>>,
}

impl State {
    fn of(rows: Rows, accepted: BTreeMap<u32, u32>) -> Self {
        Self {
            sum_of_rows: sum_of(&rows),
            sum_of_keys: accepted.iter().fold(0, |sum, entry| sum ^ sum_of_one(entry)),
            rows: Arc::new(rows),
            accepted: Arc::new(accepted),
        }
    }

    fn apply(&mut self, effect: &Effect) -> Did {
        if let Some((key, body)) = effect.key {
            match self.accepted.get(&key) {
                Some(accepted) if *accepted == body => return Did::Repeated,
                Some(_) => return Did::KeyReused,
                None => {
                    Arc::make_mut(&mut self.accepted).insert(key, body);
                    self.sum_of_keys ^= sum_of_one((&key, &body));
                }
            }
        }
        let rows = Arc::make_mut(&mut self.rows);
        let mut all: BTreeMap<Key, Touched> = BTreeMap::new();
        for line in &effect.lines {
            let (key, before, after) = match line {
                Line::Put(key, token) => {
                    self.sum_of_rows ^= sum_of_one((key, token));
                    (key, rows.insert(*key, *token), Some(*token))
                }
                Line::Delete(key) => (key, rows.remove(key), None),
            };
            if let Some(before) = before {
                self.sum_of_rows ^= sum_of_one((key, &before));
            }
            let touched = all.entry(*key).or_insert_with(|| Touched {
                was_there: before.is_some(),
                is_there: false,
                has_changed: false,
            });
            touched.is_there = after.is_some();
            touched.has_changed |= before != after;
        }
        Did::Happened(effect.certain(counted(all.values())))
    }
}

impl Ord for State {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.sum_of_rows, self.sum_of_keys).cmp(&(other.sum_of_rows, other.sum_of_keys))
    }
}

impl PartialOrd for State {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for State {}

fn sum_of(rows: &Rows) -> u64 {
    rows.iter().fold(0, |sum, entry| sum ^ sum_of_one(entry))
}

fn sum_of_one<K: std::hash::Hash, V: std::hash::Hash>(entry: (&K, &V)) -> u64 {
    let mut hasher = DefaultHasher::new();
    entry.hash(&mut hasher);
    hasher.finish()
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Possible {
    state: State,
    /// Writes that are open and have happened in it.
    done: BTreeMap<u64, Did>,
    /// What was true before, and until when, as far back as a read that is open began.
    trail: BTreeMap<State, u64>,
}

/// If there are many, those that differ only by the way to their state become one.
fn merged(possible: BTreeSet<Possible>) -> BTreeSet<Possible> {
    if possible.len() <= MANY {
        return possible;
    }
    let mut ways: BTreeMap<(State, BTreeMap<u64, Did>), BTreeMap<State, u64>> = BTreeMap::new();
    for Possible { state, done, trail } in possible {
        let all = ways.entry((state, done)).or_default();
        for (state, until) in trail {
            let latest = all.entry(state).or_default();
            *latest = until.max(*latest);
        }
    }
    let one = |((state, done), trail)| Possible { state, done, trail };
    ways.into_iter().map(one).collect()
}

#[derive(Clone, Debug)]
struct Open {
    effect: Effect,
    /// It may have been lost with the database that acknowledged it.
    may_be_lost: bool,
}

/// All that is known of one person.
#[derive(Debug)]
pub(super) struct History {
    possible: BTreeSet<Possible>,
    open: BTreeMap<u64, Open>,
    /// Reads that are open, and when they began.
    reads: BTreeMap<u64, u64>,
    /// What moment it is.
    now: u64,
    /// States of which one was the true one at some moment since this was last asked for.
    passed: BTreeSet<u64>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            possible: BTreeSet::from([Possible::default()]),
            open: BTreeMap::new(),
            reads: BTreeMap::new(),
            now: 0,
            passed: BTreeSet::from([0]),
        }
    }
}

impl History {
    /// Writes whose outcome is not known yet.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// How much is not known of what is true now.
    pub(super) fn possibilities(&self) -> usize {
        self.possible.len()
    }

    /// What an open write does, in few words.
    pub(super) fn effect(&self, write: u64) -> Option<String> {
        let Effect { lines, key, .. } = &self.open.get(&write)?.effect;
        let mut told = key.map_or_else(String::new, |(key, body)| format!("key {key} body {body}: "));
        for line in lines {
            let _ = match line {
                Line::Put(Key::Given(of, id), token) => write!(told, "{of}/{id}={token} "),
                Line::Put(Key::New(of, _), token) => write!(told, "{of}/new={token} "),
                Line::Delete(Key::Given(of, id)) => write!(told, "{of}/{id} gone "),
                Line::Delete(Key::New(of, token)) => write!(told, "{of}/{token} gone "),
            };
        }
        Some(told)
    }

    pub(super) fn moves_to(&mut self, now: u64) {
        self.now = now;
    }

    pub(super) fn begins_to_read(&mut self, read: u64) {
        self.reads.insert(read, self.now);
    }

    /// A read that was not answered.
    pub(super) fn forgets(&mut self, read: u64) {
        self.reads.remove(&read);
    }

    pub(super) fn begins(&mut self, write: u64, effect: Effect) {
        let may_be_lost = false;
        self.open.insert(write, Open { effect, may_be_lost });
    }

    /// A write was acknowledged.
    pub(super) fn acknowledged(&mut self, write: u64, did: Did) -> Result<(), String> {
        let Some(open) = self.open.get(&write).cloned() else {
            return Err("a write that was over was answered".to_owned());
        };
        let did = match did {
            Did::Happened(counted) => Did::Happened(open.effect.certain(counted)),
            other => other,
        };
        let mut possible = self.reached(|possible| possible.done.get(&write) == Some(&did));
        if open.may_be_lost {
            let lost = self
                .possible
                .iter()
                .filter(|possible| !possible.done.contains_key(&write));
            possible.extend(lost.cloned());
        }
        if possible.is_empty() {
            return Err(format!(
                "no order explains that this write was answered with {did:?}: {:?}",
                open.effect
            ));
        }
        self.close(write, possible);
        Ok(())
    }

    /// A write was refused: it never happens.
    pub(super) fn refused(&mut self, write: u64) -> Result<(), String> {
        let is_undone = |possible: &&Possible| !possible.done.contains_key(&write);
        let possible: BTreeSet<Possible> = self.possible.iter().filter(is_undone).cloned().collect();
        if possible.is_empty() {
            return Err("a write happened that was answered with an error".to_owned());
        }
        self.close(write, possible);
        Ok(())
    }

    /// A read that began is answered with all rows of one moment.
    pub(super) fn answered(&mut self, read: u64, rows: &Rows) -> Result<(), String> {
        self.shown(read, |all| all == rows)
            .map_err(|_| self.difference(rows))
    }

    /// The same of part of the rows; `is_shown` says whether all of that part was among the answer.
    pub(super) fn shown(&mut self, read: u64, is_shown: impl Fn(&Rows) -> bool) -> Result<(), String> {
        let since = self.reads.remove(&read).unwrap_or(self.now);
        self.read_since(since, is_shown)
    }

    /// These are the rows now.
    pub(super) fn read(&mut self, rows: &Rows) -> Result<(), String> {
        self.read_since(u64::MAX, |all| all == rows)
            .map_err(|_| self.difference(rows))
    }

    fn read_since(&mut self, since: u64, is_read: impl Fn(&Rows) -> bool) -> Result<(), String> {
        let possible = self.reached(|possible| {
            let mut passed = possible.trail.iter().filter(|(_, until)| **until >= since);
            is_read(&possible.state.rows) || passed.any(|(state, _)| is_read(&state.rows))
        });
        if possible.is_empty() {
            return Err("no order of the acknowledged writes explains what was shown".to_owned());
        }
        self.possible = possible;
        self.shorten();
        Ok(())
    }

    /// This is what there is now.
    pub(super) fn is_now(&mut self, rows: &Rows, accepted: &BTreeMap<u32, u32>) -> Result<(), String> {
        let possible =
            self.reached(|possible| *possible.state.rows == *rows && *possible.state.accepted == *accepted);
        if possible.is_empty() {
            self.read(rows)?;
            return Err(format!(
                "no order explains which keys were accepted: {accepted:?}"
            ));
        }
        self.possible = possible;
        self.shorten();
        Ok(())
    }

    /// The same while nothing is under way: what has not happened by now never will.
    pub(super) fn ends_with(&mut self, rows: &Rows, accepted: &BTreeMap<u32, u32>) -> Result<(), String> {
        self.is_now(rows, accepted)?;
        self.possible = std::mem::take(&mut self.possible)
            .into_iter()
            .map(|possible| Possible {
                done: BTreeMap::new(),
                trail: BTreeMap::new(),
                ..possible
            })
            .collect();
        self.open.clear();
        Ok(())
    }

    /// The database is as it was at an earlier moment. What is under way may happen yet or be lost.
    pub(super) fn went_back(&mut self, rows: Rows, accepted: BTreeMap<u32, u32>) {
        for open in self.open.values_mut() {
            open.may_be_lost = true;
        }
        let mut everything = BTreeSet::new();
        self.reached(|possible| {
            everything.insert(possible.state.clone());
            everything.extend(possible.trail.keys().cloned());
            false
        });
        let trail = everything.into_iter().map(|state| (state, self.now)).collect();
        let state = State::of(rows, accepted);
        self.passed.insert(state.sum_of_rows);
        let done = BTreeMap::new();
        self.possible = BTreeSet::from([Possible { state, done, trail }]);
        self.shorten();
    }

    /// Forgets which states have passed, but for those that may be the true one.
    pub(super) fn forget_passed(&mut self) {
        self.passed = self
            .possible
            .iter()
            .map(|possible| possible.state.sum_of_rows)
            .collect();
    }

    /// Whether these rows were the true ones at some moment since.
    pub(super) fn has_passed(&mut self, rows: &Rows) -> bool {
        self.reached(|_| false);
        self.passed.contains(&sum_of(rows))
    }

    fn close(&mut self, write: u64, possible: BTreeSet<Possible>) {
        self.open.remove(&write);
        self.possible = possible
            .into_iter()
            .map(|mut possible| {
                possible.done.remove(&write);
                possible
            })
            .collect();
        self.shorten();
    }

    /// Forgets what no read that is open can have seen.
    fn shorten(&mut self) {
        self.possible = merged(std::mem::take(&mut self.possible));
        let oldest = self.reads.values().min().copied();
        if self.possible.iter().all(|possible| possible.trail.is_empty()) {
            return;
        }
        self.possible = std::mem::take(&mut self.possible)
            .into_iter()
            .map(|mut possible| {
                possible
                    .trail
                    .retain(|_, until| oldest.is_some_and(|oldest| *until >= oldest));
                possible
            })
            .collect();
    }

    /// The nearest possibilities that are as asked for, by open writes that happen now.
    fn reached(&mut self, mut is_asked_for: impl FnMut(&Possible) -> bool) -> BTreeSet<Possible> {
        let mut reached = BTreeSet::new();
        // By how many writes have happened in them.
        let mut next: BTreeMap<usize, BTreeSet<Possible>> = BTreeMap::new();
        for possible in &self.possible {
            let level = next.entry(possible.done.len()).or_default();
            level.insert(possible.clone());
        }
        while let Some((happened, level)) = next.pop_first() {
            for possible in merged(level) {
                if is_asked_for(&possible) {
                    reached.insert(possible);
                    continue;
                }
                for (write, open) in &self.open {
                    if possible.done.contains_key(write) {
                        continue;
                    }
                    let mut after = possible.clone();
                    if !self.reads.is_empty() {
                        after.trail.insert(after.state.clone(), self.now);
                    }
                    let did = after.state.apply(&open.effect);
                    after.done.insert(*write, did);
                    self.passed.insert(after.state.sum_of_rows);
                    next.entry(happened + 1).or_default().insert(after);
                }
            }
        }
        reached
    }

    /// What is wrong with an answer, beside the possibility that differs least from it.
    pub(super) fn difference(&self, rows: &Rows) -> String {
        let differing = |possible: &Possible| -> Vec<(Key, Option<Token>, Option<Token>)> {
            let expected = &possible.state.rows;
            let keys: BTreeSet<&Key> = expected.keys().chain(rows.keys()).collect();
            keys.into_iter()
                .map(|key| (*key, expected.get(key).copied(), rows.get(key).copied()))
                .filter(|(_, expected, found)| expected != found)
                .collect()
        };
        let nearest = self.possible.iter().map(differing).min_by_key(Vec::len);
        let mut told = format!(
            "no order of the acknowledged writes explains what was read ({} possibilities, {} writes under \
             way); at the least",
            self.possible.len(),
            self.open.len()
        );
        for (key, expected, found) in nearest.unwrap_or_default() {
            let _ = write!(
                told,
                "\n    {key:?}: {expected:?} was expected, {found:?} was read"
            );
        }
        for (write, open) in &self.open {
            let _ = write!(told, "\n    under way: write {write} {:?}", open.effect);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(id: u8, token: Token) -> Effect {
        Effect {
            lines: vec![Line::Put(Key::Given(0, id), token)],
            ..Effect::default()
        }
    }

    const STORED: Did = Did::Happened(Counted {
        stored: 1,
        replaced: 0,
        unchanged: 0,
        deleted: 0,
    });
    const REPLACED: Did = Did::Happened(Counted {
        stored: 0,
        replaced: 1,
        unchanged: 0,
        deleted: 0,
    });

    fn rows(rows: &[(u8, Token)]) -> Rows {
        rows.iter()
            .map(|(id, token)| (Key::Given(0, *id), *token))
            .collect()
    }

    #[test]
    fn writes_under_way_together_may_happen_in_either_order_but_in_one() {
        let mut history = History::default();
        history.begins(1, put(1, 10));
        history.begins(2, put(1, 20));
        history.acknowledged(1, REPLACED).unwrap();
        history.acknowledged(2, STORED).unwrap();
        history.read(&rows(&[(1, 10)])).unwrap();
        assert!(history.read(&rows(&[(1, 20)])).is_err());
    }

    #[test]
    fn of_two_writes_of_one_record_one_is_told_that_it_replaced() {
        let mut history = History::default();
        history.begins(1, put(1, 10));
        history.begins(2, put(1, 20));
        history.acknowledged(1, STORED).unwrap();
        assert!(history.acknowledged(2, STORED).is_err());
        history.acknowledged(2, REPLACED).unwrap();
    }

    #[test]
    fn what_was_acknowledged_is_there_and_what_was_refused_is_not() {
        let mut history = History::default();
        history.begins(1, put(1, 10));
        history.read(&rows(&[])).unwrap();
        history.acknowledged(1, STORED).unwrap();
        assert!(history.read(&rows(&[])).is_err());
        history.begins(2, put(1, 20));
        history.read(&rows(&[(1, 20)])).unwrap();
        assert!(history.refused(2).is_err());
    }

    #[test]
    fn a_read_may_be_of_any_moment_while_it_was_under_way() {
        let mut history = History::default();
        let nothing = rows(&[]);
        history.moves_to(1);
        history.begins_to_read(100);
        history.begins(1, put(1, 10));
        history.moves_to(5);
        history.acknowledged(1, STORED).unwrap();
        history.moves_to(6);
        history.begins_to_read(101);
        history.moves_to(7);
        history.answered(100, &nothing).unwrap();
        assert!(history.answered(101, &nothing).is_err());
    }

    #[test]
    fn half_a_body_is_explained_by_nothing() {
        let mut history = History::default();
        let mut both = put(1, 10);
        both.lines.push(Line::Put(Key::Given(1, 2), 11));
        history.begins(1, both);
        assert!(history.read(&rows(&[(1, 10)])).is_err());
    }

    #[test]
    fn an_unknown_outcome_may_become_true_until_nothing_is_under_way() {
        let mut history = History::default();
        history.begins(1, put(1, 10));
        history.read(&rows(&[])).unwrap();
        let mut later = history;
        later.read(&rows(&[(1, 10)])).unwrap();
        assert!(later.read(&rows(&[])).is_err());
        later.ends_with(&rows(&[(1, 10)]), &BTreeMap::new()).unwrap();
    }

    #[test]
    fn a_key_counts_once() {
        let mut history = History::default();
        let keyed = |body| Effect {
            key: Some((1, body)),
            ..put(1, 10)
        };
        history.begins(1, keyed(7));
        history.acknowledged(1, STORED).unwrap();
        history.begins(2, keyed(7));
        assert!(history.acknowledged(2, STORED).is_err());
        history.acknowledged(2, Did::Repeated).unwrap();
        history.begins(3, keyed(8));
        history.acknowledged(3, Did::KeyReused).unwrap();
        let accepted = BTreeMap::from([(1, 7)]);
        history.ends_with(&rows(&[(1, 10)]), &accepted).unwrap();
    }
}
