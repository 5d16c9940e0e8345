//! Moments at which nothing is under way, and the last of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::super::history::Rows;
use super::super::node::Node;
use super::super::requests::{self, Job};
use super::super::trouble_rates::TroubleRates;
use super::{NODES, PEOPLE, World};

/// After so many steps everything that is under way has an end, whatever comes first.
const ENDLESS: u64 = 20_000;
/// Above so many possibilities it is looked what is true.
const UNCLEAR: usize = 40;

impl World {
    /// Lets everything that is under way come to its end, without further faults.
    pub(super) async fn drain(&mut self) {
        let until = self.step + ENDLESS;
        self.drains = true;
        loop {
            self.begin_step();
            if self.shared.gates.is_late() && self.chance.one_in(6) {
                self.release_late().await;
            } else if !self.open_one(0) {
                if self.shared.gates.is_late() {
                    self.release_late().await;
                } else if self.running.is_empty() {
                    self.drains = false;
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
        if self.trouble.disasters != 0 && self.chance.one_in(self.trouble.disasters) {
            self.disaster().await;
        }
    }

    /// Looks at what is stored where answers alone leave very much possible, as when nobody reads for long.
    pub(super) async fn look_if_unclear(&mut self) {
        let is_unclear = |owner: &usize| self.histories[*owner].possibilities() > UNCLEAR;
        let owners: Vec<usize> = (0..PEOPLE).filter(is_unclear).collect();
        let gates = Arc::clone(&self.shared.gates);
        if owners.is_empty() || !self.damages.is_empty() {
            return;
        }
        let Ok(_alone) = gates.writer.try_lock() else {
            return;
        };
        let node = Node::undisturbed(&self.shared).await;
        for owner in owners {
            let (rows, accepted) = self.truth(&node, owner).await;
            if let Err(wrong) = self.histories[owner].is_now(&rows, &accepted) {
                self.fail(&format!("what is stored of person {owner}: {wrong}"));
            }
        }
        node.stores.catalog.close().await;
        node.die();
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
    pub(in super::super) async fn truth(&mut self, node: &Node, owner: usize) -> (Rows, BTreeMap<u32, u32>) {
        match requests::read_all(node, &node.stores.snapshots, owner).await {
            Ok(Ok(seen)) => (seen.rows, requests::accepted(node, owner, self.keys).await),
            Ok(Err(wrong)) => self.fail(&format!("what is stored of person {owner}: {wrong}")),
            Err(error) => self.fail(&format!(
                "what is stored of person {owner} cannot be read: {error}"
            )),
        }
    }

    /// Everything is put right, background work comes to its end, and then all is as it should be.
    pub(super) async fn end(&mut self) {
        self.drain().await;
        self.mend_all().await;
        self.trouble = TroubleRates::calm();
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
}
