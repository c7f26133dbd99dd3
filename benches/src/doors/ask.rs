//! redis-benchmark, wrk and h2load: how they are told what to ask, and what they tell.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::pinned::CLIENTS_CORE;

/// Connections of every load.
pub const CONNECTIONS: &str = "50";

/// What came of a load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Requests answered a second.
    pub per_second: f64,
    /// 99 of 100 were answered within so many milliseconds, where that is told.
    pub p99_ms: Option<f64>,
    /// Requests answered.
    pub answered: f64,
}

/// The program that a variable names: `cargo xtask bench` sets it.
pub fn program(variable: &str) -> Result<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .with_context(|| format!("{variable} is not set: run `cargo xtask bench doors`"))
}

/// Commands over RESP, `depth` of them on their way at once on each connection. In a word `__rand_int__` is one of
/// a hundred thousand numbers.
pub fn redis_benchmark(server: SocketAddr, depth: u32, requests: u64, words: &[String]) -> Result<Load> {
    let mut command = client(&program("TIDEGATE_REDIS_BENCHMARK")?);
    command.args(["-h", &server.ip().to_string(), "-p", &server.port().to_string(), "-c", CONNECTIONS]);
    command.args(["-P", &depth.to_string(), "-n", &requests.to_string(), "-r", "100000", "--csv"]);
    let told = output(command.args(words))?;
    let row = told.lines().last().and_then(|line| line.strip_suffix('"')).unwrap_or_default();
    // The first field is the command, quotes and commas and all.
    let figures: Vec<f64> = row.rsplit("\",\"").take(7).filter_map(|figure| figure.parse().ok()).collect();
    let [_, p99, _, _, _, _, per_second] = figures[..] else {
        bail!("redis-benchmark told no figures: {told}");
    };
    Ok(Load { per_second, p99_ms: Some(p99), answered: requests as f64 })
}

/// POSTs over HTTP/1.1, as a script says.
pub fn wrk(url: &str, seconds: u64, script: &Path) -> Result<Load> {
    let mut command = client(&program("TIDEGATE_WRK")?);
    command.args(["-t1", "-c", CONNECTIONS, "-d", &format!("{seconds}s"), "--latency", "-s"]);
    let told = output(command.arg(script).arg(url))?;
    if told.contains("Non-2xx") || told.contains("Socket errors") {
        bail!("not every request was answered: {told}");
    }
    let field = |name: &str| told.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
    let per_second = field("Requests/sec:").and_then(|figure| figure.parse().ok());
    let answered = told.lines().find_map(|line| line.trim().split_once(" requests in "));
    let answered = answered.and_then(|(count, _)| count.parse().ok());
    let (Some(per_second), Some(answered)) = (per_second, answered) else {
        bail!("wrk told no figures: {told}");
    };
    Ok(Load { per_second, p99_ms: field("99%").and_then(millis), answered })
}

/// Calls over gRPC, `depth` of them at once on each connection; `body` is a file with the message in its frame.
pub fn h2load(url: &str, depth: u32, requests: u64, body: &Path) -> Result<Load> {
    let mut command = client(&program("TIDEGATE_H2LOAD")?);
    command.args(["-n", &requests.to_string(), "-c", CONNECTIONS, "-m", &depth.to_string(), "-d"]);
    command.arg(body).args(["-H", "content-type: application/grpc", "-H", "te: trailers", url]);
    let told = output(&mut command)?;
    let finished = told.lines().find_map(|line| line.strip_prefix("finished in ")?.split(", ").nth(1));
    let per_second = finished.and_then(|figure| figure.strip_suffix(" req/s")?.parse().ok());
    let all = format!("{requests} succeeded, 0 failed");
    match per_second {
        Some(per_second) if told.contains(&all) => {
            Ok(Load { per_second, p99_ms: None, answered: requests as f64 })
        }
        _ => bail!("not every call was answered: {told}"),
    }
}

/// A time as wrk writes it.
fn millis(text: &str) -> Option<f64> {
    let scaled = |unit: &str, millis: f64| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * millis);
    scaled("us", 0.001).or_else(|| scaled("ms", 1.0)).or_else(|| scaled("s", 1_000.0))
}

fn client(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", CLIENTS_CORE]).arg(program);
    command
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?} does not start"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{command:?} ended with {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_wrk_writes_them() {
        assert_eq!(millis("500.00us"), Some(0.5));
        assert_eq!(millis("1.25ms"), Some(1.25));
        assert_eq!(millis("2.00s"), Some(2_000.0));
        assert_eq!(millis("soon"), None);
    }
}
