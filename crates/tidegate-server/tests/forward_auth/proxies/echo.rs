//! The application behind a proxy: it says what it was asked.

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
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

async fn say(request: Request) -> String {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1_000).await.unwrap();
    format!("{} {} {}", head.method, head.uri, String::from_utf8_lossy(&body))
}
