//! Whether what a world answers is as it should be.

use super::super::answer::{Answer, Seen};
use super::super::node::GRACE;
use super::{About, Running, World};
use crate::catalog::records::Stamp;
use crate::ingest::queue::MOST_OVERTAKINGS;

/// A write that has not ended after its node went on in the catalogue so often is starved, where its node has
/// little else to write.
const STARVED: u64 = 100;

impl World {
    /// Takes the answers that are there.
    pub(super) async fn harvest(&mut self) {
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
        let overtaken = self.nodes.iter().flatten().map(|node| node.overtaken()).max();
        self.told.overtaken = self.told.overtaken.max(overtaken.unwrap_or(0));
        if self.told.overtaken > MOST_OVERTAKINGS {
            self.fail(&format!("a write was overtaken {} times", self.told.overtaken));
        }
        let crowd = self.trouble.favourite.filter(|_| self.trouble.crowd);
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
        self.say_of_request(&told);
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
            Answer::Complaints(mut complaints) => {
                // A database that had not heard of the last commits is older than the store, and stays so
                // until the next manifest of each person: that is there.
                complaints.retain(|told| !(self.keeps_more && told.contains("it is older than the store")));
                if complaints.is_empty() || may_fail {
                    Ok(())
                } else {
                    Err(format!("a check found what is not there: {complaints:?}"))
                }
            }
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
}
