//! Decisions in Redis: Tidegate's script beside the token-bucket script that everybody runs, on the same server, in one
//! run: the server on one core, the load on the other.
//!
//! `cargo xtask bench redis [--quick]`

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tidegate::store::{Adjustment, Check, Grouping, Store, StoreError, StoreErrorKind};
use tidegate::{
    ActivePolicy, Cost, Decision, Limit, Limiter, Period, PlanId, Policy, PolicySet, Rate, Timestamp, Units,
};
use tidegate_benches::wire::{Load, Outcome, encode};
use tidegate_redis::{RedisStore, WireCall};
use tidegate_testkit_servers::{Program, Reply, Server};

/// Measures decisions in Redis beside the classic token-bucket script.
#[derive(Parser)]
struct Arguments {
    /// A tenth of the time: enough to see that it runs.
    #[arg(long)]
    quick: bool,
    /// Only rows whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

/// HMGET, HMSET, EXPIRE: capacity, rate per second, now in seconds, cost.
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

/// Reads and writes as many records as its keys name, and decides nothing: what no script for them can do without.
const BARE: &str = r"
redis.call('MGET', unpack(KEYS))
for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[1], 'PX', '11000') end
return 1";

/// Times each row is measured, in turn with the others.
const ROUNDS: usize = 5;
const KEYS: u64 = 100_000;
const CONNECTIONS: usize = 50;
const NOW_US: u64 = 1_800_000_000_000_000;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    on_a_core_of_its_own()?;
    let server = Server::start(Program::Redis7);
    let pid = server.info("process_id").context("the server has no process")?;
    let pinned = Command::new("taskset").args(["-cp", "0", &pid]).output().context("taskset is not here")?;
    if !pinned.status.success() {
        bail!("taskset: {}", String::from_utf8_lossy(&pinned.stderr));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let bench =
        Bench { server, runtime, lasts: Duration::from_millis(if arguments.quick { 150 } else { 1000 }) };
    bench.run(&arguments.only)?;
    Ok(())
}

/// Starts this program again on the second core: the server has the first.
fn on_a_core_of_its_own() -> Result<()> {
    const TOLD: &str = "TIDEGATE_BENCH_PINNED";
    if std::env::var_os(TOLD).is_some() {
        return Ok(());
    }
    let status = Command::new("taskset")
        .args(["-c", "1"])
        .arg(std::env::current_exe()?)
        .args(std::env::args().skip(1))
        .env(TOLD, "1")
        .status()
        .context("taskset is not here (it comes with util-linux)")?;
    std::process::exit(status.code().unwrap_or(1));
}

struct Bench {
    server: Server,
    runtime: tokio::runtime::Runtime,
    lasts: Duration,
}

/// What is measured: commands of so many checks each.
struct Row {
    name: String,
    batch: usize,
    commands: Vec<Vec<u8>>,
}

/// The best of a row's rounds.
#[derive(Clone, Copy)]
struct Best {
    checks: f64,
    p99_us: f64,
    cpu_us: f64,
}

impl Bench {
    fn run(&self, only: &str) -> Result<()> {
        println!(
            "{:<44} {:>9} {:>8} {:>9} {:>10} {:>10}",
            "", "checks/s", "ratio", "p99 us", "CPU us", "CPU ratio"
        );
        let rows = self.rows(only)?;
        for depth in [1, 16] {
            // Whatever else the machine does falls on all alike, and the best of each is compared.
            let mut best = vec![Best { checks: 0.0, p99_us: f64::MAX, cpu_us: f64::MAX }; rows.len()];
            for _ in 0..ROUNDS {
                for (row, best) in rows.iter().zip(&mut best) {
                    self.measure(row, depth, best)?;
                }
            }
            for (row, of) in rows.iter().zip(&best) {
                let name = format!("{}, depth {depth}", row.name);
                let Best { checks, p99_us, cpu_us } = of;
                let (ratio, cpu_ratio) = (checks / best[0].checks, best[0].cpu_us / cpu_us);
                println!(
                    "{name:<44} {checks:>9.0} {ratio:>7.2}x {p99_us:>9.0} {cpu_us:>10.2} {cpu_ratio:>9.2}x"
                );
            }
        }
        Ok(())
    }

