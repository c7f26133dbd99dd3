//! The conformance suite, put to a server over RESP: all of it to `TG.CHECK`, what one GCRA can be asked to
//! `CL.THROTTLE`.

use serde_json::json;
use tidegate::{Cost, Decision, Limiter, PolicyHandle, Timestamp, Units, Wait};
use tidegate_server::config::Config;
use tidegate_testkit::cases::{self, Action, Case, LimitSpec, Ran};
use tidegate_testkit::conformance::{self, Offers, Resolution, StepsBack, Subject, SubjectAnswer};
use tidegate_testkit::oracle::{Kind, OracleFigures, Outcome};

use crate::server::{Server, TOKEN};
use crate::wire::{Reply, Wire};

#[test]
fn worked_examples() {
    conformance::worked_examples(&mut Policies::default());
}

#[test]
fn all_cases() {
    conformance::cases(&mut Policies::default());
}

#[test]
fn keys_apart() {
    conformance::keys_apart(&mut Policies::default());
}

#[test]
fn random_traces() {
    conformance::random_traces(&mut Policies::default(), 100);
}

#[test]
fn cases_of_one_gcra() {
    let all = cases::load();
    let fit: Vec<&Case> = all.iter().filter(|case| fits_throttle(case)).collect();
    let mut subject = Throttle::default();
    let done = fit.iter().filter(|case| cases::run(case, &mut subject) == Ran::Done).count();
    assert!(done >= 20, "only {done} of {} cases could be asked of CL.THROTTLE", all.len());
}

#[test]
fn throttled_keys_apart() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    let keys = conformance::odd_keys();
    let quantity = |index: usize| (index % 900 + 1).to_string();
    let ask = |wire: &mut Wire, key: &[u8], quantity: &str| {
        let reply = wire.ask_bytes(&[b"CL.THROTTLE", key, b"999", b"1", b"31622400", quantity.as_bytes()]);
        reply.array()[2].clone()
    };
    for (index, key) in keys.iter().enumerate() {
        ask(&mut wire, key, &quantity(index));
    }
    for (index, key) in keys.iter().enumerate() {
        let left = 999 - (index % 900) as i64;
        assert_eq!(ask(&mut wire, key, "0"), Reply::Integer(left), "{key:?}");
    }
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
    json!({"policies": {"judged": {"limits": limits.collect::<Vec<_>>()}}}).to_string()
}

fn at(us: u64) -> Timestamp {
    Timestamp::from_micros(us).unwrap()
}

/// `TG.*` under one policy; what the door has no verb for is done behind it.
///
/// Waits of more milliseconds than 64 bits hold are told as the longest that can be. What they are exactly is then
/// taken from a limiter that is asked all the same.
#[derive(Default)]
struct Policies(Option<Running>);

struct Running {
    server: Server,
    wire: Wire,
    twin: Limiter,
    names: Vec<String>,
}

impl Running {
    fn judged(limiter: &Limiter) -> PolicyHandle {
        limiter.policy("judged").unwrap()
    }

    /// The answer to a command, `right` being what the twin decided.
    fn ask(&mut self, at_us: u64, words: &[&[u8]], right: &Decision) -> SubjectAnswer {
        self.server.clock.set(at(at_us));
        let reply = self.wire.ask_bytes(words);
        let [allowed, limit, remaining, retry, reset, delay, outcome, bound_by] = reply.array() else {
            panic!("{reply:?}")
        };
        let number = |reply: &Reply| match reply {
            Reply::Integer(number) => *number,
            other => panic!("{other:?} is no integer"),
        };
        let wait = |reply: &Reply, exact: Option<Wait>| match number(reply) {
            -1 => None,
            i64::MAX => {
                let exact = exact.unwrap().as_millis_ceil();
                assert!(exact >= i64::MAX as u128);
                Some(exact * 1_000)
            }
            ms => Some(u128::try_from(ms).unwrap() * 1_000),
        };
        let outcome: Outcome = serde_json::from_value(json!(outcome.text())).unwrap();
        assert_eq!(number(allowed) == 1, outcome == Outcome::Allowed);
        let bound_by = bound_by.text();
        let headline = OracleFigures {
            limit: number(limit) as u64,
            remaining: number(remaining) as u64,
            retry_after_us: wait(retry, right.retry_after()),
            reset_after_us: wait(reset, right.reset_after()),
            delay_us: wait(delay, Some(right.delay())).unwrap(),
            grows_after_us: None,
        };
        let bound_by = self.names.iter().position(|name| *name == bound_by).unwrap();
        SubjectAnswer { outcome, bound_by, headline, limits: Vec::new(), headers: None }
    }
}

impl Policies {
    fn running(&mut self) -> &mut Running {
        self.0.as_mut().unwrap()
    }
}

