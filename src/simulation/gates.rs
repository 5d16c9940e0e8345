//! Where everything waits: each operation of a node on the database or the object store stands before a gate
//! until the simulation opens it, and learns there what befalls it. One gate is opened at a time, and the
//! next only when nothing moves any more, so that the order of events is the simulation's alone.

use std::collections::BTreeSet;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use crate::catalog::disturbance::{Disturbance, Ending};
use crate::model::release_guard::ReleaseGuard;
use crate::store::faults::{Fate, Fault, Operation};

/// Work on threads of its own may hand on to further such work so often before it is seen.
const HANDOVERS: usize = 12;

/// What stands before a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A client about to send the next part of a body.
    Client,
    Read,
    Write,
    Commit,
    Store(Operation),
}

/// What befalls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    Goes,
    Fails,
    NoRoom,
    /// It is done, and the answer says that it failed.
    Unheard,
    /// The answer says that it failed, and it is done later, or never.
    Later,
}

/// One that waits.
pub(super) struct Gate {
    /// The life of the node it belongs to.
    pub life: usize,
    pub what: What,
    pub path: String,
    /// Whose it is, in the order in which they began.
    task: Option<tokio::task::Id>,
    opens: oneshot::Sender<Opened>,
}

/// Something that was answered with an error and is not over.
pub(super) struct Later {
    pub life: usize,
    pub what: What,
    pub path: String,
    release: Release,
}

enum Release {
    Work(BoxFuture<'static, ()>),
    Decision(oneshot::Sender<bool>),
}

#[derive(Default)]
pub(super) struct Gates {
    waiting: Mutex<Vec<Gate>>,
    later: Mutex<Vec<Later>>,
    dead: Mutex<BTreeSet<usize>>,
    /// The one writer that SQLite lets in.
    pub writer: Arc<tokio::sync::Mutex<()>>,
    pub stillness: Arc<Stillness>,
}

impl Gates {
    pub(super) fn new(stillness: Arc<Stillness>) -> Self {
        Self {
            stillness,
            ..Self::default()
        }
    }

    /// Waits before a gate; what happens then.
    pub(super) async fn pass(&self, life: usize, what: What, path: &str) -> Opened {
        if lock(&self.dead).contains(&life) {
            return Opened::Fails;
        }
        let (opens, opened) = oneshot::channel();
        lock(&self.waiting).push(Gate {
            life,
            what,
            path: path.to_owned(),
            task: tokio::task::try_id(),
            opens,
        });
        opened.await.unwrap_or(Opened::Fails)
    }

    /// What waits now. Two that are on their way at the same time, on threads of their own, may arrive in
    /// either order: so the order is that of the tasks they belong to.
    pub(super) fn waiting<T>(&self, each: impl Fn(usize, &Gate) -> Option<T>) -> Vec<T> {
        let mut waiting = lock(&self.waiting);
        waiting.retain(|gate| !gate.opens.is_closed());
        waiting.sort_by(|one, other| (one.task, &one.path).cmp(&(other.task, &other.path)));
        waiting
            .iter()
            .enumerate()
            .filter_map(|(place, gate)| each(place, gate))
            .collect()
    }

    /// Opens the gate at a place of the list that `waiting` goes through.
    pub(super) fn open(&self, place: usize, opened: Opened) -> String {
        let gate = lock(&self.waiting).remove(place);
        let told = format!("life {} {:?} {} {opened:?}", gate.life, gate.what, gate.path);
        let _ = gate.opens.send(opened);
        told
    }

    pub(super) fn is_late(&self) -> bool {
        !lock(&self.later).is_empty()
    }

    /// Lets something that is late happen, or never.
    pub(super) async fn release(&self, place: impl FnOnce(usize) -> usize, happens: bool) -> Option<String> {
        let late = {
            let mut later = lock(&self.later);
            if later.is_empty() {
                return None;
            }
            let place = place(later.len());
            later.remove(place)
        };
        match late.release {
            Release::Work(work) if happens => work.await,
            Release::Work(_) => {}
            Release::Decision(decision) => drop(decision.send(happens)),
        }
        let how = if happens { "happens late" } else { "never happens" };
        Some(format!("life {} {:?} {} {how}", late.life, late.what, late.path))
    }

