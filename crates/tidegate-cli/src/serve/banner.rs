//! What a server says when it starts: what it decides by, where it is, and a line to try.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;

use tidegate::{Policy, PolicySet};
use tidegate_server::config::{Severity, headers_in_words, limit_in_words, store_in_words, warnings};
use tidegate_server::{DEFAULT_POLICY, EnvoyRules};

use super::logging::LogFormat;
use super::settings::{ServeArgs, Settings};

/// Limits shown: more do not fit a screen.
const MOST_LIMITS: usize = 12;

/// Where each door is; `None` for one that there is not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doors {
    pub http: SocketAddr,
    pub grpc: Option<SocketAddr>,
    pub resp: Option<SocketAddr>,
}

impl Doors {
    /// A line for each, for programs.
    pub fn lines(&self) -> String {
        let doors = [("http", Some(self.http)), ("grpc", self.grpc), ("resp", self.resp)];
        let line = |(name, at): (&str, Option<SocketAddr>)| at.map(|at| format!("listening {name} {at}\n"));
        doors.into_iter().filter_map(line).collect()
    }
}

/// Tells people on standard error; in a log that programs read, as one event.
pub(super) fn show(args: &ServeArgs, settings: &Settings, doors: Doors) {
    match args.log_format {
        LogFormat::Json => {
            let (version, policies) = (env!("CARGO_PKG_VERSION"), settings.config.policies().len());
            let (grpc, resp) =
                (doors.grpc.map(tracing::field::display), doors.resp.map(tracing::field::display));
            tracing::info!(version, http = %doors.http, grpc, resp, policies, "started");
        }
        // Nothing is lost if nobody can read it.
        LogFormat::Text => drop(io::stderr().write_all(text(settings, doors).as_bytes())),
    }
    let config = settings.config.clone().kept_in(settings.store.kind().clone());
    for warning in warnings(&config).iter().filter(|it| it.severity() == Severity::Warning) {
        tracing::warn!("{}: {}", warning.path(), warning.text());
    }
}

fn text(settings: &Settings, doors: Doors) -> String {
    let mut text = format!("tidegate {}\n\n", env!("CARGO_PKG_VERSION"));
    // Writing to a string cannot fail.
    let _ = match settings.source.is_built_in() {
        true => writeln!(text, "policies built in (--config FILE for your own)"),
        false => writeln!(text, "policies from {} (SIGHUP reads it again)", settings.source),
    };
    let policies = settings.config.policies();
    list(policies, &mut text);
    let admin = match settings.app.has_admin_token() {
        true => "credit, penalize and reset for whoever has the admin token",
        false => "off (--admin-token-file FILE switches credit, penalize and reset on)",
    };
    let url = url(doors.http);
    let place = settings.shared.as_ref().map(|shared| format!("{}, ", shared.address())).unwrap_or_default();
    let _ = writeln!(text, "\nstate    {place}{}", store_in_words(&settings.store));
    let _ = writeln!(text, "headers  {}", headers_in_words(&settings.headers));
    let _ = writeln!(text, "admin    {admin}");
    let _ = writeln!(text, "http     {url}   try it on {url}/docs, watch it on {url}/metrics");
    let rules = settings.config.gateway().rules();
    if let Some(first) = rules.first() {
        let more = match rules.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(text, "proxies  ask {url}/v1/forward-auth/{}{more}", first.name());
    }
    let _ = match doors.grpc {
        None => writeln!(text, "grpc     off (--listen-grpc ADDR lets Envoy ask)"),
        Some(at) => {
            let tls = match settings.tls.as_ref().map(|tls| tls.wants_to_know_clients()) {
                None => "",
                Some(false) => " by TLS",
                Some(true) => " by TLS, for clients with a certificate",
            };
            writeln!(text, "grpc     {at}{tls}   {}", envoy(settings.config.envoy()))
        }
    };
    let _ = match (doors.resp, &settings.resp_password) {
        (None, _) => writeln!(text, "resp     off (--listen-resp ADDR lets Redis clients in)"),
        (Some(at), None) => {
            writeln!(text, "resp     {at}   redis-cli -p {} CL.THROTTLE user:42 15 30 60", at.port())
        }
        (Some(at), Some(_)) => writeln!(text, "resp     {at}   for whoever shows the password"),
    };
    let _ = writeln!(
        text,
        "\ncurl -i {url}/v1/check -H 'content-type: application/json' -d '{}'\n",
        example(policies)
    );
    text
}

/// What Envoy may ask about.
fn envoy(rules: &EnvoyRules) -> String {
    const MOST: usize = 5;
    let mut domains: Vec<&str> = rules.domains().take(MOST).map(|(domain, _)| domain).collect();
    match rules.domains().len() {
        0 => "Envoy's rate limit service, with no limits yet (envoy: in the configuration)".to_owned(),
        count => {
            domains.extend((count > MOST).then_some("..."));
            format!("Envoy's rate limit service for the domain {}", domains.join(", "))
        }
    }
}

fn list(policies: &PolicySet, text: &mut String) {
    let limits = |policy: &Policy| policy.plan().limits().len();
    let mut left = MOST_LIMITS;
    for (index, policy) in policies.iter().enumerate() {
        if limits(policy) > left {
            let more = policies.len() - index;
            let _ = writeln!(text, "  and {more} more: GET /v1/policies lists them");
            return;
        }
        left -= limits(policy);
        let _ = writeln!(text, "  {}", policy.name());
        for (name, limit) in policy.limit_names().zip(policy.plan().limits()) {
            let _ = writeln!(text, "    {name}: {}, {}", limit.algorithm(), limit_in_words(limit));
        }
        let overrides = policy.overrides().count();
        if overrides > 0 {
            let _ = writeln!(text, "    and other figures for {overrides} keys or prefixes");
        }
    }
}

/// The address as a browser on this machine takes it.
fn url(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("http://localhost:{}", address.port()),
        false => format!("http://{address}"),
    }
}

/// A check that names its policy only if it has to.
fn example(policies: &PolicySet) -> String {
    let mut names = policies.iter().map(|policy| policy.name());
    match (names.next(), policies.len() > 1 && policies.get(DEFAULT_POLICY).is_none()) {
        (Some(first), true) => {
            // A shell's quotes cannot hold a quote.
            let name = serde_json::Value::from(first).to_string().replace('\'', "'\\''");
            format!("{{\"policy\": {name}, \"key\": \"user:42\"}}")
        }
        _ => "{\"key\": \"user:42\"}".to_owned(),
    }
}
