use std::path::Path;

use tidegate_testkit_servers::{Certificates, Program, Server};

use super::*;

fn shown(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().unwrap().to_owned()
}

async fn why(url: &str) -> String {
    Link::open(&url.parse().unwrap(), &Options::default()).await.unwrap_err().to_string()
}

#[tokio::test]
async fn an_encrypted_server_with_a_password() {
    let certificates = Certificates::make();
    let mut server =
        Server::setup(Program::Redis7).password("s3cret").encrypted(&certificates, false).start();
    let ca = shown(certificates.ca());
    let url = format!("rediss://:s3cret@localhost:{}?ca={ca}", server.port());
    let link = open(&url).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
    assert_eq!(server.info("db0").as_deref().map(|it| &it[..7]), Some("keys=1,"));
    server.restart();
    recovered(&link).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
    // By the address that the certificate names too.
    open(&format!("rediss://:s3cret@{}?ca={ca}", server.address())).await;
    open(&format!("rediss://:s3cret@{}?ca={ca}&server_name=localhost", server.address())).await;
}

#[tokio::test]
async fn who_is_not_trusted_gets_no_password() {
    let (certificates, others) = (Certificates::make(), Certificates::make());
    let server = Server::setup(Program::Redis7).password("s3cret").encrypted(&certificates, false).start();
    let (port, ca) = (server.port(), shown(certificates.ca()));
    for (url, expected) in [
        (
            format!("rediss://:s3cret@localhost:{port}?ca={}", shown(others.ca())),
            "TLS: invalid peer certificate",
        ),
        (
            format!("rediss://:s3cret@localhost:{port}?ca={ca}&server_name=other.example"),
            "TLS: invalid peer certificate",
        ),
        (format!("rediss://:s3cret@localhost:{port}"), "TLS: invalid peer certificate"),
        (format!("rediss://:s3cret@localhost:{port}?ca=/no/such"), "ca=/no/such: "),
        (
            format!("rediss://:s3cret@localhost:{port}?ca={}", shown(certificates.server().1)),
            "no certificate in it",
        ),
        (format!("rediss://:s3cret@localhost:{port}?ca={ca}&server_name=a%20b"), "server_name=a b: no name"),
    ] {
        let said = why(&url).await;
        assert!(said.contains(expected) || said.contains("the system trusts nobody"), "{url}: {said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_wants_to_know_its_clients() {
    let certificates = Certificates::make();
    let server = Server::setup(Program::Redis7).encrypted(&certificates, true).start();
    let base = format!("rediss://localhost:{}?ca={}", server.port(), shown(certificates.ca()));
    why(&base).await;
    let (cert, key) = certificates.client();
    let (cert, key) = (shown(cert), shown(key));
    let link = open(&format!("{base}&cert={cert}&key={key}")).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
    let said = why(&format!("{base}&cert={cert}&key={}", shown(certificates.server().1))).await;
    assert!(said.contains("do they belong together?"), "{said}");
    let said = why(&format!("{base}&cert={cert}&key={cert}")).await;
    assert!(said.contains("(a PEM file with a private key)"), "{said}");
}

#[tokio::test]
async fn whoever_speaks_otherwise_than_the_address_says_is_told_by_name() {
    use std::io::{Read as _, Write as _};
    let certificates = Certificates::make();
    let encrypted = Server::setup(Program::Redis7).encrypted(&certificates, false).start();
    let plain = Server::setup(Program::Redis7).password("s3cret").start();
    let web = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = web.local_addr().unwrap();
    std::thread::spawn(move || {
        // Until the test is over.
        for stream in web.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
        }
    });
    let ca = shown(certificates.ca());
    for (url, expected) in [
        (format!("redis://{}", encrypted.address()), "it speaks TLS (write rediss for redis"),
        (format!("rediss://{}?ca={ca}", plain.address()), "it does not speak TLS (write redis for rediss"),
        (format!("redis://{at}"), "an HTTP server answers there"),
        (format!("rediss://{at}?ca={ca}"), "an HTTP server answers there"),
    ] {
        let address: Address = url.parse().unwrap();
        let said = Link::open(&address, &Options::default()).await.unwrap_err().to_string();
        assert!(said.contains(expected), "{url}: {said}");
    }
}