    /// Nothing that belongs to this life gets through any more.
    pub(super) fn kill(&self, life: usize) {
        lock(&self.dead).insert(life);
        lock(&self.waiting).retain(|gate| gate.life != life);
    }

    fn postpone(&self, life: usize, what: What, path: &str, release: Release) {
        lock(&self.later).push(Later {
            life,
            what,
            path: path.to_owned(),
            release,
        });
    }
}

/// What befalls one life of a node.
pub(super) struct Weather {
    pub gates: Arc<Gates>,
    pub life: usize,
}

impl fmt::Debug for Weather {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "weather of life {}", self.life)
    }
}

impl Disturbance for Weather {
    fn begins(&self, writes: bool) -> BoxFuture<'_, Option<ReleaseGuard>> {
        async move {
            let what = if writes { What::Write } else { What::Read };
            if self.gates.pass(self.life, what, "").await != Opened::Goes {
                return None;
            }
            if !writes {
                return Some(Box::new(()) as ReleaseGuard);
            }
            let writer = Arc::clone(&self.gates.writer).lock_owned().await;
            Some(Box::new(writer) as ReleaseGuard)
        }
        .boxed()
    }

    fn ends(&self) -> BoxFuture<'_, Ending> {
        async move {
            match self.gates.pass(self.life, What::Commit, "").await {
                Opened::Goes => Ending::Commits,
                Opened::Fails | Opened::NoRoom => Ending::Breaks,
                Opened::Unheard => Ending::Unheard,
                Opened::Later => {
                    let (decision, decided) = oneshot::channel();
                    self.gates
                        .postpone(self.life, What::Commit, "", Release::Decision(decision));
                    Ending::Later(async move { decided.await.unwrap_or(false) }.boxed())
                }
            }
        }
        .boxed()
    }

    fn works(&self) -> ReleaseGuard {
        Box::new(Stillness::working(&self.gates.stillness))
    }
}

#[async_trait]
impl Fate for Weather {
    async fn fault_for(&self, operation: Operation, path: &str) -> Option<Fault> {
        match self.gates.pass(self.life, What::Store(operation), path).await {
            Opened::Goes => None,
            Opened::Fails => Some(Fault::Fail),
            Opened::NoRoom => Some(Fault::NoRoom),
            Opened::Unheard => Some(Fault::LoseAnswer),
            Opened::Later => Some(Fault::Later),
        }
    }

    fn later(&self, work: BoxFuture<'static, ()>) {
        self.gates
            .postpone(self.life, What::Store(Operation::Put), "", Release::Work(work));
    }
}

/// Whether anything moves. Told by the runtime each time its only thread has nothing to do, and by the
/// database while it works on threads of its own.
#[derive(Default)]
pub(super) struct Stillness {
    at_work: AtomicUsize,
    is_still: AtomicBool,
    waiting: Mutex<Option<Waker>>,
}

struct Working(Arc<Stillness>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.at_work.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Stillness {
    fn working(stillness: &Arc<Self>) -> Working {
        stillness.at_work.fetch_add(1, Ordering::SeqCst);
        Working(Arc::clone(stillness))
    }

    /// The runtime has nothing to do.
    pub(super) fn thread_parks(&self) {
        if self.at_work.load(Ordering::SeqCst) == 0 {
            self.is_still.store(true, Ordering::SeqCst);
            if let Some(waker) = lock(&self.waiting).take() {
                waker.wake();
            }
        }
    }

    /// Returns when nothing moves that nobody lets move.
    pub(super) async fn settled(&self) {
        for _ in 0..HANDOVERS {
            self.still().await;
            // There is one thread for such work, which goes through it in order.
            tokio::task::spawn_blocking(|| ()).await.unwrap();
        }
        self.still().await;
    }

    async fn still(&self) {
        self.is_still.store(false, Ordering::SeqCst);
        poll_fn(|context| {
            if self.is_still.load(Ordering::SeqCst) {
                return Poll::Ready(());
            }
            *lock(&self.waiting) = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
