//! TLS for the gRPC door: who we are, and whose clients we want to know.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A client that has not proven who it is, nor let us, within this time is hung up on.
const WITHIN: Duration = Duration::from_secs(10);

/// A certificate with its key, and perhaps whose certificates clients have to show.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    config: ArcSwap<ServerConfig>,
}

/// The PEM files that TLS is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Our certificate, and those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The certificates that vouch for clients; `None` lets any client in.
    pub client_ca: Option<PathBuf>,
}

/// A file that TLS cannot be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct TlsError {
    file: String,
    reason: String,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// One that cannot be read or does not hold what it should.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let config = ArcSwap::from_pointee(files.read()?);
        Ok(Tls { files, config })
    }

    /// Reads the files again, for connections to come. If they are wrong, what was read before stays.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn reload(&self) -> Result<(), TlsError> {
        self.config.store(Arc::new(self.files.read()?));
        Ok(())
    }

    /// Whether clients have to show a certificate.
    pub fn wants_to_know_clients(&self) -> bool {
        self.files.client_ca.is_some()
    }

    /// Speaks TLS with a client. An error is one line for the log.
    pub(super) async fn accept(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let acceptor = TlsAcceptor::from(self.config.load_full());
        match tokio::time::timeout(WITHIN, acceptor.accept(stream)).await {
            Ok(accepted) => accepted.map_err(|error| format!("TLS: {error}")),
            Err(_) => Err("TLS: the client was silent for too long".to_owned()),
        }
    }
}

impl TlsFiles {
    fn read(&self) -> Result<ServerConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let own = |reason: String| TlsError::of(&self.certificate, reason);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| own(error.to_string()))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut trusted = RootCertStore::empty();
                for certificate in certificates(file)? {
                    trusted.add(certificate).map_err(|error| TlsError::of(file, error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(trusted), provider);
                let verifier = verifier.build().map_err(|error| TlsError::of(file, error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| {
            TlsError::of(&self.key, format!("{error} (give a PEM file with a private key)"))
        })?;
        let mut config =
            builder.with_single_cert(certificates(&self.certificate)?, key).map_err(|error| {
                own(format!("{error} (does {} hold the key of this certificate?)", self.key.display()))
            })?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

impl TlsError {
    fn of(file: &Path, reason: String) -> Self {
        TlsError { file: file.display().to_string(), reason }
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |reason: String| TlsError::of(file, format!("{reason} (give a PEM file with certificates)"));
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read.map_err(|error| wrong(error.to_string()))? {
        none if none.is_empty() => Err(wrong("no certificate in it".to_owned())),
        some => Ok(some),
    }
}
