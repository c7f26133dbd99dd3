//! The conformance suite, put to a server over HTTP.

use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use tidegate::{MemoryStore, Timestamp};
use tidegate_server::config::Config;
use tidegate_server::{AdminToken, App, Drain};
use tidegate_testkit::cases::LimitSpec;
use tidegate_testkit::conformance::{self, Offers, Resolution, StepsBack, Subject, SubjectAnswer};
use tidegate_testkit::oracle::{Kind, OracleFigures, Outcome};
use tokio::runtime::Runtime;

use crate::server::{Server, TOKEN, Told};

#[test]
fn worked_examples() {
    conformance::worked_examples(&mut Http::new());
}

#[test]
fn cases() {
    conformance::cases(&mut Http::new());
}

#[test]
fn keys_apart() {
    conformance::keys_apart(&mut Http::new());
}

#[test]
fn random_traces() {
    conformance::random_traces(&mut Http::new(), 60);
}

/// A server, started anew for each policy.
struct Http {
    runtime: Runtime,
    server: Option<Server>,
    kinds: Vec<Kind>,
    /// Checks of cost 0 are made in both ways that there are, in turn.
    peeks: u32,
}

/// The answer as the documentation has it; a field too many or too few is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    allowed: bool,
    outcome: Outcome,
    policy: String,
    bound_by: String,
    limit: u64,
    remaining: u64,
    retry_after_ms: Option<u128>,
    reset_after_ms: Option<u128>,
    delay_ms: u128,
    limits: Vec<Part>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    algorithm: Kind,
    limit: u64,
    remaining: u64,
    retry_after_ms: Option<u128>,
    reset_after_ms: Option<u128>,
    delay_ms: u128,
    cut: Option<u64>,
}

impl Http {
    fn new() -> Self {
        Http { runtime: Runtime::new().unwrap(), server: None, kinds: Vec::new(), peeks: 0 }
    }

    /// The server, its clock set.
    fn at(&self, at_us: u64) -> &Server {
        let server = self.server.as_ref().unwrap();
        server.clock.set(Timestamp::from_micros(at_us).unwrap());
        server
    }

    fn admin(&self, at_us: u64, path: &str, mut body: serde_json::Value, key: &[u8]) -> Answer {
        name_key(&mut body, key);
        let told = self.runtime.block_on(self.at(at_us).post_admin(path, &body.to_string()));
        answer(&told)
    }
}

/// The configuration of these limits under the policy `judged`. JSON is YAML.
fn config(limits: &[LimitSpec]) -> String {
    let limits: Vec<_> = limits
        .iter()
        .map(|spec| {
            let (rate, period) =
                (format!("{}/{}us", spec.amount, spec.period_us), format!("{}us", spec.period_us));
            let (name, algorithm, size) = (&spec.name, spec.kind, spec.capacity);
            let mut limit = match spec.kind {
                Kind::TokenBucket => json!({"capacity": size, "refill": rate}),
                Kind::Gcra => json!({"burst": size, "rate": rate}),
                Kind::LeakyBucket => json!({"capacity": size, "leak": rate}),
                _ => json!({"limit": size, "window": period}),
            };
            limit["name"] = json!(name);
            limit["algorithm"] = json!(algorithm);
            if let Some(debt) = spec.debt {
                limit["debt"] = json!(debt);
            }
            limit
        })
        .collect();
    json!({"policies": {"judged": {"limits": limits}}}).to_string()
}

/// Names a key in whichever field it fits.
fn name_key(body: &mut serde_json::Value, key: &[u8]) {
    match std::str::from_utf8(key) {
        Ok(key) => body["key"] = json!(key),
        Err(_) => body["key_b64"] = json!(base64(key)),
    }
}

