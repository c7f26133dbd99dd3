//! Who is asked, and what: Tidegate's doors and those of its peers, the same question in each one's words.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::ask::{Load, h2load, program, redis_benchmark, wrk};
use super::pinned::{Pinned, free_address};
use crate::wire::encode;

/// One server at one door.
pub struct Lane {
    /// What the table calls it.
    pub name: &'static str,
    /// Where the time goes.
    pub server: Rc<Pinned>,
    ask: Ask,
}

type Ask = Box<dyn Fn(u32, u64) -> Result<Load>>;

impl Lane {
    /// Puts load on it, `depth` requests at once on each connection; the longer the more `effort`.
    ///
    /// # Errors
    /// Not every request was answered.
    pub fn ask(&self, depth: u32, effort: u64) -> Result<Load> {
        (self.ask)(depth, effort).with_context(|| self.name)
    }
}

/// Lanes that are compared.
pub struct Door {
    /// What the table calls it.
    pub title: &'static str,
    /// Requests at once on each connection.
    pub depths: &'static [u32],
    /// The first so many lanes are what the others are compared with.
    pub peers: usize,
    /// Those that are compared.
    pub lanes: Vec<Lane>,
}

/// Requests of one round on each connection's place, for each unit of effort.
const REQUESTS: u64 = 30_000;
/// So much that every check is admitted: nobody is compared by how fast it refuses.
const PLENTY: &str = "1000000000";
const POLICY: &str = "
policies: {default: {limits: [{name: burst, algorithm: token_bucket, capacity: 1000000000, refill: 1/s}]}}
envoy: {edge: [{key: user, policy: default}]}
";
/// What everybody runs in Redis.
const CLASSIC: &str = r"
local capacity, rate, now, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'last')
local tokens, last = tonumber(kept[1]) or capacity, tonumber(kept[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - last) * rate)
local allowed = 0
if tokens >= cost then tokens = tokens - cost; allowed = 1 end
redis.call('HMSET', KEYS[1], 'tokens', tostring(tokens), 'last', tostring(now))
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate) + 1)
return {allowed, tostring(tokens)}";

/// All servers, started; and the files that they and their clients read.
pub struct Servers {
    folder: TempDir,
    redis: (Rc<Pinned>, SocketAddr),
    tidegate: Addressed,
    throttlecrab: Option<Addressed>,
}

/// A server of three doors.
struct Addressed {
    server: Rc<Pinned>,
    http: SocketAddr,
    grpc: SocketAddr,
    resp: SocketAddr,
}

impl Servers {
    /// Starts them all. One that is not asked takes no time.
    ///
    /// # Errors
    /// One does not start.
    pub fn start() -> Result<Self> {
        let folder = tempfile::tempdir().context("no folder for files")?;
        let file = folder.path().join("tidegate.yaml");
        fs::write(&file, POLICY)?;
        let redis = free_address()?;
        let port = redis.port().to_string();
        let server = program("TIDEGATE_REDIS_SERVER")?.display().to_string();
        let words = [&server, "--port", &port, "--save", "", "--appendonly", "no"];
        let redis = (Rc::new(Pinned::start(&words, &[redis])?), redis);
        let throttlecrab = std::env::var_os("TIDEGATE_THROTTLECRAB").map(PathBuf::from);
        let throttlecrab = throttlecrab.map(|program| throttlecrab_of(&program)).transpose()?;
        Ok(Servers { tidegate: tidegate_of(&file)?, folder, redis, throttlecrab })
    }

    /// RESP: beside Redis, and what is run in Redis.
    ///
    /// # Errors
    /// A command is answered with an error.
    pub fn resp(&self) -> Result<Door> {
        let (redis, at) = &self.redis;
        redis_benchmark(*at, 16, 500_000, &words(["SET", "key:__rand_int__", "sixteen bytes..."]))?;
        let sha = call(*at, &["SCRIPT", "LOAD", CLASSIC])?;
        let sha = sha.lines().nth(1).context("no digest")?;
        let script = ["EVALSHA", sha, "1", "tb:__rand_int__", PLENTY, "1", "1800000000.5", "1"];
        let mut lanes = vec![
            commands("Redis 7, GET", redis, *at, words(["GET", "key:__rand_int__"]))?,
            commands("Redis 7, the classic script", redis, *at, words(script))?,
        ];
        if let Some(Addressed { server, resp, .. }) = &self.throttlecrab {
            let throttle = ["THROTTLE", "key:__rand_int__", PLENTY, "1", "1"];
            lanes.push(commands("throttlecrab, THROTTLE", server, *resp, words(throttle))?);
        }
        let Addressed { server, resp, .. } = &self.tidegate;
        let check = words(["TG.CHECK", "default", "key:__rand_int__"]);
        lanes.push(commands("tidegate, TG.CHECK", server, *resp, check)?);
        let throttle = words(["CL.THROTTLE", "key:__rand_int__", PLENTY, "1", "1"]);
        lanes.push(commands("tidegate, CL.THROTTLE", server, *resp, throttle)?);
        Ok(Door { title: "RESP", depths: &[1, 16], peers: 2, lanes })
    }

