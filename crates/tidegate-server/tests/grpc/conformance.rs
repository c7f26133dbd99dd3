//! The conformance suite, put to `ShouldRateLimit`: checks, looks, forced charges and hits given back.

use serde_json::{Value, json};
use tidegate::{Cost, Limiter, PolicyHandle, Timestamp, Units, Wait};
use tidegate_server::config::Config;
use tidegate_server::grpc::messages::{Code, DescriptorStatus, RateLimitDescriptor, RateLimitResponse};
use tidegate_testkit::cases::LimitSpec;
use tidegate_testkit::conformance::{self, Offers, StepsBack, Subject, SubjectAnswer};
use tidegate_testkit::oracle::{Kind, OracleFigures, Outcome};
use tokio::runtime::Runtime;

use super::server::{Server, descriptor, start};

#[test]
fn worked_examples() {
    conformance::worked_examples(&mut Rls::new());
}

#[test]
fn all_cases() {
    conformance::cases(&mut Rls::new());
}

#[test]
fn keys_apart() {
    conformance::keys_apart(&mut Rls::new());
}

#[test]
fn random_traces() {
    conformance::random_traces(&mut Rls::new(), 60);
}

#[test]
fn edges() {
    conformance::edges(&mut Rls::new(), 30);
}

/// A server, started anew for each policy. What the protocol does not tell, when a denied check would be admitted to
/// the microsecond and the delay of admitted ones, is taken from a limiter that is asked all the same.
struct Rls {
    runtime: Runtime,
    running: Option<Running>,
}

struct Running {
    server: Server,
    twin: Limiter,
    names: Vec<String>,
}

/// The configuration of these limits under the policy `judged`. JSON is YAML.
fn config(limits: &[LimitSpec]) -> String {
    let limits = limits.iter().map(|spec| {
        let rate = format!("{}/{}us", spec.amount, spec.period_us);
        let (size, window) = (spec.capacity, format!("{}us", spec.period_us));
        let mut limit = match spec.kind {
            Kind::TokenBucket => json!({"capacity": size, "refill": rate}),
            Kind::Gcra => json!({"burst": size, "rate": rate}),
            Kind::LeakyBucket => json!({"capacity": size, "leak": rate}),
            _ => json!({"limit": size, "window": window}),
        };
        limit["name"] = json!(spec.name);
        limit["algorithm"] = json!(spec.kind);
        if let Some(debt) = spec.debt {
            limit["debt"] = json!(debt);
        }
        limit
    });
    let policies = json!({"judged": {"limits": limits.collect::<Vec<_>>()}});
    let envoy = json!({"edge": [
        {"key": "plain", "policy": "judged", "by": ["plain"]},
        {"key": "forced", "policy": "judged", "by": ["forced"], "charge": "always"},
    ]});
    json!({"policies": policies, "envoy": envoy}).to_string()
}

/// Values are text: each byte is a character.
fn text(key: &[u8]) -> String {
    key.iter().map(|byte| char::from(*byte)).collect()
}

fn at(us: u64) -> Timestamp {
    Timestamp::from_micros(us).unwrap()
}

fn judged(limiter: &Limiter) -> PolicyHandle {
    limiter.policy("judged").unwrap()
}

impl Rls {
    fn new() -> Self {
        Rls { runtime: Runtime::new().unwrap(), running: None }
    }

    fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    fn ask(&self, at_us: u64, one: RateLimitDescriptor) -> RateLimitResponse {
        let server = &self.running().server;
        server.clock.set(at(at_us));
        let answer = self.runtime.block_on(server.descriptors(&[one]));
        assert_eq!((answer.statuses.len(), answer.statuses[0].code), (1, answer.overall_code));
        answer
    }

    fn hits(&self, at_us: u64, entry: &str, key: &[u8], hits: u64) -> RateLimitResponse {
        let one = descriptor(&[(entry, &text(key))]);
        self.ask(at_us, RateLimitDescriptor { hits_addend: Some(hits), ..one })
    }
}

fn outcome(answer: &RateLimitResponse) -> Outcome {
    if answer.overall_code == i32::from(Code::Ok) {
        assert!(answer.raw_body.is_empty());
        return Outcome::Allowed;
    }
    let body: Value = serde_json::from_slice(&answer.raw_body).unwrap();
    match body["detail"].as_str().unwrap().contains("waiting does not help") {
        true => Outcome::CostExceedsCapacity,
        false => Outcome::Denied,
    }
}

