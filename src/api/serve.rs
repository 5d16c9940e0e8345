//! Connections: accepting them, bounding what each may cost, and ending them in good order.
//!
//! A service stops in three steps: no new connections, no new requests on open ones, then waiting for what
//! was accepted until its time is up. A connection that carries no request by then is waited for no longer
//! than a moment.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::HttpBody as _;
use axum::http::header::CONNECTION;
use axum::http::{Request, Version};
use axum::response::Response;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::api::settings::InterfaceSettings;
use crate::api::settings::trusted_proxies::TrustedProxies;

pub mod addresses;
pub mod lanes;
mod leftover;
mod stream;
#[cfg(test)]
mod tests;
pub mod tls;
mod usage;

use addresses::{Share, Shares};
use lanes::Lanes;
use stream::{Transport, WatchedStream};
use tls::Certificate;
use usage::{State, Usage};

/// How long an HTTP/2 connection may be quiet before a ping checks that it still works.
const QUIET_TIME: Duration = Duration::from_mins(1);

/// Enough for a token, a long query and what proxies add. Parts of bodies are read and written through the
/// same buffer.
const LARGEST_HEAD: usize = 256 * 1024;

/// Concurrent requests on one connection, where the protocol allows several.
const STREAMS_PER_CONNECTION: u32 = 64;

/// Bytes of answers that one stream buffers before they are sent, where the protocol has streams.
const SEND_BUFFER: usize = 128 * 1024;

/// The most streams that a client may reset before they are handled, and the most that may be reset because
/// of its errors; more end the connection.
const MOST_RESET_STREAMS: usize = 32;

/// How many times a connection is checked within the time that its client is allowed.
const LOOKS_PER_LIMIT: u32 = 4;
/// The shortest time between two such checks.
const BRIEFEST_LOOK: Duration = Duration::from_millis(10);

/// How long a stopping service waits for a request on a connection that carries none: one that was sent
/// before the client could know is there at once.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A pause after the system refused a connection, mostly for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything accepted was answered.
    InGoodOrder,
    /// Time ran out while requests were still being answered.
    Interrupted,
}

/// The address at the other end of a request's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// A socket that listens on `address`.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Listen { address, source })
}

/// The limits for the connections of one listener.
#[derive(Clone)]
struct Terms {
    connections: Arc<Semaphore>,
    shares: Shares,
    proxies: TrustedProxies,
    certificate: Option<Arc<Certificate>>,
    slow_client_limit: Duration,
    /// How long a connection without a request lasts when the service stops.
    last_words: Duration,
    builder: Arc<Builder<Lanes>>,
    stopping: CancellationToken,
}

/// Answers requests on `lanes` until `stop` is done, then finishes those that were accepted. Uses TLS if
/// there is a certificate.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: &InterfaceSettings,
    certificate: Option<Arc<Certificate>>,
    lanes: Lanes,
    stop: impl Future<Output = ()>,
) -> Ended {
    let limit = settings.connection_limit.clamp(1, Semaphore::MAX_PERMITS);
    let terms = Terms {
        connections: Arc::new(Semaphore::new(limit)),
        shares: Shares::new(settings.address_connections),
        proxies: settings.trusted_proxies.clone(),
        certificate,
        slow_client_limit: settings.slow_client_limit,
        // When time runs out, only requests are left.
        last_words: LAST_WORDS.min(settings.shutdown_limit / 2),
        builder: Arc::new(builder(settings.slow_client_limit, lanes.clone())),
        stopping: CancellationToken::new(),
    };
    let mut open = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            let permit = Arc::clone(&terms.connections).acquire_owned().await;
            (permit.ok(), listener.accept().await)
        };
        let (permit, stream, peer) = tokio::select! {
            () = &mut stop => break,
            Some(_) = open.join_next() => continue,
            (permit, accepted) = accepted => match accepted {
                Ok((stream, peer)) => (permit, stream, peer.ip().to_canonical()),
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let Some(held) = OpenConnection::of(peer, permit, &terms) else {
            tracing::debug!("a connection was closed: its address has as many as it may");
            continue;
        };
        // The lane watches the connection itself, and only what is watched nowhere can be taken over.
        let stream = match stream.into_std() {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection was given up");
                continue;
            }
        };
        lanes.spawn(
            &mut open,
            connected(stream, peer, router.clone(), terms.clone(), held),
        );
    }
    drop(listener);
    terms.stopping.cancel();
    end_within(settings.shutdown_limit, open).await
}

