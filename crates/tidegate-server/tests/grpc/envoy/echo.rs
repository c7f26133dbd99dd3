//! The application behind Envoy: its answer says what it took, as much as it was asked to take.

use axum::Router;
use axum::extract::Request;
use http::HeaderMap;
use tokio::net::TcpListener;

/// An application on a free port, gone with its test.
pub struct Echo {
    pub port: u16,
}

impl Echo {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let app = Router::new().fallback(say);
        tokio::spawn(async { axum::serve(listener, app).await });
        Echo { port }
    }
}

async fn say(request: Request) -> (HeaderMap, String) {
    let mut headers = HeaderMap::new();
    if let Some(tokens) = request.headers().get("x-take") {
        headers.insert("x-tokens", tokens.clone());
    }
    (headers, format!("{} {}", request.method(), request.uri()))
}
