//! What the service says to databases, stores and providers is said to them alone.

use uuid::Uuid;

use crate::harness::{
    AUDIENCE, Backends, ISSUER, IdentityProvider, Opening, Person, Setup, TlsFront, claims, heart_rate, id,
    instant, sign,
};

/// `host:port` of an address.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").expect("an address").1;
    let authority = rest.split('/').next().expect("an authority");
    authority.rsplit('@').next().expect("a host")
}

/// The address with another host, `localhost:port`.
fn at_front(url: &str, front: &TlsFront) -> String {
    url.replace(authority(url), &format!("localhost:{}", front.port()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_spoken_to_over_tls_or_not_at_all() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let certificate = TlsFront::certificate(folder.path());
    let url = backends.setting("ALMANAC_DATABASE_URL").to_owned();
    let front = TlsFront::to(authority(&url), Opening::PostgreSql).await;
    let trusting = format!(
        "{}?sslmode=verify-full&sslrootcert={}",
        at_front(&url, &front),
        certificate.display()
    );
    let on = |url: &str| Setup::default().on(backends.clone().with("ALMANAC_DATABASE_URL", url));
    let server = on(&trusting).start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
        .await;
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
    server.stop();

    let without_tls = TlsFront::to(authority(&url), Opening::Refused).await;
    let unknown = format!("{}?sslmode=verify-full", at_front(&url, &front));
    let refusing = format!("{}?sslmode=require", at_front(&url, &without_tls));
    for url in [unknown, refusing] {
        let server = on(&url).prepare();
        let ended = server.try_launch().expect_err("it started");
        assert_eq!(ended.code(), Some(1), "{url}: {}", server.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_store_is_spoken_to_over_tls() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let certificate = TlsFront::certificate(folder.path());
    let url = backends.setting("AWS_ENDPOINT_URL").to_owned();
    let front = TlsFront::to(authority(&url), Opening::AtOnce).await;
    let address = format!("https://localhost:{}", front.port());
    let backends = backends
        .with("AWS_ENDPOINT_URL", &address)
        .with("AWS_ALLOW_HTTP", "false");
    let setup = Setup::default().no_upkeep().on(backends);
    let server = setup
        .clone()
        .with("SSL_CERT_FILE", &certificate.display().to_string())
        .start();
    let person = server.person();
    let records: Vec<_> = (0..20_000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    person.records("HeartRate", &records).await;
    assert_eq!(person.all_samples("HeartRate").await.len(), 20_000);
    server.stop();

    let stranger = setup.prepare();
    let ended = stranger.try_launch().expect_err("it started");
    assert_eq!(ended.code(), Some(1), "{}", stranger.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_spoken_to_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = TlsFront::certificate(folder.path());
    let provider = IdentityProvider::start(&["first"]).await;
    let front = TlsFront::to(authority(provider.url()), Opening::AtOnce).await;
    let keys = format!("https://localhost:{}/keys", front.port());
    let setup = Setup::default()
        .with("ALMANAC_JWKS_URL", &keys)
        .with("ALMANAC_ISSUER", ISSUER)
        .with("ALMANAC_AUDIENCE", AUDIENCE);
    let person = Uuid::new_v4();
    let token = sign("first", &claims(person));
    let trusting = setup
        .clone()
        .with("SSL_CERT_FILE", &certificate.display().to_string())
        .start();
    let asked = |url: &str| Person::new(url, person, token.clone());
    asked(&trusting.url())
        .get("/data/v0/metrics_catalog")
        .await
        .must_be(200);
    assert_eq!(provider.fetches(), 1);

    // Whoever shows a certificate that nobody vouches for is not asked, and nobody gets in.
    let stranger = setup.start();
    let reply = asked(&stranger.url()).get("/data/v0/metrics_catalog").await;
    assert!(matches!(reply.status, 401 | 503), "{reply}");
    assert_eq!(provider.fetches(), 1);
}