/// Waits until all connections have ended by themselves, and ends those that have not within the limit.
async fn end_within(limit: Duration, mut open: JoinSet<()>) -> Ended {
    let all_ended = async { while open.join_next().await.is_some() {} };
    let ended = tokio::select! {
        () = all_ended => Ended::InGoodOrder,
        () = sleep(limit) => Ended::Interrupted,
    };
    // The rooms below are closed next, which must not wait for a request that never ends.
    open.shutdown().await;
    ended
}

/// What a connection holds while it is open.
struct OpenConnection {
    _permit: Option<OwnedSemaphorePermit>,
    _share: Option<Share>,
}

impl OpenConnection {
    /// `None`: the address of the other end has as many connections as it may.
    fn of(peer: IpAddr, permit: Option<OwnedSemaphorePermit>, terms: &Terms) -> Option<Self> {
        // Many clients share the address of a trusted proxy.
        let share = if terms.proxies.include(peer) {
            None
        } else {
            Some(terms.shares.take(peer)?)
        };
        Some(Self {
            _permit: permit,
            _share: share,
        })
    }
}

async fn connected(
    stream: std::net::TcpStream,
    peer: IpAddr,
    router: Router,
    terms: Terms,
    _held: OpenConnection,
) {
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%error, "a connection was given up"),
    };
    // Small answers are complete: waiting for more to send would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY on a connection");
    }
    let Some(certificate) = &terms.certificate else {
        return Box::pin(drive_connection(stream, peer, router, &terms)).await;
    };
    let greeted = tokio::select! {
        biased;
        greeted = timeout(terms.slow_client_limit, certificate.accept(stream)) => greeted,
        () = terms.stopping.cancelled() => {
            return tracing::debug!("a connection ended during the TLS handshake");
        }
    };
    match greeted {
        Ok(Ok(stream)) => Box::pin(drive_connection(stream, peer, router, &terms)).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection does not speak TLS"),
        Err(_) => tracing::debug!("a TLS handshake timed out"),
    }
}

/// Drives a connection to its end. It also ends when it is idle for too long, or when the client does not
/// take its answers.
async fn drive_connection(stream: impl Transport, peer: IpAddr, router: Router, terms: &Terms) {
    let limit = terms.slow_client_limit;
    let usage = Usage::begin();
    let asking = Arc::clone(&usage);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let router = router.clone();
        let asked = asking.request();
        async move {
            request.extensions_mut().insert(Peer(peer));
            let version = request.version();
            let mut response = leftover::answer(router, request, limit).await;
            let ends = is_last(version, &response);
            if ends {
                *response.version_mut() = version;
            }
            Ok::<_, Infallible>(asked.watch_response(response, ends))
        }
    });
    let stream = WatchedStream::new(stream, limit, Arc::clone(&usage));
    let connection = terms.builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut looks = looks_within(limit);
    let mut asked_to_end = false;
    let mut stopping_since = None;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            () = terms.stopping.cancelled(), if stopping_since.is_none() => {
                stopping_since = Some(Instant::now());
                looks = looks_within(terms.last_words);
                if !asked_to_end {
                    asked_to_end = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
            _ = looks.tick() => match usage.state(Instant::now(), limit) {
                State::InUse => {
                    if stopping_since.is_some_and(|since| usage.is_quiet(since, terms.last_words)) {
                        tracing::debug!("a connection ended: the service stops, and nobody asks anything");
                        return;
                    }
                }
                State::Idle if asked_to_end => return,
                State::Idle => {
                    asked_to_end = true;
                    connection.as_mut().graceful_shutdown();
                }
                State::Stalled => {
                    tracing::debug!("a connection ended: its client does not take what it asked for");
                    return;
                }
            },
        }
    }
}

/// Whether a connection ends with this answer. An HTTP/1.0 client takes an answer without a length for empty
/// if it reads that the connection goes on.
fn is_last(version: Version, response: &Response) -> bool {
    let is_open_ended =
        response.body().size_hint().exact().is_none() || response.headers().contains_key(CONNECTION);
    version == Version::HTTP_10 && is_open_ended
}

/// When a connection is looked at, for something that must not last longer than `limit`.
fn looks_within(limit: Duration) -> Interval {
    let mut looks = interval((limit / LOOKS_PER_LIMIT).max(BRIEFEST_LOOK));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

/// A client must send a whole head within this time after its connection opened or its last request was
/// answered: idle connections are kept no longer.
fn builder(slow_client_limit: Duration, lanes: Lanes) -> Builder<Lanes> {
    let mut builder = Builder::new(lanes);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(slow_client_limit)
        .max_buf_size(LARGEST_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(QUIET_TIME)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .max_pending_accept_reset_streams(MOST_RESET_STREAMS)
        .max_local_error_reset_streams(MOST_RESET_STREAMS)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(LARGEST_HEAD as u32);
    builder
}
