//! What the flags, the environment and the file ask for, together.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tidegate::{Limiter, OnFull};
use tidegate_redis::RedisStore;
use tidegate_server::config::ratelimit::RatelimitFiles;
use tidegate_server::config::{
    Config, HeaderFamily, HeaderSettings, Source, StoreKind, StoreSettings, parse_period,
};
use tidegate_server::grpc::{Tls, TlsFiles};
use tidegate_server::resp::Password;
use tidegate_server::{AdminToken, AnyStore, App, Drain};

use super::logging::LogFormat;
use crate::failure::Failure;
use crate::store::{NOT_AS_ONE, asks_several_as_one, builder, judge, place};

const TOKEN_VARIABLE: &str = "TIDEGATE_ADMIN_TOKEN";
const PASSWORD_VARIABLE: &str = "TIDEGATE_RESP_PASSWORD";

/// Far more than a secret may have.
const MOST_SECRET_BYTES: u64 = 64 << 10;

const HELP: &str = "\
Examples:
  tidegate serve                                      one policy: 100 at once, then 10 a second
  tidegate serve --config tidegate.yaml --listen-http 0.0.0.0:8080
  tidegate serve --envoy-config /data/ratelimit/config   in place of envoyproxy/ratelimit
  curl -i localhost:8080/v1/check -H 'content-type: application/json' -d '{\"key\": \"user:42\"}'
  tidegate serve --store redis://cache:6379           one limit over all instances
  redis-cli -p 6380 CL.THROTTLE user:42 15 30 60

A flag goes before its environment variable, that before the file. The admin token may also be
given in TIDEGATE_ADMIN_TOKEN, the RESP password in TIDEGATE_RESP_PASSWORD. Signals: SIGHUP reads
the file again, SIGTERM and SIGINT drain, a second one ends at once. The addresses bound are printed
to standard output: `listening http 127.0.0.1:8080`, and the same of grpc and resp.

Exit codes:
  0  it was told to stop, and drained
  1  an address cannot be listened on, the store does not answer, or a second signal cut the drain short
  2  wrong usage, or a configuration that is wrong or cannot be read";

/// Decide checks over HTTP, gRPC and RESP
#[derive(Debug, Clone, Args)]
#[command(after_long_help = HELP)]
pub struct ServeArgs {
    /// The configuration file; without one there is a policy `default`, 100 at once, then 10 a second
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CONFIG")]
    pub config: Option<PathBuf>,
    /// Files written for envoyproxy/ratelimit, or the folder they are in, as they are
    #[arg(long, value_name = "DIR", env = "TIDEGATE_ENVOY_CONFIG")]
    pub envoy_config: Option<PathBuf>,
    /// Let several of these files have one domain, as MERGE_DOMAIN_CONFIG does
    #[arg(long, env = "TIDEGATE_ENVOY_MERGE_DOMAINS")]
    pub envoy_merge_domains: bool,
    /// Where state is kept: `memory`, or the address of a Redis or Valkey that several instances share; the file's choice
    /// unless given
    #[arg(long, value_name = "STORE", env = "TIDEGATE_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// Where to listen for HTTP; port 0 takes any that is free
    #[arg(long, value_name = "ADDR", env = "TIDEGATE_LISTEN_HTTP", default_value = "127.0.0.1:8080")]
    pub listen_http: String,
    /// Where to listen for Envoy's rate limit service; port 0 takes any that is free, `off` does not listen
    #[arg(long, value_name = "ADDR", env = "TIDEGATE_LISTEN_GRPC", default_value = "127.0.0.1:8081")]
    pub listen_grpc: String,
    /// A PEM file with the certificate that the gRPC door shows, and those that vouch for it
    #[arg(long, value_name = "FILE", env = "TIDEGATE_GRPC_TLS_CERT", requires = "grpc_tls_key")]
    pub grpc_tls_cert: Option<PathBuf>,
    /// A PEM file with its private key
    #[arg(long, value_name = "FILE", env = "TIDEGATE_GRPC_TLS_KEY", requires = "grpc_tls_cert")]
    pub grpc_tls_key: Option<PathBuf>,
    /// A PEM file with the certificates that vouch for clients of the gRPC door, which then have to show one
    #[arg(long, value_name = "FILE", env = "TIDEGATE_GRPC_TLS_CLIENT_CA", requires = "grpc_tls_cert")]
    pub grpc_tls_client_ca: Option<PathBuf>,
    /// Where to listen for Redis clients; port 0 takes any that is free, `off` does not listen
    #[arg(long, value_name = "ADDR", env = "TIDEGATE_LISTEN_RESP", default_value = "127.0.0.1:6380")]
    pub listen_resp: String,
    /// A file with the password that Redis clients have to show
    #[arg(long, value_name = "FILE", env = "TIDEGATE_RESP_PASSWORD_FILE")]
    pub resp_password_file: Option<PathBuf>,
    /// A file with the token that switches credit, penalize and reset on
    #[arg(long, value_name = "FILE", env = "TIDEGATE_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// Which header fields tell clients where they stand; the file's choice unless given
    #[arg(long, value_enum, value_name = "FAMILY", env = "TIDEGATE_HEADERS")]
    pub headers: Option<Headers>,
    /// Hold at most so many keys at once; the file's choice unless given
    #[arg(long, value_name = "N", env = "TIDEGATE_MAX_KEYS")]
    pub max_keys: Option<NonZeroU64>,
    /// What happens to a new key when max-keys are held; the file's choice unless given
    #[arg(long, value_enum, value_name = "WHAT", env = "TIDEGATE_ON_FULL")]
    pub on_full: Option<Full>,
    /// How long requests under way may take once the server is told to stop
    #[arg(long, value_name = "TIME", env = "TIDEGATE_DRAIN_TIMEOUT", default_value = "10s", value_parser = time)]
    pub drain_timeout: Duration,
    /// How long /readyz says no before the server takes no more connections, for load balancers to notice
    #[arg(long, value_name = "TIME", env = "TIDEGATE_DRAIN_NOTICE", value_parser = time)]
    pub drain_notice: Option<Duration>,
    /// How the log on standard error is written
    #[arg(long, value_enum, value_name = "FORMAT", env = "TIDEGATE_LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// What is logged: error, warn, info, debug, trace, or a list of TARGET=LEVEL
    #[arg(long, value_name = "FILTER", env = "TIDEGATE_LOG", default_value = "info")]
    pub log: String,
}

