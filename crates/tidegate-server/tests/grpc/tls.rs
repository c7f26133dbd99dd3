//! TLS, by a program in Python, whose gRPC library speaks another one's.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tidegate_server::grpc::{Tls, TlsFiles};
use tidegate_server::{Drain, Listeners};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::python::{CONFIG, run};
use super::server::app;

/// Somebody who vouches for others.
struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // One who has the name of those vouched for seems to be them.
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    /// Writes a certificate for 127.0.0.1 and its key; what vouches for it into `ca.pem`.
    fn vouch(&self, folder: &Path, name: &str) -> [PathBuf; 2] {
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(folder.join("ca.pem"), self.certificate.pem()).unwrap();
        let paths = [folder.join(format!("{name}.pem")), folder.join(format!("{name}.key"))];
        fs::write(&paths[0], certificate.pem()).unwrap();
        fs::write(&paths[1], key.serialize_pem()).unwrap();
        paths
    }
}

/// A whole server, whose gRPC door speaks TLS.
struct Running {
    folder: TempDir,
    port: u16,
    tls: Arc<Tls>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn files(folder: &Path, client_ca: Option<&Path>) -> TlsFiles {
    TlsFiles {
        certificate: folder.join("server.pem"),
        key: folder.join("server.key"),
        client_ca: client_ca.map(Path::to_owned),
    }
}

async fn start(authority: &Authority, knows_clients: bool) -> Running {
    let folder = tempfile::tempdir().unwrap();
    authority.vouch(folder.path(), "server");
    let ca = folder.path().join("ca.pem");
    let tls = Arc::new(Tls::load(files(folder.path(), knows_clients.then_some(&ca))).unwrap());
    let bind = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (http, grpc) = (bind().await, bind().await);
    let port = grpc.local_addr().unwrap().port();
    let listeners = Listeners::http(http).with_grpc(grpc).with_grpc_tls(Arc::clone(&tls));
    let (_, app) = app(CONFIG);
    let never = std::future::pending();
    let task = tokio::spawn(async move {
        tidegate_server::run(listeners, app, Drain::default(), never).await;
    });
    Running { folder, port, tls, task }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_trusts_the_certificate_is_answered() {
    let authority = Authority::new();
    let server = start(&authority, false).await;
    let silent = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    let ca = server.folder.path().join("ca.pem");
    let told = run(server.port, &[&ca]).await.unwrap();
    assert_eq!(told["first"]["statuses"][0]["remaining"], 9);
    drop(silent);
    assert!(run(server.port, &[]).await.unwrap_err().contains("UNAVAILABLE"), "without TLS");
    let other = tempfile::tempdir().unwrap();
    Authority::new().vouch(other.path(), "nobody");
    let error = run(server.port, &[&other.path().join("ca.pem")]).await.unwrap_err();
    assert!(error.contains("UNAVAILABLE"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_show_a_certificate_if_they_have_to() {
    let authority = Authority::new();
    let server = start(&authority, true).await;
    assert!(server.tls.wants_to_know_clients());
    let ca = server.folder.path().join("ca.pem");
    assert!(run(server.port, &[&ca]).await.unwrap_err().contains("UNAVAILABLE"));
    let [cert, key] = authority.vouch(server.folder.path(), "client");
    run(server.port, &[&ca, &cert, &key]).await.unwrap();
    let other = tempfile::tempdir().unwrap();
    let [cert, key] = Authority::new().vouch(other.path(), "client");
    assert!(run(server.port, &[&ca, &cert, &key]).await.unwrap_err().contains("UNAVAILABLE"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_comes_into_force_and_a_wrong_one_does_not() {
    let server = start(&Authority::new(), false).await;
    let folder = server.folder.path();
    Authority::new().vouch(folder, "server");
    let ca = folder.join("ca.pem");
    assert!(run(server.port, &[&ca]).await.is_err(), "the old one is in force");
    server.tls.reload().unwrap();
    run(server.port, &[&ca]).await.unwrap();
    fs::write(folder.join("server.pem"), "nonsense").unwrap();
    let error = server.tls.reload().unwrap_err().to_string();
    assert!(
        error.ends_with("server.pem: no certificate in it (give a PEM file with certificates)"),
        "{error}"
    );
    run(server.port, &[&ca]).await.unwrap();
}

#[test]
fn files_that_are_wrong_are_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let said = |client_ca: Option<&str>| {
        let client_ca = client_ca.map(|name| folder.join(name));
        Tls::load(files(folder, client_ca.as_deref())).unwrap_err().to_string()
    };
    assert!(said(None).contains("server.key: "), "there is none");
    let [_, other_key] = Authority::new().vouch(folder, "other");
    Authority::new().vouch(folder, "server");
    assert!(said(Some("nowhere.pem")).contains("nowhere.pem: "));
    assert!(said(Some("server.key")).contains("server.key: no certificate in it"));
    fs::copy(other_key, folder.join("server.key")).unwrap();
    let error = said(None);
    assert!(error.contains("server.pem: ") && error.contains("hold the key of this certificate?"), "{error}");
}