    /// The classic script first, which all are compared with.
    fn rows(&self, only: &str) -> Result<Vec<Row>> {
        let recorder = Recorder::new(&self.runtime, &self.server)?;
        let row = |name: &str, batch, commands| Row { name: name.to_owned(), batch, commands };
        let mut rows = vec![row("classic script", 1, classic(&self.server))];
        for (name, batch) in [("a read and a write, none decided", 1), ("32 of them a call", 32)] {
            rows.push(row(name, batch, bare(&self.server, batch)));
        }
        for (name, policy, batch) in [
            ("admitting", "open", 1),
            ("denying", "shut", 1),
            ("window counter, admitting", "counter", 1),
            ("four limits, admitting", "four", 1),
            ("8 checks a call", "open", 8),
            ("32 checks a call", "open", 32),
            ("32 checks of one key a call", "hot", 32),
        ] {
            if name.contains(only) {
                rows.push(row(name, batch, recorder.commands(&self.server, policy, 1, batch)?));
            }
        }
        Ok(rows)
    }

    /// One round of one row.
    fn measure(&self, row: &Row, depth: usize, best: &mut Best) -> Result<()> {
        let load = Load { connections: CONNECTIONS, depth, lasts: self.lasts };
        let address: SocketAddr = self.server.address();
        let local = tokio::task::LocalSet::new();
        let warm = Load { lasts: self.lasts / 4, ..load };
        self.runtime.block_on(local.run_until(warm.run(address, &row.commands)))?;
        let before = self.cpu()?;
        let outcome: Outcome = self.runtime.block_on(local.run_until(load.run(address, &row.commands)))?;
        let cpu_us = (self.cpu()? - before) * 1e6 / (outcome.answered as f64 * row.batch as f64);
        best.checks = best.checks.max(outcome.per_second * row.batch as f64);
        best.p99_us = best.p99_us.min(outcome.p99_us);
        best.cpu_us = best.cpu_us.min(cpu_us);
        Ok(())
    }

    fn cpu(&self) -> Result<f64> {
        let seconds =
            |field| -> Result<f64> { Ok(self.server.info(field).context("no CPU time in INFO")?.parse()?) };
        Ok(seconds("used_cpu_user")? + seconds("used_cpu_sys")?)
    }
}

fn load_script(server: &Server, source: &str) -> String {
    match server.command(&["SCRIPT", "LOAD", source]) {
        Reply::Text(sha) => sha,
        other => panic!("SCRIPT LOAD was answered {other:?}"),
    }
}

fn classic(server: &Server) -> Vec<Vec<u8>> {
    let sha = load_script(server, CLASSIC);
    let command = |key: u64| {
        let key = format!("tb:user:{key}");
        encode(&["EVALSHA", &sha, "1", &key, "1000000", "0.1", "1800000000.123456", "1"])
    };
    shuffled().map(command).collect()
}

/// Of records as long as a bucket's.
fn bare(server: &Server, batch: usize) -> Vec<Vec<u8>> {
    let sha = load_script(server, BARE);
    let keys: Vec<String> = shuffled().map(|key| format!("bare:{{kuser%3a{key}}}:open")).collect();
    let command = |keys: &[String]| {
        let count = keys.len().to_string();
        let words = ["EVALSHA", &sha, &count].into_iter().chain(keys.iter().map(String::as_str));
        encode(&words.chain(["a record of so many bytes as a bucket has."]).collect::<Vec<_>>())
    };
    keys.chunks(batch).map(command).collect()
}

/// Every key once, in an order that no cache likes.
fn shuffled() -> impl Iterator<Item = u64> {
    (0..KEYS).map(|index| index * 48_271 % KEYS)
}

/// A store that writes down what would be sent instead of sending it.
struct Recorder {
    limiter: Limiter<Recording>,
}

#[derive(Clone)]
struct Recording {
    store: RedisStore,
    call: Arc<Mutex<Option<WireCall>>>,
}