/// Families of header fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Headers {
    /// X-RateLimit-* and those of the IETF draft
    Both,
    /// X-RateLimit-Limit, -Remaining and -Reset
    #[value(name = "x-ratelimit")]
    XRateLimit,
    /// RateLimit-Policy and RateLimit
    Ietf,
    /// Neither; Retry-After is sent all the same
    None,
}

/// What happens when no more keys may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Full {
    /// The key soonest as new of a few makes room
    Shed,
    /// The new key is refused as overloaded
    #[value(name = "refuse_new")]
    RefuseNew,
}

/// Everything a server is built from.
pub(super) struct Settings {
    pub app: App,
    pub resp_password: Option<Password>,
    /// TLS for gRPC, if it is wished for.
    pub tls: Option<Arc<Tls>>,
    pub config: Config,
    pub store: StoreSettings,
    /// The store that several instances share, where state is kept in one.
    pub shared: Option<RedisStore>,
    pub headers: HeaderSettings,
    pub drain: Drain,
    /// The files to read again.
    pub source: Source,
    /// The family asked for, whatever the file says.
    pub family: Option<HeaderFamily>,
}

impl Settings {
    /// Reads what `args` name, and checks it.
    pub async fn of(args: &ServeArgs) -> Result<Self, Failure> {
        let files = args.envoy_config.as_ref().map(RatelimitFiles::at);
        let files = files.map(|files| files.merged(args.envoy_merge_domains));
        let source = Source::file(args.config.clone()).with_ratelimit(files).with_addresses(judge);
        let config = source.load().map_err(Failure::usage)?;
        let store = store(args, config.store())?;
        let shared = shared(&store, &config).await?;
        let family = args.headers.map(HeaderFamily::from);
        let limiter = Limiter::builder(config.policies().clone());
        let limiter = match &shared {
            Some(shared) => limiter.store(AnyStore::elsewhere(shared.clone())).clock(shared.clock()).build(),
            None => limiter.store(AnyStore::from(store.memory_store())).build(),
        };
        let headers = config.headers();
        let headers = HeaderSettings { family: family.unwrap_or(headers.family), ..headers };
        let mut app = App::new(limiter)
            .with_headers(headers)
            .with_gateway(config.gateway().clone())
            .with_envoy(config.envoy().clone());
        let token = ("--admin-token-file", args.admin_token_file.as_deref(), TOKEN_VARIABLE);
        if let Some(token) = secret(token, |text| AdminToken::new(text).map_err(|error| error.to_string()))? {
            app = app.with_admin_token(token);
        }
        let password = ("--resp-password-file", args.resp_password_file.as_deref(), PASSWORD_VARIABLE);
        // A file ends with a line end that is nobody's password.
        let resp_password = secret(password, |text| {
            Password::new(text.trim_end_matches(['\r', '\n'])).map_err(|error| error.to_string())
        })?;
        let tls = args.tls_files().map(Tls::load).transpose();
        let tls = tls.map_err(|error| Failure::usage(format_args!("TLS: {error}")))?.map(Arc::new);
        let drain = Drain { notice: args.drain_notice.unwrap_or_default(), grace: args.drain_timeout };
        Ok(Settings { app, resp_password, tls, config, store, shared, headers, drain, source, family })
    }
}