impl Subject for Policies {
    fn offers(&self) -> Offers {
        Offers {
            resolution: Resolution::Millis,
            steps_back: StepsBack::AtMost(1_000_000),
            each_limit: false,
            grows_after: false,
            check_up_to: false,
            ..Offers::default()
        }
    }

    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        let config = config(limits);
        let policies = Config::parse(&config, "judged.yaml").map_err(|errors| errors.to_string())?;
        let server = Server::start_with(&config, |door| door);
        let mut wire = Wire::to(&server);
        assert_eq!(wire.ask(&format!("AUTH {TOKEN}")), Reply::ok());
        let twin = Limiter::new(policies.policies().clone());
        let names = limits.iter().map(|spec| spec.name.clone()).collect();
        self.0 = Some(Running { server, wire, twin, names });
        Ok(())
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        let running = self.running();
        let right = Running::judged(&running.twin).check_at(key, Cost::new(cost).unwrap(), at(at_us));
        match cost {
            // Both ways to look, in turn.
            0 if at_us.is_multiple_of(2) => running.ask(at_us, &[b"TG.PEEK", b"judged", key], &right),
            1 if at_us.is_multiple_of(2) => running.ask(at_us, &[b"TG.CHECK", b"judged", key], &right),
            _ => running.ask(at_us, &[b"TG.CHECK", b"judged", key, cost.to_string().as_bytes()], &right),
        }
    }

    fn credit(&mut self, at_us: u64, key: &[u8], n: u64) {
        let running = self.running();
        let right = Running::judged(&running.twin).credit_at(key, Units::new(n).unwrap(), at(at_us));
        running.ask(at_us, &[b"TG.CREDIT", b"judged", key, n.to_string().as_bytes()], &right);
    }

    fn penalize(&mut self, at_us: u64, key: &[u8], n: u64) -> Vec<u64> {
        let running = self.running();
        let units = Units::new(n).unwrap();
        Running::judged(&running.twin).penalize_at(key, units, at(at_us));
        let limiter = running.server.app.limiter();
        let judged = limiter.policy("judged").unwrap();
        judged.penalize_at(key, units, at(at_us)).known().unwrap().cuts().to_vec()
    }

    fn reset(&mut self, at_us: u64, key: &[u8]) {
        let running = self.running();
        let right = Running::judged(&running.twin).reset(key);
        running.ask(at_us, &[b"TG.RESET", b"judged", key], &right);
    }

    fn reload(&mut self, limits: &[LimitSpec], since_us: u64) {
        let running = self.running();
        running.server.clock.set(at(since_us));
        let config = Config::parse(&config(limits), "judged.yaml").unwrap();
        running.server.app.reload(config.policies().clone(), config.headers()).unwrap();
        running.twin.reload(config.policies().clone()).unwrap();
        running.names = limits.iter().map(|spec| spec.name.clone()).collect();
    }
}

/// Whether a case is one that `CL.THROTTLE` can be asked.
fn fits_throttle(case: &Case) -> bool {
    let [limit] = &*case.limits else { return false };
    let bucket = matches!(limit.kind, Kind::TokenBucket | Kind::Gcra);
    let whole_seconds = limit.period_us.is_multiple_of(1_000_000);
    let asked = |action: &Action| !matches!(action, Action::Penalize { .. } | Action::Reload { .. });
    let seconds_to_full = u128::from(limit.capacity) * u128::from(limit.period_us / 1_000_000);
    let tellable = seconds_to_full < (i64::MAX as u128) * u128::from(limit.amount);
    bucket
        && whole_seconds
        && tellable
        && !case.refused
        && limit.debt.is_none()
        && limit.amount > 0
        && limit.capacity > 0
        && case.steps.iter().all(|step| asked(&step.action))
}

/// `CL.THROTTLE` under the figures of one bucket.
#[derive(Default)]
struct Throttle(Option<(Server, Wire, [String; 3])>);

impl Throttle {
    fn ask(&mut self, at_us: u64, key: &[u8], quantity: i64) -> SubjectAnswer {
        let (server, wire, figures) = self.0.as_mut().unwrap();
        server.clock.set(at(at_us));
        let quantity_word = quantity.to_string();
        let mut words = vec![b"CL.THROTTLE".as_slice(), key];
        words.extend(figures.iter().map(String::as_bytes));
        words.push(quantity_word.as_bytes());
        let reply = wire.ask_bytes(&words);
        let numbers = reply.array().iter().map(|reply| match reply {
            Reply::Integer(number) => *number,
            other => panic!("{other:?} is no integer"),
        });
        let [limited, limit, remaining, retry, reset] = numbers.collect::<Vec<_>>()[..] else {
            panic!("{reply:?}")
        };
        let seconds = |wait: i64| u128::try_from(wait).unwrap() * 1_000_000;
        let (outcome, retry_after_us) = match (limited, retry) {
            (0, -1) => (Outcome::Allowed, Some(0)),
            (1, -1) => (Outcome::CostExceedsCapacity, None),
            (1, 1..) => (Outcome::Denied, Some(seconds(retry))),
            other => panic!("{other:?}"),
        };
        let headline = OracleFigures {
            limit: limit as u64,
            remaining: remaining as u64,
            retry_after_us,
            reset_after_us: Some(seconds(reset)),
            delay_us: 0,
            grows_after_us: None,
        };
        SubjectAnswer { outcome, bound_by: 0, headline, limits: Vec::new(), headers: None }
    }
}

impl Subject for Throttle {
    fn offers(&self) -> Offers {
        Offers {
            resolution: Resolution::Seconds,
            steps_back: StepsBack::AtMost(1_000_000),
            each_limit: false,
            grows_after: false,
            check_up_to: false,
            reload: false,
            ..Offers::default()
        }
    }

    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        let server = Server::start();
        let mut wire = Wire::to(&server);
        assert_eq!(wire.ask(&format!("AUTH {TOKEN}")), Reply::ok());
        let [spec] = limits else { return Err("one limit at a time".to_owned()) };
        let figures = [spec.capacity - 1, spec.amount, spec.period_us / 1_000_000];
        self.0 = Some((server, wire, figures.map(|figure| figure.to_string())));
        Ok(())
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        self.ask(at_us, key, i64::try_from(cost).unwrap())
    }

    fn credit(&mut self, at_us: u64, key: &[u8], n: u64) {
        self.ask(at_us, key, -i64::try_from(n).unwrap());
    }

    fn reset(&mut self, at_us: u64, key: &[u8]) {
        let (server, wire, _) = self.0.as_mut().unwrap();
        server.clock.set(at(at_us));
        assert!(matches!(wire.ask_bytes(&[b"DEL", key]), Reply::Integer(0 | 1)));
    }
}