impl Recorder {
    fn new(runtime: &tokio::runtime::Runtime, server: &Server) -> Result<Self> {
        let store = runtime.block_on(RedisStore::builder(server.url()).open())?;
        let recording = Recording { store, call: Arc::default() };
        let million = Units::new(1_000_000)?;
        // As slow as the classic script's: no record expires before it is asked for again.
        let open = Limit::token_bucket(million, Rate::new(1, Period::from_secs(10)?));
        let window = |period| Limit::fixed_window(Units::MAX, period);
        let policies = [
            Policy::single("open", open)?,
            Policy::single("hot", Limit::token_bucket(Units::MAX, Rate::per_second(100_000)))?,
            // Admits once, and then there is a record to refuse by.
            Policy::single("shut", Limit::token_bucket(1, Rate::new(1, Period::DAY)))?,
            Policy::single("counter", Limit::sliding_window_counter(Units::MAX, Period::MINUTE))?,
            Policy::builder("four")
                .limit("bucket", open)
                .limit("hour", window(Period::HOUR))
                .limit("day", window(Period::DAY))
                .limit("counter", Limit::sliding_window_counter(Units::MAX, Period::MINUTE))
                .build()?,
        ];
        let set = PolicySet::new(policies)?;
        let limiter = Limiter::builder(set).store(recording).build();
        Ok(Recorder { limiter })
    }

    fn commands(&self, server: &Server, policy: &str, cost: u64, batch: usize) -> Result<Vec<Vec<u8>>> {
        let handle = self.limiter.policy(policy)?;
        let cost = Cost::new(cost)?;
        let keys: Vec<u64> = shuffled().collect();
        let mut commands = Vec::new();
        let mut sha = None;
        for (index, keys) in keys.chunks(batch).enumerate() {
            let named = |key: &u64| match policy {
                "hot" => format!("user:{index}"),
                _ => format!("user:{key}"),
            };
            let names: Vec<String> = keys.iter().map(named).collect();
            handle.check_batch_at(&names, cost, Timestamp::from_micros(NOW_US + index as u64)?);
            let call = self.limiter.store().take().context("no call was recorded")?;
            let sha = sha.get_or_insert_with(|| load_script(server, call.script));
            let mut words = vec![b"EVALSHA".to_vec(), sha.clone().into_bytes()];
            words.push(call.keys.len().to_string().into_bytes());
            words.extend(call.keys);
            words.extend(call.args);
            commands.push(encode(&words));
        }
        Ok(commands)
    }
}

impl Recording {
    fn take(&self) -> Option<WireCall> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, now: Timestamp, checks: &[Check<'_>]) {
        let call = self.store.wire(now, checks);
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
    }
}

/// Decides nothing: what would be sent is all that is wanted.
impl Store for Recording {
    type Answer<T: Send + 'static> = ();
    type Answers = ();

    fn sweep(&self, now: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId> {
        self.store.sweep(now, policies)
    }

    fn check_one(&self, now: Timestamp, check: Check<'_>) {
        self.put(now, &[check]);
    }

    fn check_each(&self, now: Timestamp, checks: &[Check<'_>]) {
        self.put(now, checks);
    }

    fn check_group(&self, now: Timestamp, checks: &[Check<'_>], _: Grouping) {
        self.put(now, checks);
    }

    fn adjust(&self, _: Timestamp, _: &Arc<ActivePolicy>, _: &[u8], _: Adjustment) {}

    fn snapshot(&self, _: Timestamp, _: &Arc<ActivePolicy>, _: &[u8]) {}

    fn ready<T: Send + 'static>(_: T) {}

    fn map<T: Send + 'static, U: Send + 'static>((): (), _: impl FnOnce(T) -> U + Send + 'static) {}

    async fn settled<T: Send + 'static>((): ()) -> Result<T, StoreError> {
        Err(StoreError::new(StoreErrorKind::Unfit, "recording", "it decides nothing"))
    }

    fn each_ready(_: Vec<Decision>) {}

    fn amid(_: Vec<Option<Decision>>, (): ()) {}

    async fn each_settled((): ()) -> Vec<Result<Decision, StoreError>> {
        Vec::new()
    }
}
