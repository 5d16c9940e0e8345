//! TLS without a proxy: a certificate and its key from files, read again when they change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};

use crate::api::settings::CertificateFiles;

/// How often the files are checked by default.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{path} cannot be read as PEM: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("the certificate in {path} cannot be used: {reason}")]
    Certificate { path: PathBuf, reason: rustls::Error },
}

/// The certificate that new connections get.
pub struct Certificate {
    files: CertificateFiles,
    loaded: RwLock<LoadedCertificate>,
}

struct LoadedCertificate {
    config: Arc<ServerConfig>,
    changed: [Option<SystemTime>; 2],
}

impl Certificate {
    pub fn open(files: &CertificateFiles) -> Result<Self, TlsError> {
        let changed = changed(files);
        Ok(Self {
            files: files.clone(),
            loaded: RwLock::new(LoadedCertificate {
                config: Arc::new(config(files)?),
                changed,
            }),
        })
    }

    /// Performs the TLS handshake on `stream`.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner).config);
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Checks the files every `look` for as long as it is polled, and uses what they hold when they change. A
    /// pair that cannot be used leaves the previous one in place.
    pub async fn follow_files(&self, look: Duration) {
        loop {
            tokio::time::sleep(look).await;
            let changed = changed(&self.files);
            if self.loaded.read().unwrap_or_else(PoisonError::into_inner).changed == changed {
                continue;
            }
            let config = config(&self.files);
            let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
            loaded.changed = changed;
            match config {
                Ok(config) => {
                    loaded.config = Arc::new(config);
                    tracing::info!("the certificate was replaced");
                }
                Err(error) => tracing::error!(%error, "the previous certificate stays in use"),
            }
        }
    }
}

fn changed(files: &CertificateFiles) -> [Option<SystemTime>; 2] {
    [&files.certificate, &files.key].map(|path| fs::metadata(path).ok()?.modified().ok())
}

fn config(files: &CertificateFiles) -> Result<ServerConfig, TlsError> {
    let file = |path: &Path, reason: &pem::Error| TlsError::File {
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let chain: Result<Vec<CertificateDer<'static>>, pem::Error> =
        CertificateDer::pem_file_iter(&files.certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| file(&files.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| file(&files.key, &error))?;
    let unusable = |reason| TlsError::Certificate {
        path: files.certificate.clone(),
        reason,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
