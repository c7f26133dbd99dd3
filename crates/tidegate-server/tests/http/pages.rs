//! What is served to people and machines besides decisions.

use serde_json::Value;

use crate::server::{FIVE, Server};

#[tokio::test]
async fn the_document_names_every_route() {
    let server = Server::start(FIVE).await;
    let told = server.get("/openapi.json").await;
    assert_eq!(told.header("content-type"), Some("application/json"));
    let document = told.json();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    let expected = [
        "/healthz",
        "/livez",
        "/metrics",
        "/readyz",
        "/v1/check",
        "/v1/check/batch",
        "/v1/credit",
        "/v1/forward-auth/{rule}",
        "/v1/peek",
        "/v1/penalize",
        "/v1/policies",
        "/v1/reset",
    ];
    assert_eq!(paths, expected);
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(told.body, tidegate_server::http::openapi_json());
}

#[tokio::test]
async fn the_document_says_what_proxies_are_answered_by_any_method() {
    let document: Value = serde_json::from_str(&tidegate_server::http::openapi_json()).unwrap();
    let path = document["paths"]["/v1/forward-auth/{rule}"].as_object().unwrap();
    let methods = ["delete", "get", "head", "options", "patch", "post", "put", "trace"];
    assert_eq!(path.keys().collect::<Vec<_>>(), methods);
    let mut names: Vec<&str> = methods.iter().map(|it| path[*it]["operationId"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), methods.len());
    for method in methods {
        let responses = path[method]["responses"].as_object().unwrap();
        assert_eq!(
            responses.keys().collect::<Vec<_>>(),
            ["200", "400", "403", "404", "429", "503"],
            "{method}"
        );
        assert!(
            responses["429"]["headers"]["Retry-After"].is_object()
                && path[method].get("requestBody").is_none()
        );
        let has_body = responses["429"].get("content").is_some();
        assert_eq!(has_body, method != "head", "{method}");
    }
}

#[tokio::test]
async fn the_document_says_what_a_body_must_have() {
    let document: Value = serde_json::from_str(&tidegate_server::http::openapi_json()).unwrap();
    let check = &document["components"]["schemas"]["Check"];
    assert_eq!(check["additionalProperties"], false, "{check}");
    assert_eq!(check["oneOf"][1]["required"][0], "key_b64", "{check}");
    assert_eq!(check["properties"]["cost"]["maximum"], 1_000_000_000_000_u64, "{check}");
    assert_eq!(check["properties"]["cost"]["type"], "integer", "{check}");
    let adjustment = &document["components"]["schemas"]["Adjustment"];
    assert_eq!(adjustment["required"][0], "units", "{adjustment}");
}

#[tokio::test]
async fn the_page_and_what_it_loads_are_here() {
    let server = Server::start(FIVE).await;
    let page = server.get("/docs").await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    for (path, media_type) in
        [("/docs/page.js", "text/javascript; charset=utf-8"), ("/docs/page.css", "text/css; charset=utf-8")]
    {
        assert!(page.body.contains(path), "{path}");
        assert_eq!(server.get(path).await.header("content-type"), Some(media_type));
    }
}

#[tokio::test]
async fn it_lives_and_is_ready() {
    let server = Server::start(FIVE).await;
    for path in ["/livez", "/readyz", "/healthz"] {
        let told = server.get(path).await;
        assert_eq!((told.status, &*told.body), (200, "ok\n"), "{path}");
    }
}
