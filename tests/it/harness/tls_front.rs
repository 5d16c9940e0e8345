//! TLS in front of a backend that speaks none: what it shows is a certificate for `localhost`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const CERTIFICATE: &str = include_str!("../../../src/api/serve/tests/first.pem");
const KEY: &str = include_str!("../../../src/api/serve/tests/first.key.pem");
/// What a client of PostgreSQL says before everything else when it wants TLS.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// How TLS begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// With the connection.
    AtOnce,
    /// When the client of PostgreSQL asks for it.
    PostgreSql,
    /// Never: a client of PostgreSQL that asks for it is told that there is none.
    Refused,
}

/// Forwards connections for as long as the runtime of the test lives.
#[derive(Debug)]
pub(crate) struct TlsFront {
    port: u16,
}

impl TlsFront {
    /// A front of `target`, `host:port`.
    pub(crate) async fn to(target: &str, opening: Opening) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (target, acceptor) = (target.to_owned(), acceptor());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(forward(near, target.clone(), opening, acceptor.clone()));
            }
        });
        Self { port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The certificate as a file in `folder`, for those who are to trust it.
    pub(crate) fn certificate(folder: &Path) -> PathBuf {
        let path = folder.join("trusted.pem");
        std::fs::write(&path, CERTIFICATE).expect("the certificate is written");
        path
    }
}

fn acceptor() -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a key that fits");
    TlsAcceptor::from(Arc::new(config))
}

async fn forward(
    mut near: TcpStream,
    target: String,
    opening: Opening,
    acceptor: TlsAcceptor,
) -> std::io::Result<()> {
    let mut far = TcpStream::connect(target).await?;
    if opening != Opening::AtOnce {
        let mut request = [0; TLS_REQUEST.len()];
        near.read_exact(&mut request).await?;
        if request != TLS_REQUEST || opening == Opening::Refused {
            if request == TLS_REQUEST {
                near.write_all(b"N").await?;
            } else {
                far.write_all(&request).await?;
            }
            tokio::io::copy_bidirectional(&mut near, &mut far).await?;
            return Ok(());
        }
        near.write_all(b"S").await?;
    }
    let mut near = acceptor.accept(near).await?;
    tokio::io::copy_bidirectional(&mut near, &mut far).await?;
    Ok(())
}
