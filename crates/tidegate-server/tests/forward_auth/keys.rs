//! Whom a request is charged to.

use crate::door::{ask, left, server_with};

const FITTING: (&str, &str) = ("x-forwarded-uri", "/a/b?t=x+y&u=&t2=1&t2=2");

#[tokio::test]
async fn every_part_tells_requests_apart() {
    for (part, one, other) in [
        ("header:x-k", ("x-k", "a"), ("x-k", "b")),
        ("path", ("x-forwarded-uri", "/a?x"), ("x-forwarded-uri", "/b?x")),
        ("host", ("x-forwarded-host", "a.example"), ("x-forwarded-host", "b.example")),
        ("method", ("x-forwarded-method", "GET"), ("x-forwarded-method", "PUT")),
        ("query:t", ("x-forwarded-uri", "/?t=a"), ("x-forwarded-uri", "/?s=a&t=b")),
        ("ip", ("x-forwarded-for", "192.0.2.1"), ("x-forwarded-for", "192.0.2.2")),
        ("ip", ("x-forwarded-for", "2001:db8:0:1::1"), ("x-forwarded-for", "2001:db8:0:2::1")),
    ] {
        for key in [part.to_owned(), format!("[const:c, '{part}']")] {
            let server = server_with(&format!("key: {key}")).await;
            assert_eq!(left(&ask(&server, "GET", "", &[one]).await), Some(19), "{key}");
            assert_eq!(left(&ask(&server, "GET", "", &[other]).await), Some(19), "{key}");
            assert_eq!(left(&ask(&server, "GET", "", &[one]).await), Some(18), "{key}");
        }
    }
}

#[tokio::test]
async fn what_is_the_same_client_is_charged_together() {
    for (part, one, other) in [
        ("path", ("x-forwarded-uri", "/a/b"), ("x-forwarded-uri", "/a/./%62?x")),
        ("host", ("x-forwarded-host", "a.example"), ("x-forwarded-host", "A.Example.:80")),
        ("query:t", ("x-forwarded-uri", "/?t=x+y"), ("x-forwarded-uri", "/?%74=x%20y")),
        ("ip", ("x-forwarded-for", "2001:db8:0:1::1"), ("x-forwarded-for", "2001:db8:0:1::ffff")),
        ("const:all", ("x-k", "a"), ("x-k", "b")),
    ] {
        let server = server_with(&format!("key: {part}")).await;
        assert_eq!(left(&ask(&server, "GET", "", &[one]).await), Some(19), "{part}");
        assert_eq!(left(&ask(&server, "GET", "", &[other]).await), Some(18), "{part}");
    }
}

#[tokio::test]
async fn a_part_alone_is_the_key_and_several_are_joined() {
    let server = server_with("key: header:x-k").await;
    ask(&server, "GET", "", &[("x-k", "user:42")]).await;
    assert_eq!(server.get("/v1/peek?key=user:42").await.json()["remaining"], 19);
    let server = server_with("key: [header:x-a, header:x-b]").await;
    ask(&server, "GET", "", &[("x-a", "acme"), ("x-b", "10.0.0.1")]).await;
    assert_eq!(server.get("/v1/peek?key=4:acme8:10.0.0.1").await.json()["remaining"], 19);
    for (a, b) in [("acme1", "0.0.0.1"), ("acm", "e10.0.0.1"), ("10.0.0.1", "acme")] {
        let told = ask(&server, "GET", "", &[("x-a", a), ("x-b", b)]).await;
        assert_eq!(left(&told), Some(19), "{a} {b}");
    }
}

#[tokio::test]
async fn what_is_missing_is_denied_skipped_or_shared() {
    let parts = ["header:x-k", "query:gone", "query:u", "[ip, header:x-k]"];
    for part in parts {
        let denying = server_with(&format!("key: {part}")).await;
        let told = ask(&denying, "GET", "", &[FITTING]).await;
        assert_eq!((told.status, left(&told)), (403, None), "{part}");
        assert_eq!(told.header("content-type"), Some("application/problem+json"));
        assert_eq!(told.json()["detail"], "The request does not say for whom it is counted.");

        let skipping = server_with(&format!("key: {part}, on_missing: skip")).await;
        let told = ask(&skipping, "GET", "", &[FITTING]).await;
        assert_eq!((told.status, left(&told)), (200, None), "{part}");

        let sharing = server_with(&format!("key: {part}, on_missing: shared")).await;
        assert_eq!(left(&ask(&sharing, "GET", "", &[FITTING]).await), Some(19), "{part}");
        assert_eq!(left(&ask(&sharing, "GET", "", &[FITTING, ("x-k", "")]).await), Some(18), "{part}");
    }
}

#[tokio::test]
async fn what_is_there_twice_is_denied_whatever_else_is_said() {
    for missing in ["deny", "skip", "shared"] {
        for (part, headers) in
            [("header:x-k", [("x-k", "a"), ("x-k", "b")]), ("query:t2", [FITTING, ("x-k", "a")])]
        {
            let server = server_with(&format!("key: {part}, on_missing: {missing}")).await;
            let told = ask(&server, "GET", "", &headers).await;
            assert_eq!((told.status, left(&told)), (403, None), "{part} {missing}");
            assert_eq!(told.json()["detail"], "The request says twice for whom it is counted.");
        }
    }
}