/// Base64, written down once more.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let padded = [chunk[0], *chunk.get(1).unwrap_or(&0), *chunk.get(2).unwrap_or(&0)];
        let word = padded.iter().fold(0_usize, |word, byte| word << 8 | usize::from(*byte));
        for place in 0..4 {
            let digit = DIGITS[word >> (18 - 6 * place) & 63];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn answer(told: &Told) -> Answer {
    assert_eq!(told.status, 200, "{}", told.body);
    let answer: Answer =
        serde_json::from_str(&told.body).unwrap_or_else(|error| panic!("{error}: {}", told.body));
    assert_eq!(answer.allowed, answer.outcome == Outcome::Allowed, "{}", told.body);
    assert_eq!(answer.policy, "judged");
    answer
}

fn us(ms: Option<u128>) -> Option<u128> {
    ms.map(|ms| ms * 1_000)
}

fn in_the_suites_words(answer: &Answer, headers: &HeaderMap) -> SubjectAnswer {
    let bound_by = answer.limits.iter().position(|part| part.name == answer.bound_by);
    let figures = |part: &Part| OracleFigures {
        limit: part.limit,
        remaining: part.remaining,
        retry_after_us: us(part.retry_after_ms),
        reset_after_us: us(part.reset_after_ms),
        delay_us: part.delay_ms * 1_000,
        grows_after_us: None,
    };
    let headline = OracleFigures {
        limit: answer.limit,
        remaining: answer.remaining,
        retry_after_us: us(answer.retry_after_ms),
        reset_after_us: us(answer.reset_after_ms),
        delay_us: answer.delay_ms * 1_000,
        grows_after_us: None,
    };
    let sent = headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    SubjectAnswer {
        outcome: answer.outcome,
        bound_by: bound_by.unwrap(),
        headline,
        limits: answer.limits.iter().map(figures).collect(),
        headers: Some(sent.collect()),
    }
}

impl Subject for Http {
    fn offers(&self) -> Offers {
        Offers {
            resolution: Resolution::Millis,
            steps_back: StepsBack::AtMost(1_000_000),
            grows_after: false,
            check_up_to: false,
            ..Offers::default()
        }
    }

    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        let config = config(limits);
        Config::parse(&config, "judged.yaml").map_err(|errors| errors.to_string())?;
        let admin = |app: App| app.with_admin_token(AdminToken::new(TOKEN).unwrap());
        let started = Server::start_with(&config, MemoryStore::default(), admin, Drain::default());
        let server = self.runtime.block_on(started);
        self.server = Some(server);
        self.kinds = limits.iter().map(|spec| spec.kind).collect();
        Ok(())
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        let server = self.at(at_us);
        let by_get = cost == 0 && self.peeks.is_multiple_of(2);
        let told = if by_get {
            let query = match std::str::from_utf8(key) {
                Ok(key) => format!("key={}", escaped(key)),
                Err(_) => format!("key_b64={}", escaped(&base64(key))),
            };
            self.runtime.block_on(server.get(&format!("/v1/peek?{query}")))
        } else {
            let mut body = json!({"cost": cost});
            name_key(&mut body, key);
            self.runtime.block_on(server.post("/v1/check", body.to_string()))
        };
        self.peeks += u32::from(cost == 0);
        let answer = answer(&told);
        assert_eq!(answer.limits.iter().map(|part| part.algorithm).collect::<Vec<_>>(), self.kinds);
        in_the_suites_words(&answer, &told.headers)
    }

    fn credit(&mut self, at_us: u64, key: &[u8], n: u64) {
        self.admin(at_us, "/v1/credit", json!({"units": n}), key);
    }

    fn penalize(&mut self, at_us: u64, key: &[u8], n: u64) -> Vec<u64> {
        let answer = self.admin(at_us, "/v1/penalize", json!({"units": n}), key);
        answer.limits.iter().map(|part| part.cut.unwrap()).collect()
    }

    fn reset(&mut self, at_us: u64, key: &[u8]) {
        self.admin(at_us, "/v1/reset", json!({}), key);
    }

    fn reload(&mut self, limits: &[LimitSpec], since_us: u64) {
        let config = Config::parse(&config(limits), "judged.yaml").unwrap();
        let app = &self.at(since_us).app;
        app.reload(config.policies().clone(), config.headers()).unwrap();
        self.kinds = limits.iter().map(|spec| spec.kind).collect();
    }
}
