//! Decides whose turn it is. People wait in a line, and a person who was served goes to its end, however much
//! they bring; their requests are worked on in order, a few people at a time, and committed together.
//!
//! One task per process, which itself does nothing that takes long or can fail: such work is spawned, and if
//! it panics its requests are answered accordingly. Knows jobs; knows nothing of what is in them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ahash::{HashMap, HashMapExt};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant as Moment;

use crate::model::ids::PersonId;

use super::commit_prepared::StepOutcome;
use super::committer::{CommitError, Committer, Receipt};
use super::places::Places;
use super::waiting::{Reply, Seat, Waiting};
use super::work::{PersonCommit, Prepared};
use crate::ingest::upload::Work;

/// How the queue is sized.
#[derive(Clone, Copy, Debug)]
pub struct QueueSettings {
    /// Requests that may wait; more are refused at once.
    pub waiting: usize,
    /// Bytes of rows that may wait in memory.
    pub waiting_bytes: usize,
    /// Requests that one transaction takes at most.
    pub group: usize,
    /// How long a transaction collects requests after its first. What arrives while another is synced is
    /// collected anyway.
    pub window: Duration,
    /// Bytes of rows after which a transaction takes no further request.
    pub size: usize,
    /// How many people's requests are worked on at the same time.
    pub at_once: usize,
}

/// A request that was overtaken this often is prepared with everybody else kept out.
pub const MOST_OVERTAKINGS: usize = 3;

/// Rows of more bytes are not assembled on the thread of the line.
const SHORT_JOB_BYTES: usize = 64 << 10;

pub(super) struct Line {
    settings: QueueSettings,
    committer: Arc<Committer>,
    /// Where longer work runs, if not on the runtime of the line.
    elsewhere: Option<Handle>,
    /// Each person's requests, in order.
    wanted: HashMap<PersonId, VecDeque<Waiting>>,
    /// People who have waiting requests and no work in progress.
    turns: VecDeque<PersonId>,
    /// The callers to answer when the job of a person is done.
    answers: HashMap<PersonId, Vec<Answer>>,
    steps: JoinSet<Vec<StepOutcome>>,
    /// The people in each step, and whether it could have committed something.
    at_work: HashMap<Id, Step>,
    preparing: usize,
    is_committing: bool,
    /// How many are committed individually or keep everybody else out, and how many may.
    taken: Places,
    places: Places,
    /// Jobs that are ready to be committed together, and since when the first of them is.
    ready: VecDeque<(PersonCommit, Prepared)>,
    ready_since: Option<Moment>,
    /// Jobs to be committed individually.
    apart: VecDeque<(PersonCommit, Prepared)>,
    /// Jobs that have to keep everybody else out.
    overtaken: VecDeque<PersonCommit>,
}

struct Answer {
    reply: Reply,
    seat: Seat,
}

struct Step {
    kind: Kind,
    people: Vec<PersonId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Preparing,
    Together,
    Alone,
    Held,
}

/// Where a step runs, if the line has a thread of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WhereStepRuns {
    Here,
    Elsewhere,
}

impl Line {
    pub(super) fn new(settings: QueueSettings, committer: Committer, elsewhere: Option<Handle>) -> Self {
        let places = Places::among(committer.catalog.connections());
        Self {
            settings,
            committer: Arc::new(committer),
            elsewhere,
            wanted: HashMap::new(),
            turns: VecDeque::new(),
            answers: HashMap::new(),
            steps: JoinSet::new(),
            at_work: HashMap::new(),
            preparing: 0,
            is_committing: false,
            taken: Places::default(),
            places,
            ready: VecDeque::new(),
            ready_since: None,
            apart: VecDeque::new(),
            overtaken: VecDeque::new(),
        }
    }

    pub(super) async fn run(mut self, mut receiver: mpsc::UnboundedReceiver<Waiting>) {
        let mut is_open = true;
        while is_open || !self.is_idle() {
            let gathered = self.gathering_ends();
            // Ended steps are handled before arrivals, so that the same events in the same order have the
            // same effect.
            tokio::select! {
                biased;
                Some(ended) = self.steps.join_next_with_id(), if !self.steps.is_empty() => {
                    self.step_ended(ended);
                }
                arrived = receiver.recv(), if is_open => match arrived {
                    Some(waiting) => {
                        self.arrive(waiting);
                        while let Ok(waiting) = receiver.try_recv() {
                            self.arrive(waiting);
                        }
                    }
                    None => is_open = false,
                },
                () = sleep_until(gathered), if gathered.is_some() => {}
                else => {}
            }
            self.go_on();
        }
    }

