//! A wire that can be cut: it stands between a server and one of its backends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Forwards connections for as long as the runtime of the test lives.
#[derive(Debug)]
pub struct Forwarder {
    port: u16,
    wire: Arc<Wire>,
}

#[derive(Debug)]
struct Wire {
    open: AtomicBool,
    /// Answers of the backend are swallowed: what was asked may have happened, and nobody is told.
    mute: AtomicBool,
    connections: AtomicU64,
}

impl Forwarder {
    /// A wire to `target`, `host:port`.
    pub async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let wire = Arc::new(Wire {
            open: AtomicBool::new(true),
            mute: AtomicBool::new(false),
            connections: AtomicU64::new(0),
        });
        tokio::spawn(accept(listener, target.to_owned(), Arc::clone(&wire)));
        Self { port, wire }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn connections(&self) -> u64 {
        self.wire.connections.load(Ordering::SeqCst)
    }

    /// Connections break, and new ones break at once.
    pub fn cut(&self) {
        self.wire.open.store(false, Ordering::SeqCst);
    }

    /// Lets requests through and breaks the connection in place of the answer.
    pub fn lose_answers(&self) {
        self.wire.mute.store(true, Ordering::SeqCst);
    }

    pub fn mend(&self) {
        self.wire.open.store(true, Ordering::SeqCst);
        self.wire.mute.store(false, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, target: String, wire: Arc<Wire>) {
    while let Ok((near, _)) = listener.accept().await {
        wire.connections.fetch_add(1, Ordering::SeqCst);
        if wire.open.load(Ordering::SeqCst) {
            tokio::spawn(forward(near, target.clone(), Arc::clone(&wire)));
        }
    }
}

async fn forward(mut near: TcpStream, target: String, wire: Arc<Wire>) -> std::io::Result<()> {
    let mut far = TcpStream::connect(target).await?;
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let cut = || !wire.open.load(Ordering::SeqCst);
        tokio::select! {
            read = near.read(&mut asked) => {
                let read = read?;
                if read == 0 || cut() { return Ok(()) }
                far.write_all(&asked[..read]).await?;
            }
            read = far.read(&mut answered) => {
                let read = read?;
                if read == 0 || cut() || wire.mute.load(Ordering::SeqCst) { return Ok(()) }
                near.write_all(&answered[..read]).await?;
            }
        }
    }
}