    /// HTTP/1.1, the same key again and again: the client has little to do.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn http(&self) -> Result<Door> {
        let mut lanes = Vec::new();
        if let Some(Addressed { server, http, .. }) = &self.throttlecrab {
            let body = format!(
                r#"{{"key":"user:42","max_burst":{PLENTY},"count_per_period":1,"period":1,"quantity":1}}"#
            );
            lanes.push(self.posts("throttlecrab", server, *http, ("/throttle", &body))?);
        }
        let Addressed { server, http, .. } = &self.tidegate;
        lanes.push(self.posts("tidegate", server, *http, ("/v1/check", r#"{"key":"user:42","cost":1}"#))?);
        Ok(Door { title: "HTTP", depths: &[1], peers: 1, lanes })
    }

    /// gRPC, the same key again and again.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn grpc(&self) -> Result<Door> {
        let mut lanes = Vec::new();
        if let Some(Addressed { server, grpc, .. }) = &self.throttlecrab {
            let message =
                [text(1, "user:42"), number(2, 1_000_000_000), number(3, 1), number(4, 1), number(5, 1)];
            let path = "/throttlecrab.RateLimiter/Throttle";
            lanes.push(self.calls("throttlecrab", server, *grpc, (path, &message.concat()))?);
        }
        let entry = [text(1, "user"), text(2, "user:42")].concat();
        let message = [text(1, "edge"), bytes(2, &bytes(1, &entry))].concat();
        let Addressed { server, grpc, .. } = &self.tidegate;
        let path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
        lanes.push(self.calls("tidegate", server, *grpc, (path, &message))?);
        Ok(Door { title: "gRPC", depths: &[1, 16], peers: 1, lanes })
    }

    fn posts(
        &self,
        name: &'static str,
        server: &Rc<Pinned>,
        at: SocketAddr,
        (path, body): (&str, &str),
    ) -> Result<Lane> {
        let script = self.folder.path().join(format!("{name}.lua"));
        let lines = format!(
            "wrk.method = \"POST\"\nwrk.body = '{body}'\nwrk.headers[\"content-type\"] = \"application/json\"\n"
        );
        fs::write(&script, lines)?;
        let url = format!("http://{at}{path}");
        // Ten units of effort are three seconds.
        let ask = move |_: u32, effort: u64| wrk(&url, (effort * 3 / 10).max(1), &script);
        Ok(Lane { name, server: Rc::clone(server), ask: Box::new(ask) })
    }

    fn calls(
        &self,
        name: &'static str,
        server: &Rc<Pinned>,
        at: SocketAddr,
        (path, message): (&str, &[u8]),
    ) -> Result<Lane> {
        let file = self.folder.path().join(format!("{name}.message"));
        // Not compressed, and its length.
        let length = u32::try_from(message.len()).context("a short message")?.to_be_bytes();
        fs::write(&file, [&[0], &length[..], message].concat())?;
        let url = format!("http://{at}{path}");
        let ask = move |depth: u32, effort: u64| {
            h2load(&url, depth, REQUESTS / 2 * effort * u64::from(depth).min(2), &file)
        };
        Ok(Lane { name, server: Rc::clone(server), ask: Box::new(ask) })
    }
}

fn tidegate_of(config: &Path) -> Result<Addressed> {
    let [http, grpc, resp] = [free_address()?, free_address()?, free_address()?];
    let program = program("TIDEGATE_PROGRAM")?.display().to_string();
    let mut words = vec![program, "serve".to_owned(), "--config".to_owned(), config.display().to_string()];
    for (flag, address) in [("--listen-http", http), ("--listen-grpc", grpc), ("--listen-resp", resp)] {
        words.extend([flag.to_owned(), address.to_string()]);
    }
    let server = Rc::new(Pinned::start(&words, &[http, grpc, resp])?);
    Ok(Addressed { server, http, grpc, resp })
}

fn throttlecrab_of(program: &Path) -> Result<Addressed> {
    let [http, grpc, resp] = [free_address()?, free_address()?, free_address()?];
    let mut words = vec![program.display().to_string(), "--store-capacity".to_owned(), "1000000".to_owned()];
    for (door, address) in [("http", http), ("grpc", grpc), ("redis", resp)] {
        words.push(format!("--{door}"));
        words.extend([format!("--{door}-host"), address.ip().to_string()]);
        words.extend([format!("--{door}-port"), address.port().to_string()]);
    }
    let server = Rc::new(Pinned::start(&words, &[http, grpc, resp])?);
    Ok(Addressed { server, http, grpc, resp })
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).into()
}

/// A lane of one command, which is tried once.
fn commands(name: &'static str, server: &Rc<Pinned>, at: SocketAddr, words: Vec<String>) -> Result<Lane> {
    call(at, &words).with_context(|| name)?;
    let ask = move |depth: u32, effort: u64| {
        redis_benchmark(at, depth, REQUESTS * effort * u64::from(depth).min(8), &words)
    };
    Ok(Lane { name, server: Rc::clone(server), ask: Box::new(ask) })
}

/// Sends one command, and returns the beginning of its reply, which is no error.
fn call<T: AsRef<[u8]>>(at: SocketAddr, words: &[T]) -> Result<String> {
    let mut stream = TcpStream::connect(at)?;
    stream.write_all(&encode(words))?;
    let mut reply = [0; 256];
    let length = stream.read(&mut reply)?;
    let reply = String::from_utf8_lossy(&reply[..length]).into_owned();
    if reply.is_empty() || reply.starts_with('-') {
        bail!("it answers {reply:?}");
    }
    Ok(reply)
}

/// Protobuf by hand: a field of bytes, shorter than 128.
fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2, value.len() as u8];
    out.extend_from_slice(value);
    out
}

fn text(field: u8, value: &str) -> Vec<u8> {
    bytes(field, value.as_bytes())
}

fn number(field: u8, mut value: u64) -> Vec<u8> {
    let mut out = vec![field << 3];
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}