    fn is_idle(&self) -> bool {
        self.wanted.is_empty() && self.answers.is_empty() && self.steps.is_empty()
    }

    fn arrive(&mut self, waiting: Waiting) {
        let person = waiting.upload.person;
        let is_new = !self.wanted.contains_key(&person);
        self.wanted.entry(person).or_default().push_back(waiting);
        if is_new && !self.answers.contains_key(&person) {
            self.turns.push_back(person);
        }
    }

    /// When the current group stops collecting, if one does.
    fn gathering_ends(&self) -> Option<Moment> {
        let since = self.ready_since.filter(|_| !self.is_committing)?;
        (!self.settings.window.is_zero()).then(|| since + self.settings.window)
    }

    fn go_on(&mut self) {
        while self.preparing < self.settings.at_once.max(1) {
            let Some(person) = self.turns.pop_front() else {
                break;
            };
            self.begin(person);
        }
        while self.taken.alone < self.places.alone {
            let Some((job, prepared)) = self.apart.pop_front() else {
                break;
            };
            self.taken.alone += 1;
            let committer = Arc::clone(&self.committer);
            self.step(Kind::Alone, WhereStepRuns::Here, vec![job.person], async move {
                vec![committer.commit_alone(job, prepared).await]
            });
        }
        while self.taken.held < self.places.held {
            let Some(job) = self.overtaken.pop_front() else {
                break;
            };
            self.taken.held += 1;
            let committer = Arc::clone(&self.committer);
            self.step(
                Kind::Held,
                WhereStepRuns::Elsewhere,
                vec![job.person],
                async move { vec![committer.commit_held(job).await] },
            );
        }
        let is_gathered = self.gathering_ends().is_none_or(|end| end <= Moment::now())
            || self.ready.len() >= self.settings.group;
        if !self.is_committing && !self.ready.is_empty() && is_gathered {
            self.commit();
        }
    }

    /// Begins to work on a person's requests: as many as go together.
    fn begin(&mut self, person: PersonId) {
        let Some(wanted) = self.wanted.get_mut(&person) else {
            return;
        };
        let mut uploads = Vec::new();
        let mut answers = Vec::new();
        let mut bytes = 0;
        while let Some(next) = wanted.front() {
            let goes_alone = next.alone || matches!(next.upload.work, Work::Written(_));
            let is_full = uploads.len() >= self.settings.group.max(1) || bytes > self.settings.size;
            if !uploads.is_empty() && (goes_alone || is_full) {
                break;
            }
            let Some(Waiting {
                upload, reply, seat, ..
            }) = wanted.pop_front()
            else {
                break;
            };
            bytes += upload.work.bytes_asked();
            uploads.push(upload);
            answers.push(Answer { reply, seat });
            if goes_alone {
                break;
            }
        }
        if wanted.is_empty() {
            self.wanted.remove(&person);
        }
        self.answers.insert(person, answers);
        self.prepare(PersonCommit::new(person, uploads));
    }

    fn prepare(&mut self, job: PersonCommit) {
        // Several in sequence would take longer than in parallel.
        let is_short = self.preparing == 0 && !job.is_written && job.bytes <= SHORT_JOB_BYTES;
        let place = if is_short {
            WhereStepRuns::Here
        } else {
            WhereStepRuns::Elsewhere
        };
        self.preparing += 1;
        let committer = Arc::clone(&self.committer);
        self.step(Kind::Preparing, place, vec![job.person], async move {
            vec![committer.prepare_job(job).await]
        });
    }

    /// Commits the jobs that are ready, up to one group.
    fn commit(&mut self) {
        let mut group = Vec::new();
        let (mut requests, mut bytes) = (0, 0);
        while let Some((job, _)) = self.ready.front() {
            let is_full = requests >= self.settings.group.max(1) || bytes > self.settings.size;
            if !group.is_empty() && is_full {
                break;
            }
            requests += job.len();
            bytes += job.bytes;
            group.extend(self.ready.pop_front());
        }
        self.ready_since = (!self.ready.is_empty()).then(Moment::now);
        self.is_committing = true;
        let people = group.iter().map(|(job, _)| job.person).collect();
        let committer = Arc::clone(&self.committer);
        self.step(Kind::Together, WhereStepRuns::Here, people, async move {
            committer.commit_together(group).await
        });
    }

