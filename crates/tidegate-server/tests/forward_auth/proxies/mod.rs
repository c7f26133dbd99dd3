//! Real proxies, run with the very files that docs/gateways/ shows.

mod echo;
mod process;

use std::time::Duration;

use reqwest::{Client, Method};

use crate::server::{Server, Told};
use echo::Echo;
use process::{Process, files, port};

/// A proxy in front of an application, asking a server about each request.
struct Setup {
    server: Server,
    proxy: Process,
    url: String,
    client: Client,
}

/// Whom a request is charged to, beside its address.
const ACME: (&str, &str) = ("x-api-key", "acme");

/// Where an nginx that is not installed keeps what Debian's package keeps below /var/lib.
const NGINX_FOLDERS: &str =
    "\nhttp {\n    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi; access_log off;\n";

impl Setup {
    /// Runs the program that `variable` names with the files of a page. `arguments` come after the templates of
    /// addresses are filled in.
    async fn of(page: &str, variable: &str, arguments: &[&str]) -> Self {
        let shown = files(page);
        let config = &shown.iter().find(|(name, _)| name == "tidegate.yaml").unwrap().1;
        let server = Server::start(config).await;
        let echo = Echo::start().await;
        let own = port();
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in &shown {
            let addresses = [("8080", server.address.port()), ("9000", echo.port), ("8000", own)];
            let text = addresses.iter().fold(text.clone(), |text, (shown, real)| {
                let text = text.replace(&format!("127.0.0.1:{shown}"), &format!("127.0.0.1:{real}"));
                text.replace(&format!("port_value: {shown}"), &format!("port_value: {real}"))
            });
            let text = text.replace("\nhttp {\n", NGINX_FOLDERS);
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let proxy = Process::start(variable, arguments, folder);
        let client = Client::builder().no_proxy().build().unwrap();
        let setup = Setup { server, proxy, url: format!("http://127.0.0.1:{own}"), client };
        setup.until_it_serves().await;
        setup
    }

    async fn until_it_serves(&self) {
        for _ in 0..600 {
            let answer = self.client.get(&self.url).send().await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it does not serve: {}", self.proxy.said());
    }

    async fn ask(&self, method: Method, headers: &[(&str, &str)]) -> Told {
        let request = self.client.request(method, format!("{}/v1/orders?a=b", self.url)).body("hello");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Told::of(request.send().await.unwrap()).await
    }

    /// Four writes of five pass, the fifth waits, and nothing a client says changes that. `tells` whether an
    /// admitted client sees how it stands.
    async fn limits(&self, tells: bool) {
        for left in [15, 10, 5, 0] {
            let told = self.ask(Method::POST, &[ACME]).await;
            assert_eq!(
                (told.status, &*told.body),
                (200, "POST /v1/orders?a=b hello"),
                "{}",
                self.proxy.said()
            );
            let left = format!("\"api\";r={left};t=1");
            assert_eq!(told.header("ratelimit"), tells.then_some(&*left));
        }
        let denied = self.ask(Method::POST, &[ACME]).await;
        assert_eq!((denied.status, denied.header("retry-after")), (429, Some("5")), "{}", self.proxy.said());
        assert_eq!(denied.header("ratelimit"), Some("\"api\";r=0;t=1"));
        for claim in [
            ("x-forwarded-for", "192.0.2.66"),
            ("x-real-ip", "192.0.2.66"),
            ("x-forwarded-uri", "/free"),
            ("x-original-uri", "/free"),
            ("x-original-url", "/free"),
            ("x-envoy-original-path", "/free"),
            ("x-forwarded-method", "GET"),
            ("x-original-method", "GET"),
        ] {
            let told = self.ask(Method::POST, &[ACME, claim]).await;
            assert_ne!(told.status, 200, "{claim:?} is believed");
        }
        assert_eq!(self.ask(Method::POST, &[]).await.status, 403, "nobody to charge");
        assert_eq!(self.ask(Method::GET, &[ACME]).await.status, 200);
        assert_eq!(self.ask(Method::PUT, &[("x-api-key", "other")]).await.status, 200);
        self.server.advance(Duration::from_secs(5));
        assert_eq!(self.ask(Method::POST, &[ACME]).await.status, 200);
        assert_eq!(self.ask(Method::POST, &[ACME]).await.status, 429);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx() {
    let foreground = "daemon off; master_process off; pid nginx.pid; error_log stderr;";
    let arguments = ["-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", foreground];
    Setup::of("nginx.md", "TIDEGATE_NGINX", &arguments).await.limits(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn haproxy() {
    Setup::of("haproxy.md", "TIDEGATE_HAPROXY", &["-db", "-f", "haproxy.cfg"]).await.limits(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traefik() {
    Setup::of("traefik.md", "TIDEGATE_TRAEFIK", &["--configFile=traefik.yaml"]).await.limits(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caddy() {
    let arguments = ["run", "--config", "Caddyfile", "--adapter", "caddyfile"];
    Setup::of("caddy.md", "TIDEGATE_CADDY", &arguments).await.limits(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn envoy() {
    let arguments = ["-c", "envoy.yaml", "--use-dynamic-base-id", "--disable-hot-restart"];
    Setup::of("envoy.md", "TIDEGATE_ENVOY", &arguments).await.limits(true).await;
}
