//! `rediss://`: whom we trust, and who we say we are.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::address::Tls;

/// Reads the files that the address names. They are read for every connection: they may be replaced meanwhile.
pub(super) fn configuration(tls: &Tls) -> Result<ClientConfig, String> {
    let trusted = match &tls.ca {
        Some(file) => from_file(file)?,
        None => of_the_system()?,
    };
    let builder =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?
            .with_root_certificates(trusted);
    match &tls.identity {
        None => Ok(builder.with_no_client_auth()),
        Some((cert, key)) => {
            let wrong = |error| {
                format!("cert={}, key={}: {error} (do they belong together?)", cert.display(), key.display())
            };
            let chain = certificates("cert", cert)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| format!("key={}: {error} (a PEM file with a private key)", key.display()))?;
            builder.with_client_auth_cert(chain, key).map_err(wrong)
        }
    }
}

/// Speaks TLS with the server at the other end, which must prove that it is `host`, or who the address says.
pub(super) async fn encrypt(
    stream: TcpStream,
    tls: &Tls,
    host: &str,
) -> Result<TlsStream<TcpStream>, String> {
    let name = tls.server_name.as_deref().unwrap_or(host);
    let known = ServerName::try_from(name.to_owned()).map_err(|_| {
        format!("server_name={name}: no name that a certificate has (write &server_name=NAME)")
    })?;
    let connector = TlsConnector::from(Arc::new(configuration(tls)?));
    connector.connect(known, stream).await.map_err(|error| format!("TLS: {error}"))
}

fn from_file(file: &Path) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for certificate in certificates("ca", file)? {
        store.add(certificate).map_err(|error| format!("ca={}: {error}", file.display()))?;
    }
    Ok(store)
}

fn of_the_system() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err("the system trusts nobody: no certificates are installed (write ?ca=PATH)".to_owned());
    }
    Ok(store)
}

fn certificates(what: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: String| format!("{what}={}: {error} (a PEM file with certificates)", file.display());
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read.map_err(|error| wrong(error.to_string()))? {
        none if none.is_empty() => Err(wrong("no certificate in it".to_owned())),
        some => Ok(some),
    }
}
