//! Certificates of a server and a client, and of who signed them.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

/// Files with a certificate for a server named `localhost` and `127.0.0.1`, one for a client, and the certificate of
/// who signed both. They are gone when it is dropped.
#[derive(Debug)]
pub struct Certificates(TempDir);

impl Certificates {
    /// Makes them anew: those of another call are not trusted by these.
    pub fn make() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tg")
            .tempdir()
            .unwrap_or_else(|error| panic!("no folder for certificates: {error}"));
        let made = Self(folder);
        made.sign().unwrap_or_else(|error| panic!("no certificates: {error}"));
        made
    }

    /// The certificate of who signed the others.
    pub fn ca(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// The server's certificate and its key.
    pub fn server(&self) -> (PathBuf, PathBuf) {
        (self.path("server.pem"), self.path("server.key"))
    }

    /// The client's certificate and its key.
    pub fn client(&self) -> (PathBuf, PathBuf) {
        (self.path("client.pem"), self.path("client.key"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn sign(&self) -> Result<(), Box<dyn std::error::Error>> {
        let mut signs = CertificateParams::new(Vec::new())?;
        // Its name must differ from those it signs: else they seem to have signed themselves.
        signs.distinguished_name.push(DnType::CommonName, "Tidegate's tests");
        signs.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(signs, KeyPair::generate()?)?;
        std::fs::write(self.ca(), issuer.pem())?;
        let names = ["localhost", "127.0.0.1"].map(str::to_owned).to_vec();
        for (names, (cert, its_key)) in [(names, self.server()), (vec!["app".to_owned()], self.client())] {
            let key = KeyPair::generate()?;
            std::fs::write(cert, CertificateParams::new(names)?.signed_by(&key, &issuer)?.pem())?;
            std::fs::write(its_key, key.serialize_pem())?;
        }
        Ok(())
    }
}
