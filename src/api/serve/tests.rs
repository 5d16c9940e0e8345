//! Real connections: what was accepted is answered before the end.

use std::sync::Arc;

use futures::StreamExt as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::lanes::Lanes;
use super::tls::Certificate;
use super::{Ended, listen, serve};
use crate::api::settings::trusted_proxies::TrustedProxies;
use crate::api::settings::{CertificateFiles, InterfaceSettings, RateSettings};

fn settings() -> InterfaceSettings {
    InterfaceSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        public_url: "http://127.0.0.1".to_owned(),
        cors_origins: Vec::new(),
        body_limit: 1024,
        text_limit: 1024,
        query_deadline: std::time::Duration::from_secs(1),
        concurrent_queries: 1,
        waiting_queries: 0,
        queue_patience: std::time::Duration::from_secs(1),
        cell_limit: 1000,
        slow_client_limit: std::time::Duration::from_secs(10),
        connection_limit: 16,
        address_connections: 16,
        trusted_proxies: TrustedProxies::default(),
        operations_address: None,
        certificate: None,
        person_queries: 1,
        rates: RateSettings::default(),
        log_people: true,
        shutdown_limit: std::time::Duration::from_secs(10),
        source_prefix: "com.almanac".to_owned(),
    }
}

/// A service whose only route reports when it is entered and answers when it is released.
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
        let listener = listen(settings.listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            serve(listener, router, &settings, None, Lanes::on([]), async {
                drop(stopped.await);
            })
            .await
        });
        let mut client = TcpStream::connect(address).await.unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nhost: almanac\r\n\r\n")
            .await
            .unwrap();
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
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("done"),
        "{answer}"
    );
    assert_eq!(gate.serving.await.unwrap(), Ended::InGoodOrder);
    drop(gate.entered);
}

#[tokio::test]
async fn an_answer_that_breaks_off_does_not_look_whole_to_an_old_client() {
    for (breaks_off, version) in [(true, "1.0"), (true, "1.1"), (false, "1.0")] {
        let parts = move || async move {
            let first = futures::stream::iter([Ok("a part")]);
            let last = if breaks_off {
                Err(std::io::Error::other("broken"))
            } else {
                Ok("the last")
            };
            let last = futures::stream::once(async {
                tokio::task::yield_now().await;
                last
            });
            axum::body::Body::from_stream(first.chain(last))
        };
        let router = axum::Router::new().route("/", axum::routing::get(parts));
        let settings = settings();
        let listener = listen(settings.listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            serve(listener, router, &settings, None, Lanes::on([]), async {
                drop(stopped.await);
            })
            .await
        });
        let mut client = TcpStream::connect(address).await.unwrap();
        let head = format!("GET / HTTP/{version}\r\nhost: almanac\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = client.read_to_end(&mut answer).await;
        let is_whole = read.is_ok() && (version == "1.0" || answer.ends_with(b"0\r\n\r\n"));
        assert_eq!(
            is_whole,
            !breaks_off,
            "{version}: {}",
            String::from_utf8_lossy(&answer)
        );
    }
}

/// Serves `router`, and asks for `/` as an HTTP/1.0 client does.
async fn asked_by_an_old_client(
    router: axum::Router,
    settings: InterfaceSettings,
) -> (TcpStream, oneshot::Sender<()>, tokio::task::JoinHandle<Ended>) {
    let listener = listen(settings.listen).await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        serve(listener, router, &settings, None, Lanes::on([]), async {
            drop(stopped.await);
        })
        .await
    });
    client
        .write_all(b"GET / HTTP/1.0\r\nhost: almanac\r\n\r\n")
        .await
        .unwrap();
    (client, stop, serving)
}

#[tokio::test]
async fn an_answer_that_a_stopping_service_gives_up_does_not_look_whole_to_an_old_client() {
    let endless = || async {
        let first = futures::stream::iter([Ok::<_, std::io::Error>("a part")]);
        axum::body::Body::from_stream(first.chain(futures::stream::pending()))
    };
    let router = axum::Router::new().route("/", axum::routing::get(endless));
    let settings = InterfaceSettings {
        shutdown_limit: std::time::Duration::from_millis(1),
        ..settings()
    };
    let (mut client, stop, serving) = asked_by_an_old_client(router, settings).await;
    let mut answer = Vec::new();
    while !answer.ends_with(b"a part") {
        answer.push(client.read_u8().await.unwrap());
    }
    stop.send(()).unwrap();
    assert_eq!(serving.await.unwrap(), Ended::Interrupted);
    assert!(client.read_to_end(&mut answer).await.is_err());
}

struct NotifiesWhenDropped(Arc<Notify>);

