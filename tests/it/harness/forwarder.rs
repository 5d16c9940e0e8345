//! A wire that can be cut: it stands between a server and one of its backends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How long a backend may take to answer a commit.
const PATIENCE: Duration = Duration::from_secs(2);

/// Forwards connections for as long as the runtime of the test lives.
#[derive(Debug)]
pub(crate) struct Forwarder {
    port: u16,
    wire: Arc<Wire>,
}

#[derive(Debug)]
struct Wire {
    open: AtomicBool,
    /// Answers of the backend are swallowed: what was asked may have happened, and nobody is told.
    mute: AtomicBool,
    /// What happens to the next commit of PostgreSQL that changes something.
    next_commit: AtomicU8,
    connections: AtomicU64,
    /// Connections up to this one say nothing any more, and do not end.
    silent: AtomicU64,
}

/// It goes through.
const PASSES: u8 = 0;
/// It happens, and the connection breaks in place of the answer.
const UNHEARD: u8 = 1;
/// The connection breaks in place of the commit.
const LOST: u8 = 2;
/// It happens, the connection breaks, and no new one can be made.
const LAST: u8 = 3;

impl Forwarder {
    /// A wire to `target`, `host:port`.
    pub(crate) async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let wire = Arc::new(Wire {
            open: AtomicBool::new(true),
            mute: AtomicBool::new(false),
            next_commit: AtomicU8::new(PASSES),
            connections: AtomicU64::new(0),
            silent: AtomicU64::new(0),
        });
        tokio::spawn(accept(listener, target.to_owned(), Arc::clone(&wire)));
        Self { port, wire }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn connections(&self) -> u64 {
        self.wire.connections.load(Ordering::SeqCst)
    }

    /// Connections break, and new ones break at once.
    pub(crate) fn cut(&self) {
        self.wire.open.store(false, Ordering::SeqCst);
    }

    /// The connections that there are go on, but nothing comes through them in either direction. New ones do
    /// their work.
    pub(crate) fn silence(&self) {
        self.wire.silent.store(self.connections(), Ordering::SeqCst);
    }

    /// Lets requests through and breaks the connection in place of the answer.
    pub(crate) fn lose_answers(&self) {
        self.wire.mute.store(true, Ordering::SeqCst);
    }

    /// Lets the next commit through that changes something, and breaks its connection in place of the answer.
    pub(crate) fn lose_answer_to_commit(&self) {
        self.wire.next_commit.store(UNHEARD, Ordering::SeqCst);
    }

    /// Breaks the connection of the next commit that changes something before the commit arrives.
    pub(crate) fn lose_commit(&self) {
        self.wire.next_commit.store(LOST, Ordering::SeqCst);
    }

    /// Lets the next commit through that changes something, and nothing after it.
    pub(crate) fn cut_after_commit(&self) {
        self.wire.next_commit.store(LAST, Ordering::SeqCst);
    }

    pub(crate) fn mend(&self) {
        self.wire.next_commit.store(PASSES, Ordering::SeqCst);
        self.wire.open.store(true, Ordering::SeqCst);
        self.wire.mute.store(false, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, target: String, wire: Arc<Wire>) {
    while let Ok((near, _)) = listener.accept().await {
        let number = wire.connections.fetch_add(1, Ordering::SeqCst) + 1;
        if wire.open.load(Ordering::SeqCst) {
            tokio::spawn(forward(near, number, target.clone(), Arc::clone(&wire)));
        }
    }
}

async fn forward(mut near: TcpStream, number: u64, target: String, wire: Arc<Wire>) -> std::io::Result<()> {
    let mut far = TcpStream::connect(target).await?;
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut is_changing = false;
    loop {
        let cut = || !wire.open.load(Ordering::SeqCst);
        let silent = async || {
            if number <= wire.silent.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            read = near.read(&mut asked) => {
                let read = read?;
                if read == 0 || cut() { return Ok(()) }
                silent().await;
                let request = &asked[..read];
                is_changing |= says(request, b"BEGIN\0");
                if is_changing && says(request, b"COMMIT\0") {
                    is_changing = false;
                    let fate = wire.next_commit.swap(PASSES, Ordering::SeqCst);
                    if fate != LOST {
                        far.write_all(request).await?;
                    }
                    if fate == LAST {
                        wire.open.store(false, Ordering::SeqCst);
                    }
                    if fate != PASSES {
                        // Closed only once the backend has done what it was told.
                        let _ = tokio::time::timeout(PATIENCE, far.read(&mut answered)).await;
                        return Ok(());
                    }
                } else {
                    far.write_all(request).await?;
                }
                is_changing &= !says(request, b"ROLLBACK\0");
            }
            read = far.read(&mut answered) => {
                let read = read?;
                if read == 0 || cut() || wire.mute.load(Ordering::SeqCst) { return Ok(()) }
                silent().await;
                near.write_all(&answered[..read]).await?;
            }
        }
    }
}

fn says(request: &[u8], word: &[u8]) -> bool {
    request.windows(word.len()).any(|part| part == word)
}
