//! Real connections: what was accepted is answered before the end.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};

use super::{Ended, listen, serve};
use crate::api::settings::InterfaceSettings;

fn settings() -> InterfaceSettings {
    InterfaceSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        public_url: "http://127.0.0.1".to_owned(),
        cors_origins: Vec::new(),
        body_limit: 1024,
        query_deadline: std::time::Duration::from_secs(1),
        concurrent_queries: 1,
        waiting_queries: 0,
        queue_patience: std::time::Duration::from_secs(1),
        cell_limit: 1000,
        slow_client_limit: std::time::Duration::from_secs(10),
        connection_limit: 16,
        shutdown_limit: std::time::Duration::from_secs(10),
        source_prefix: "com.almanac".to_owned(),
    }
}

/// A service whose only route says when it was entered and answers when it is let go.
struct Gate {
    entered: Arc<Notify>,
    go: Arc<Notify>,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<Ended>,
    client: TcpStream,
}

impl Gate {
    async fn with_a_request_inside(settings: InterfaceSettings) -> Self {
        let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handler = {
            let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
            move || async move {
                entered.notify_one();
                go.notified().await;
                "done"
            }
        };
        let router = axum::Router::new().route("/", axum::routing::get(handler));
        let listener = listen(&settings).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move { serve(listener, router, &settings, async { drop(stopped.await) }).await });
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: almanac\r\n\r\n").await.unwrap();
        entered.notified().await;
        Self {
            entered,
            go,
            stop,
            serving,
            client,
        }
    }
}

#[tokio::test]
async fn a_request_being_answered_is_finished_before_the_end() {
    let mut gate = Gate::with_a_request_inside(settings()).await;
    gate.stop.send(()).unwrap();
    gate.go.notify_one();
    let mut answer = String::new();
    gate.client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("done"), "{answer}");
    assert_eq!(gate.serving.await.unwrap(), Ended::InGoodOrder);
    drop(gate.entered);
}

#[tokio::test]
async fn a_stopping_service_does_not_wait_for_ever() {
    let gate = Gate::with_a_request_inside(InterfaceSettings {
        shutdown_limit: std::time::Duration::from_millis(1),
        ..settings()
    })
    .await;
    gate.stop.send(()).unwrap();
    assert_eq!(gate.serving.await.unwrap(), Ended::Interrupted);
}
