//! Connections: accepting them, bounding what each may cost, and ending them in good order.
//!
//! A service stops in three steps: no new connections, no new requests on open ones, then waiting for what
//! was accepted until its time is up.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::api::settings::InterfaceSettings;

mod leftover;
mod stream;
#[cfg(test)]
mod tests;

use stream::Impatient;

/// How long a connection of many streams is quiet before it is asked whether it still stands.
const QUIET: Duration = Duration::from_mins(1);

/// Enough for a token, a long query and what proxies add. Parts of bodies are read and written through the
/// same buffer.
const LARGEST_HEAD: usize = 256 * 1024;

/// Requests at work on one connection, where the protocol allows several.
const STREAMS_PER_CONNECTION: u32 = 64;

/// A pause after the system refused a connection, for lack of descriptors mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
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

/// The listening socket for `settings`.
pub async fn listen(settings: &InterfaceSettings) -> Result<TcpListener, ServeError> {
    let address = settings.listen;
    TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Listen { address, source })
}

/// Answers requests until `stop` is done, and then those that were accepted.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: &InterfaceSettings,
    stop: impl Future<Output = ()>,
) -> Ended {
    let connections = Arc::new(Semaphore::new(
        settings.connection_limit.clamp(1, Semaphore::MAX_PERMITS),
    ));
    let builder = Arc::new(builder(settings.slow_client_limit));
    let graceful = GracefulShutdown::new();
    let mut open = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            let permit = Arc::clone(&connections).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, stream) = tokio::select! {
            () = &mut stop => break,
            Some(_) = open.join_next() => continue,
            (permit, accepted) = accepted => match accepted {
                Ok((stream, _)) => (permit, stream),
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let connection = connection(
            stream,
            router.clone(),
            settings.slow_client_limit,
            &builder,
            &graceful,
        );
        open.spawn(async move {
            let _permit = permit;
            connection.await;
        });
    }
    drop(listener);
    let ended = tokio::select! {
        () = graceful.shutdown() => Ended::InGoodOrder,
        () = tokio::time::sleep(settings.shutdown_limit) => Ended::Interrupted,
    };
    // Whoever closes the rooms below next must not have to wait for a request that will never end.
    open.shutdown().await;
    ended
}

fn connection(
    stream: TcpStream,
    router: Router,
    slow_client_limit: Duration,
    builder: &Arc<Builder<TokioExecutor>>,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + use<> {
    // Small answers are whole answers: waiting for more to send would only delay them.
    let prompt = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let router = router.clone();
        async move { Ok::<_, Infallible>(leftover::answer(router, request, slow_client_limit).await) }
    });
    let connection = builder
        .serve_connection(TokioIo::new(Impatient::new(stream, slow_client_limit)), service)
        .into_owned();
    let watched = graceful.watch(connection);
    async move {
        if let Err(error) = prompt {
            tracing::debug!(%error, "a connection keeps its delays");
        }
        if let Err(error) = watched.await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

/// A client owes a whole head from the moment its connection is open or its last request was answered: idle
/// connections are kept no longer.
fn builder(slow_client_limit: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(slow_client_limit)
        .max_buf_size(LARGEST_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(QUIET)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .max_header_list_size(LARGEST_HEAD as u32);
    builder
}