impl Drop for NotifiesWhenDropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn an_answer_that_its_client_takes_too_slowly_does_not_look_whole_to_an_old_one() {
    const A_PART: &[u8] = &[b'x'; 1 << 16];
    let given_up = Arc::new(Notify::new());
    let endless = {
        let given_up = Arc::clone(&given_up);
        move || async move {
            let parts = futures::stream::unfold(NotifiesWhenDropped(given_up), |held| async move {
                Some((Ok::<_, std::io::Error>(A_PART), held))
            });
            axum::body::Body::from_stream(parts)
        }
    };
    let router = axum::Router::new().route("/", axum::routing::get(endless));
    let settings = InterfaceSettings {
        slow_client_limit: std::time::Duration::from_millis(50),
        ..settings()
    };
    let (mut client, _stop, _serving) = asked_by_an_old_client(router, settings).await;
    given_up.notified().await;
    let mut answer = Vec::new();
    assert!(client.read_to_end(&mut answer).await.is_err());
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

/// A client of a service that answers at once, and what stops the service.
async fn client_of(
    settings: InterfaceSettings,
    certificate: Option<Arc<Certificate>>,
) -> (TcpStream, oneshot::Sender<()>, tokio::task::JoinHandle<Ended>) {
    let router = axum::Router::new().route("/", axum::routing::get(|| async { "done" }));
    let listener = listen(settings.listen).await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        serve(listener, router, &settings, certificate, Lanes::on([]), async {
            drop(stopped.await);
        })
        .await
    });
    (client, stop, serving)
}

/// Clients may take longer than a service may take to stop.
fn settings_of_patience() -> InterfaceSettings {
    InterfaceSettings {
        slow_client_limit: std::time::Duration::from_mins(5),
        shutdown_limit: std::time::Duration::from_secs(30),
        ..settings()
    }
}

#[tokio::test]
async fn a_stopping_service_does_not_wait_for_the_rest_of_a_head() {
    let (mut client, stop, serving) = client_of(settings_of_patience(), None).await;
    client.write_all(b"GET / HTTP/1.1\r\nho").await.unwrap();
    // It is read before the service is told to stop.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    stop.send(()).unwrap();
    assert_eq!(serving.await.unwrap(), Ended::InGoodOrder);
}

#[tokio::test]
async fn a_stopping_service_does_not_wait_for_a_client_that_only_connects() {
    let directory = tempfile::tempdir().unwrap();
    let files = certificate_in(
        directory.path(),
        include_str!("tests/first.pem"),
        include_str!("tests/first.key.pem"),
    );
    let certificate = Arc::new(Certificate::open(&files).unwrap());
    for certificate in [None, Some(certificate)] {
        let (client, stop, serving) = client_of(settings_of_patience(), certificate).await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        stop.send(()).unwrap();
        assert_eq!(serving.await.unwrap(), Ended::InGoodOrder);
        drop(client);
    }
}

/// A service that refuses everything posted to it without reading it, as if it were too large.
async fn refusing(settings: InterfaceSettings) -> (TcpStream, oneshot::Sender<()>) {
    let router = axum::Router::new().route(
        "/",
        axum::routing::post(|| async { axum::http::StatusCode::PAYLOAD_TOO_LARGE }),
    );
    let listener = listen(settings.listen).await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        serve(listener, router, &settings, None, Lanes::on([]), async {
            drop(stopped.await);
        })
        .await
    });
    (client, stop)
}