    fn step(
        &mut self,
        kind: Kind,
        place: WhereStepRuns,
        people: Vec<PersonId>,
        work: impl Future<Output = Vec<StepOutcome>> + Send + 'static,
    ) {
        let id = match &self.elsewhere {
            Some(elsewhere) if place == WhereStepRuns::Elsewhere => self.steps.spawn_on(work, elsewhere).id(),
            _ => self.steps.spawn(work).id(),
        };
        self.at_work.insert(id, Step { kind, people });
    }

    fn step_ended(&mut self, ended: Result<(Id, Vec<StepOutcome>), JoinError>) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some(Step { kind, people }) = self.at_work.remove(&id) else {
            return;
        };
        match kind {
            Kind::Preparing => self.preparing -= 1,
            Kind::Together => self.is_committing = false,
            Kind::Alone => self.taken.alone -= 1,
            Kind::Held => self.taken.held -= 1,
        }
        match ended {
            Ok((_, left)) => {
                for left in left {
                    self.leave(kind, left);
                }
            }
            Err(error) => {
                tracing::error!(%error, "work for a commit panicked");
                let outcome = match kind {
                    Kind::Preparing => CommitError::Broken(error.to_string()),
                    Kind::Together | Kind::Alone | Kind::Held => CommitError::Unknown(error.to_string()),
                };
                for person in people {
                    let answers = self.answers.remove(&person).unwrap_or_default();
                    let results = answers.iter().map(|_| Err(outcome.clone())).collect();
                    self.answer(person, answers, results);
                }
            }
        }
    }

    fn leave(&mut self, kind: Kind, left: StepOutcome) {
        match left {
            StepOutcome::Done(job) => {
                let person = job.person;
                let answers = self.answers.remove(&person).unwrap_or_default();
                self.answer(person, answers, job.answers());
            }
            StepOutcome::Prepared(job, prepared)
                if kind == Kind::Preparing && !job.is_written && job.overtaken == 0 =>
            {
                self.ready.push_back((job, prepared));
                self.ready_since.get_or_insert_with(Moment::now);
            }
            // A job that could not be committed with others goes alone; and one that was overtaken once, or
            // took long already, does not make others wait.
            StepOutcome::Prepared(job, prepared) => self.apart.push_back((job, prepared)),
            StepOutcome::Overtaken(job) if job.overtaken < MOST_OVERTAKINGS => self.prepare(job),
            StepOutcome::Overtaken(job) => self.overtaken.push_back(job),
            StepOutcome::Failed(job, error) => self.take_apart(job, error),
        }
    }

    /// Retries each request individually, because one of them is to blame.
    fn take_apart(&mut self, mut job: PersonCommit, error: CommitError) {
        let person = job.person;
        let answers = self.answers.remove(&person).unwrap_or_default();
        if job.len() <= 1 {
            job.conclude(&Err(error));
            return self.answer(person, answers, job.answers());
        }
        let again = job.into_uploads().zip(answers);
        let again = again.map(|(upload, answer)| Waiting {
            upload,
            reply: answer.reply,
            seat: answer.seat,
            alone: true,
        });
        let wanted = self.wanted.entry(person).or_default();
        for waiting in again.rev() {
            wanted.push_front(waiting);
        }
        self.turns.push_back(person);
    }

    fn answer(&mut self, person: PersonId, answers: Vec<Answer>, results: Vec<Result<Receipt, CommitError>>) {
        for (Answer { reply, seat }, result) in answers.into_iter().zip(results) {
            drop(seat);
            // If the caller has gone away, its records are stored all the same.
            let _ = reply.send(result);
        }
        if self.wanted.contains_key(&person) {
            self.turns.push_back(person);
        }
    }
}

async fn sleep_until(moment: Option<Moment>) {
    if let Some(moment) = moment {
        tokio::time::sleep_until(moment).await;
    }
}
