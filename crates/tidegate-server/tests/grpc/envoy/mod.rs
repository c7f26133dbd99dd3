//! A real Envoy, run with the very files that docs/envoy.md shows.

mod echo;
#[path = "../../forward_auth/proxies/process.rs"]
mod process;

use std::time::Duration;

use reqwest::{Client, Response};
use tidegate_server::Stopped;

use super::server::{Server, metrics, start, start_at};
use echo::Echo;
use process::{Process, files, port};

/// Envoy in front of an application, asking a server about each request.
struct Setup {
    config: String,
    server: Server,
    envoy: Process,
    url: String,
    client: Client,
}

/// What a client sees.
#[derive(Debug)]
struct Seen {
    status: u16,
    response: http::HeaderMap,
    body: String,
}

impl Seen {
    async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Seen { status, response: headers, body: response.text().await.unwrap() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.response.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Setup {
    /// The page's files, with `change` made to Envoy's.
    async fn of(change: impl Fn(String) -> String) -> Self {
        let shown = files("../envoy.md");
        let file = |name: &str| shown.iter().find(|(shown, _)| shown == name).unwrap().1.clone();
        let config = file("tidegate.yaml");
        let server = start(&config).await;
        let echo = Echo::start().await;
        let own = port();
        let ports = [("8081", server.address.port()), ("9000", echo.port), ("8000", own)];
        let text = ports.iter().fold(file("envoy.yaml"), |text, (shown, real)| {
            text.replace(&format!("port_value: {shown}"), &format!("port_value: {real}"))
        });
        // On a busy machine an answer may take long, and would be done without.
        let text = change(text.replace("timeout: 0.1s", "timeout: 30s"));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("envoy.yaml"), text).unwrap();
        let arguments = ["-c", "envoy.yaml", "--use-dynamic-base-id", "--disable-hot-restart"];
        let envoy = Process::start("TIDEGATE_ENVOY", &arguments, folder);
        let client = Client::builder().no_proxy().build().unwrap();
        let setup = Setup { config, server, envoy, url: format!("http://127.0.0.1:{own}/v1"), client };
        setup
            .until("it serves", async || setup.try_get("", 0).await.is_some_and(|it| it.status == 200))
            .await;
        setup
    }

    /// Waits for what takes another program a while.
    async fn until(&self, what: &str, happened: impl AsyncFn() -> bool) {
        for _ in 0..600 {
            if happened().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("never: {what}\n{}", self.envoy.said());
    }

    async fn try_get(&self, api_key: &str, take: u64) -> Option<Seen> {
        let mut request = self.client.get(&self.url).header("x-take", take);
        if !api_key.is_empty() {
            request = request.header("x-api-key", api_key);
        }
        Some(Seen::of(request.send().await.ok()?).await)
    }

    /// A request that takes so many tokens.
    async fn get(&self, api_key: &str, take: u64) -> Seen {
        self.try_get(api_key, take).await.unwrap()
    }

    /// Three pass, the fourth is denied.
    async fn drain(&self, api_key: &str) -> Seen {
        for left in ["2", "1", "0"] {
            let seen = self.get(api_key, 0).await;
            assert_eq!((seen.status, &*seen.body), (200, "GET /v1"), "{}", self.envoy.said());
            assert_eq!(seen.header("x-ratelimit-remaining"), Some(left));
        }
        self.get(api_key, 0).await
    }
}

fn unchanged(text: String) -> String {
    text
}

fn denying(text: String) -> String {
    text.replace("failure_mode_deny: false", "failure_mode_deny: true")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admitted_and_limited_with_headers_that_the_client_sees() {
    let setup = Setup::of(unchanged).await;
    let denied = setup.drain("acme").await;
    assert_eq!(denied.status, 429, "{}", setup.envoy.said());
    for (name, value) in [
        ("x-envoy-ratelimited", "true"),
        ("retry-after", "1"),
        ("x-ratelimit-limit", "3"),
        ("x-ratelimit-remaining", "0"),
        ("ratelimit", "\"requests\";r=0;t=1"),
        ("ratelimit-policy", "\"requests\";q=3;w=3"),
        ("content-type", "application/problem+json"),
    ] {
        assert_eq!(denied.header(name), Some(value), "{name} in {denied:?}");
    }
    assert!(denied.body.contains("quota-exceeded"), "{denied:?}");
    let grpc = setup.client.post(&setup.url).header("x-api-key", "acme");
    let grpc = Seen::of(grpc.header("content-type", "application/grpc").send().await.unwrap()).await;
    assert_eq!((grpc.status, grpc.header("grpc-status")), (200, Some("14")), "{grpc:?}");
    assert_eq!(grpc.header("retry-after"), Some("1"));
    assert_eq!(setup.get("other", 0).await.status, 200);
    let nobody = setup.get("", 0).await;
    assert_eq!((nobody.status, nobody.header("x-ratelimit-limit")), (200, None));
    setup.server.clock.advance(Duration::from_secs(1));
    assert_eq!(setup.get("acme", 0).await.status, 200);
    assert_eq!(setup.get("acme", 0).await.status, 429);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_request_took_is_charged_when_it_is_over() {
    let setup = Setup::of(unchanged).await;
    let charged = async |outcome: &str| {
        let line = format!(r#"tidegate_decisions_total{{policy="tokens",outcome="{outcome}"}} 1"#);
        metrics(&setup.server.app).await.lines().any(|is| is == line)
    };
    assert_eq!(setup.get("acme", 1_000).await.status, 200);
    setup.until("a thousand are charged", async || charged("allowed").await).await;
    assert_eq!(setup.get("acme", 500).await.status, 200, "nothing is left, nothing is owed");
    setup.until("five hundred more are charged", async || charged("denied").await).await;
    for _ in 0..3 {
        let denied = setup.get("acme", 0).await;
        assert_eq!((denied.status, denied.header("x-ratelimit-limit")), (429, Some("1000")), "{denied:?}");
    }
    let requests = setup.server.app.limiter().policy("requests").unwrap();
    assert_eq!(requests.peek("acme").await.unwrap().remaining(), 1, "refused by one, charged by none");
    assert_eq!(setup.get("other", 0).await.status, 200);
    setup.server.clock.advance(Duration::from_secs(60));
    assert_eq!(setup.get("acme", 0).await.status, 200);
}

/// The server dies and comes back; meanwhile requests get `status`.
async fn dies_and_comes_back(setup: Setup, status: u16) {
    assert_eq!(setup.drain("acme").await.status, 429);
    let address = setup.server.address;
    setup.server.stopped.abort();
    setup.until("it is gone", async || setup.get("acme", 0).await.status != 429).await;
    for _ in 0..5 {
        let seen = setup.get("acme", 0).await;
        assert_eq!((seen.status, seen.header("x-ratelimit-limit")), (status, None), "{seen:?}");
    }
    let again = start_at(&setup.config, address).await;
    let setup = Setup { server: again, ..setup };
    let told = async || setup.get("new", 0).await.header("x-ratelimit-limit").is_some();
    setup.until("it is asked again", told).await;
    assert_eq!(setup.drain("acme").await.status, 429);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_is_away_requests_pass() {
    dies_and_comes_back(Setup::of(unchanged).await, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_is_away_requests_fail_if_so_wished() {
    dies_and_comes_back(Setup::of(denying).await, 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn told_to_stop_the_server_is_let_go() {
    let Setup { config, server, envoy, url, client } = Setup::of(denying).await;
    let ask = async || client.get(&url).header("x-api-key", "acme").send().await.unwrap().status().as_u16();
    assert_eq!(ask().await, 200);
    let Server { client: seen, stop, stopped } = server;
    stop.send(()).unwrap();
    // Envoy keeps its connection for as long as it may: were it not told, this would take the whole grace.
    assert_eq!(stopped.await.unwrap(), Stopped::Drained, "{}", envoy.said());
    let again = start_at(&config, seen.address).await;
    let setup = Setup { config, server: again, envoy, url, client };
    let told = async || setup.get("new", 0).await.header("x-ratelimit-limit").is_some();
    setup.until("it is asked again", told).await;
}