/// One answer without a body, read up to its end.
async fn head(client: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test]
async fn a_client_that_sends_everything_first_is_refused_and_goes_on() {
    let (mut client, _stop) = refusing(settings()).await;
    let body = vec![b' '; 8 << 20];
    for announced in [
        format!("content-length: {}", body.len()),
        "transfer-encoding: chunked".to_owned(),
    ] {
        let chunked = announced.starts_with("transfer");
        let request = format!("POST / HTTP/1.1\r\nhost: almanac\r\n{announced}\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        if chunked {
            client
                .write_all(format!("{:x}\r\n", body.len()).as_bytes())
                .await
                .unwrap();
        }
        client.write_all(&body).await.unwrap();
        if chunked {
            client.write_all(b"\r\n0\r\n\r\n").await.unwrap();
        }
        let answer = head(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        assert!(!answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn a_body_that_waits_to_be_asked_for_is_not_asked_for_to_be_thrown_away() {
    let (mut client, _stop) = refusing(settings()).await;
    let request =
        b"POST / HTTP/1.1\r\nhost: almanac\r\nexpect: 100-continue\r\ncontent-length: 1000000\r\n\r\n";
    client.write_all(request).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.contains("connection: close"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_body_beyond_every_measure_is_not_read_before_it_is_refused() {
    let (mut client, _stop) = refusing(settings()).await;
    let length = super::leftover::MOST_BYTES + 1;
    let request = format!("POST / HTTP/1.1\r\nhost: almanac\r\ncontent-length: {length}\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let answer = head(&mut client).await;
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.contains("connection: close"),
        "{answer}"
    );
    // The body is still received for a while, so that the refusal reaches clients that read only at the end.
    client.write_all(&vec![b' '; 8 << 20]).await.unwrap();
}

#[tokio::test]
async fn a_client_that_never_sends_the_rest_is_refused_and_given_up() {
    let (mut client, _stop) = refusing(InterfaceSettings {
        slow_client_limit: std::time::Duration::from_millis(50),
        ..settings()
    })
    .await;
    client
        .write_all(b"POST / HTTP/1.1\r\nhost: almanac\r\ncontent-length: 1000\r\n\r\nhalf")
        .await
        .unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.contains("connection: close"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_head_that_does_not_come_whole_is_given_up() {
    let (mut client, _stop) = refusing(InterfaceSettings {
        slow_client_limit: std::time::Duration::from_millis(50),
        ..settings()
    })
    .await;
    client.write_all(b"POST / HTTP/1.1\r\nho").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 408"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_connection_on_which_nothing_is_asked_is_ended() {
    let (mut client, _stop) = refusing(InterfaceSettings {
        slow_client_limit: std::time::Duration::from_millis(100),
        ..settings()
    })
    .await;
    // The HTTP/2 preface and empty settings: a connection without a request.
    client
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut said = Vec::new();
    client.read_to_end(&mut said).await.unwrap();
    // A GOAWAY frame is sent before the end.
    assert!(said.windows(4).any(|frame| frame == [0, 0, 8, 7]), "{said:?}");
}

#[tokio::test]
async fn an_address_that_has_its_share_of_connections_gets_no_more() {
    let settings = InterfaceSettings {
        address_connections: 2,
        ..settings()
    };
    let listener = listen(settings.listen).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().route("/", axum::routing::get(|| async { "here" }));
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        serve(listener, router, &settings, None, Lanes::on([]), async {
            drop(stopped.await);
        })
        .await
    });
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = TcpStream::connect(address).await.unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nhost: almanac\r\n\r\n")
            .await
            .unwrap();
        assert!(head(&mut client).await.starts_with("HTTP/1.1 200"));
        held.push(client);
    }
    let mut third = TcpStream::connect(address).await.unwrap();
    let mut said = Vec::new();
    // It is closed, perhaps while something is being sent to it.
    let _reset = third.write_all(b"GET / HTTP/1.1\r\nhost: almanac\r\n\r\n").await;
    let _reset = third.read_to_end(&mut said).await;
    assert!(said.is_empty(), "{said:?}");
}

/// Certificate and key in a directory, as an operator has them.
fn certificate_in(directory: &std::path::Path, certificate: &str, key: &str) -> CertificateFiles {
    let files = CertificateFiles {
        certificate: directory.join("certificate.pem"),
        key: directory.join("key.pem"),
    };
    std::fs::write(&files.certificate, certificate).unwrap();
    std::fs::write(&files.key, key).unwrap();
    files
}

/// The answer that a client gets over TLS if it trusts only `certificate`.
async fn asked_over_tls(address: std::net::SocketAddr, certificate: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await?;
    let mut answer = String::new();
    // Not every end of a connection is announced.
    let _end = client.read_to_string(&mut answer).await;
    Ok(answer)
}

#[tokio::test]
async fn tls_is_spoken_and_another_certificate_is_shown_without_a_restart() {
    let (first, first_key) = (
        include_str!("tests/first.pem"),
        include_str!("tests/first.key.pem"),
    );
    let (second, second_key) = (
        include_str!("tests/second.pem"),
        include_str!("tests/second.key.pem"),
    );
    let directory = tempfile::tempdir().unwrap();
    let files = certificate_in(directory.path(), first, first_key);
    let certificate = Arc::new(Certificate::open(&files).unwrap());
    let settings = settings();
    let listener = listen(settings.listen).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().route("/", axum::routing::get(|| async { "here" }));
    let (_stop, stopped) = oneshot::channel::<()>();
    let shown = Arc::clone(&certificate);
    tokio::spawn(async move {
        serve(listener, router, &settings, Some(shown), Lanes::on([]), async {
            drop(stopped.await);
        })
        .await
    });
    let answer = asked_over_tls(address, first).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("here"),
        "{answer}"
    );
    assert!(asked_over_tls(address, second).await.is_err());

    let following = tokio::spawn(async move {
        certificate
            .follow_files(std::time::Duration::from_millis(10))
            .await;
    });
    certificate_in(directory.path(), second, second_key);
    let answer = loop {
        if let Ok(answer) = asked_over_tls(address, second).await {
            break answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert!(answer.ends_with("here"), "{answer}");
    following.abort();

    std::fs::write(&files.key, first_key).unwrap();
    assert!(
        Certificate::open(&files).is_err(),
        "a key that is not the certificate's"
    );
}