impl ServeArgs {
    /// The files of TLS, if they are given; clap sees to it that both are.
    fn tls_files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            certificate: self.grpc_tls_cert.clone()?,
            key: self.grpc_tls_key.clone()?,
            client_ca: self.grpc_tls_client_ca.clone(),
        })
    }
}

/// Where state is kept: what the file says, unless a flag says otherwise.
fn store(args: &ServeArgs, settings: &StoreSettings) -> Result<StoreSettings, Failure> {
    let kind = place(args.store.as_deref(), settings)?;
    let mut store = settings.clone().with_kind(kind);
    if let Some(keys) = args.max_keys {
        store = store.with_max_keys(keys);
    }
    if let Some(on_full) = args.on_full {
        store = store.with_on_full(on_full.into());
    }
    Ok(store)
}

/// Opens the store that several instances share, where state is kept in one.
async fn shared(settings: &StoreSettings, config: &Config) -> Result<Option<RedisStore>, Failure> {
    let StoreKind::Shared(address) = settings.kind() else { return Ok(None) };
    let store = builder(address, settings.shared())?.open().await;
    let store =
        store.map_err(|error| Failure::run(format_args!("store {}: {}", error.store, error.reason)))?;
    suits(&store, config).map_err(Failure::usage)?;
    Ok(Some(store))
}

/// Whether the store can do what the configuration asks for; if not, why not.
pub(super) fn suits(store: &RedisStore, config: &Config) -> Result<(), String> {
    match store.is_spread() && asks_several_as_one(config) {
        false => Ok(()),
        true => Err(NOT_AS_ONE.to_owned()),
    }
}

/// A secret in the file that a flag names, or in a variable. Not in the flag: every user of the machine can read
/// those.
fn secret<T>(
    (flag, file, variable): (&str, Option<&Path>, &str),
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, Failure> {
    let (from, text) = match (file, env::var(variable)) {
        (None, Err(env::VarError::NotPresent)) => return Ok(None),
        (None, Ok(text)) => (variable.to_owned(), text),
        (None, Err(error)) => return Err(Failure::usage(format_args!("{variable}: {error}"))),
        (Some(file), Err(env::VarError::NotPresent)) => {
            let from = format!("{flag} {}", file.display());
            let text = short_text(file).map_err(|error| Failure::usage(format_args!("{from}: {error}")))?;
            (from, text)
        }
        (Some(_), _) => {
            let reason = format!("{flag} and {variable} are both given (give one)");
            return Err(Failure::usage(reason));
        }
    };
    read(&text).map(Some).map_err(|error| Failure::usage(format_args!("{from}: {error}")))
}

/// The text of a file that is meant to hold a line. Of any other no more is read than shows that.
fn short_text(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MOST_SECRET_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_SECRET_BYTES {
        return Err(io::Error::other("larger than 64 KiB (write one line)"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 (write one line of visible ASCII)"))
}

fn time(text: &str) -> Result<Duration, String> {
    let period = parse_period(text).map_err(|fault| fault.to_string())?;
    Ok(Duration::from_micros(period.as_micros()))
}

impl From<Headers> for HeaderFamily {
    fn from(headers: Headers) -> Self {
        match headers {
            Headers::Both => HeaderFamily::Both,
            Headers::XRateLimit => HeaderFamily::XRateLimit,
            Headers::Ietf => HeaderFamily::Ietf,
            Headers::None => HeaderFamily::None,
        }
    }
}

impl From<Full> for OnFull {
    fn from(full: Full) -> Self {
        match full {
            Full::Shed => OnFull::Shed,
            Full::RefuseNew => OnFull::RefuseNew,
        }
    }
}