/// To the microsecond; none if it is not told. What is longer than 10,000 years is told as that, and `exact` then.
fn reset(status: &DescriptorStatus, exact: Option<Wait>) -> Option<u128> {
    const LONGEST: i64 = 315_576_000_000;
    let told = status.duration_until_reset.as_ref()?;
    if told.seconds == LONGEST {
        assert!(exact.unwrap().as_secs_ceil() >= LONGEST as u128);
        return exact.map(|wait| wait.as_micros());
    }
    Some(u128::try_from(told.seconds).unwrap() * 1_000_000 + u128::try_from(told.nanos / 1_000).unwrap())
}

impl Subject for Rls {
    fn offers(&self) -> Offers {
        Offers {
            steps_back: StepsBack::AtMost(1_000_000),
            each_limit: false,
            grows_after: false,
            check_up_to: false,
            ..Offers::default()
        }
    }

    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        let config = config(limits);
        let read = Config::parse(&config, "judged.yaml").map_err(|errors| errors.to_string())?;
        let server = self.runtime.block_on(start(&config));
        let twin = Limiter::builder(read.policies().clone()).clock(server.clock.clone()).build();
        let names = limits.iter().map(|spec| spec.name.clone()).collect();
        self.running = Some(Running { server, twin, names });
        Ok(())
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        let right = judged(&self.running().twin).check_at(key, Cost::new(cost).unwrap(), at(at_us));
        let answer = match cost {
            // What is said nothing of is one.
            1 => self.ask(at_us, descriptor(&[("plain", &text(key))])),
            _ => self.hits(at_us, "plain", key, cost),
        };
        let sent = answer.response_headers_to_add.iter();
        let headers: Vec<(String, String)> = sent.map(|it| (it.key.clone(), it.value.clone())).collect();
        let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value);
        let number = |name: &str| header(name).unwrap().parse::<u64>().unwrap();
        let (limit, remaining) = (number("x-ratelimit-limit"), number("x-ratelimit-remaining"));
        let status = &answer.statuses[0];
        let current = status.current_limit.as_ref().unwrap();
        let short = |units: u64| u32::try_from(units).unwrap_or(u32::MAX);
        assert_eq!((current.requests_per_unit, status.limit_remaining), (short(limit), short(remaining)));
        let headline = OracleFigures {
            limit,
            remaining,
            retry_after_us: right.retry_after().map(|wait| wait.as_micros()),
            reset_after_us: reset(status, right.reset_after()),
            delay_us: right.delay().as_micros(),
            grows_after_us: None,
        };
        let bound_by = self.running().names.iter().position(|name| *name == current.name).unwrap();
        let outcome = outcome(&answer);
        SubjectAnswer { outcome, bound_by, headline, limits: Vec::new(), headers: Some(headers) }
    }

    fn credit(&mut self, at_us: u64, key: &[u8], n: u64) {
        judged(&self.running().twin).credit_at(key, Units::new(n).unwrap(), at(at_us));
        let one = descriptor(&[("plain", &text(key))]);
        self.ask(at_us, RateLimitDescriptor { hits_addend: Some(n), is_negative_hits: true, ..one });
    }

    /// What was cut is not told, only that it did not fit.
    fn penalize(&mut self, at_us: u64, key: &[u8], n: u64) -> Vec<u64> {
        let right = judged(&self.running().twin).penalize_at(key, Units::new(n).unwrap(), at(at_us));
        let fits = right.after.is_allowed() && right.cuts().iter().all(|cut| *cut == 0);
        let answer = self.hits(at_us, "forced", key, n);
        assert_eq!(answer.overall_code == i32::from(Code::Ok), fits, "{answer:?}");
        right.cuts().to_vec()
    }

    /// The protocol has no word for it.
    fn reset(&mut self, at_us: u64, key: &[u8]) {
        let Running { server, twin, .. } = self.running();
        server.clock.set(at(at_us));
        judged(twin).reset(key);
        assert!(server.app.limiter().policy("judged").unwrap().reset(text(key)).known().is_some());
    }

    fn reload(&mut self, limits: &[LimitSpec], since_us: u64) {
        let config = Config::parse(&config(limits), "judged.yaml").unwrap();
        let Running { server, twin, names } = self.running.as_mut().unwrap();
        server.clock.set(at(since_us));
        server.app.reload(config.policies().clone(), config.headers()).unwrap();
        twin.reload(config.policies().clone()).unwrap();
        *names = limits.iter().map(|spec| spec.name.clone()).collect();
    }
}
