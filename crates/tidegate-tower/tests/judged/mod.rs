//! A limited service as a subject of the conformance suite.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use http::request::Parts;
use http::{HeaderMap, Request, Response};
use tidegate::clock::ManualClock;
use tidegate::{
    Cost, Decision, Limit, LimitDecision, Limiter, Outcome, Period, Policy, PolicyHandle, Rate, Timestamp,
    Units,
};
use tidegate_testkit::cases::LimitSpec;
use tidegate_testkit::conformance::{Offers, StepsBack, Subject, SubjectAnswer};
use tidegate_testkit::oracle::{Kind, OracleFigures, Outcome as Ended};
use tidegate_tower::{MissingKey, Pacing, RateLimitLayer, Reason, Report, key};
use tower::util::BoxCloneService;
use tower::{Layer, Service, service_fn};

/// A door whose requests carry their key and cost in extensions, since keys of any bytes fit no header.
#[derive(Default)]
pub struct Door(Option<Open>);

struct Open {
    clock: ManualClock,
    limiter: Limiter,
    service: BoxCloneService<Request<()>, HeaderMap, Infallible>,
    decided: Arc<Mutex<Option<Decision>>>,
}

#[derive(Clone)]
struct Key(Vec<u8>);

#[derive(Clone, Copy)]
struct Costs(Cost);

fn at(us: u64) -> Timestamp {
    Timestamp::from_micros(us).unwrap()
}

fn limit(spec: &LimitSpec) -> Result<Limit, String> {
    let capacity = Units::new(spec.capacity).map_err(|e| e.to_string())?;
    let period = Period::from_micros(spec.period_us).map_err(|e| e.to_string())?;
    let rate = Rate::new(Units::new(spec.amount).map_err(|e| e.to_string())?, period);
    let limit = match spec.kind {
        Kind::TokenBucket => Ok(Limit::token_bucket(capacity, rate)),
        Kind::Gcra => Ok(Limit::gcra(rate, capacity)),
        Kind::LeakyBucket => Limit::leaky_bucket(capacity, rate),
        Kind::FixedWindow => Ok(Limit::fixed_window(capacity, period)),
        Kind::SlidingWindowLog => Limit::sliding_window_log(capacity, period),
        Kind::SlidingWindowCounter => Ok(Limit::sliding_window_counter(capacity, period)),
    };
    let limit = limit.map_err(|e| e.to_string())?;
    let Some(debt) = spec.debt else { return Ok(limit) };
    limit.with_debt(Units::new(debt).map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

fn policy(limits: &[LimitSpec]) -> Result<Policy, String> {
    let named = limits
        .iter()
        .try_fold(Policy::builder("api"), |b, spec| Ok::<_, String>(b.limit(&spec.name, limit(spec)?)));
    named?.build().map_err(|e| e.to_string())
}

fn figures(limit: &LimitDecision) -> OracleFigures {
    let figures = limit.figures();
    OracleFigures {
        limit: figures.limit,
        remaining: figures.remaining,
        retry_after_us: figures.retry_after.map(|wait| wait.as_micros()),
        reset_after_us: figures.reset_after.map(|wait| wait.as_micros()),
        delay_us: figures.delay.as_micros(),
        grows_after_us: figures.grows_after.map(|wait| wait.as_micros()),
    }
}

impl Door {
    pub fn new() -> Self {
        Door::default()
    }

    fn open(&self, at_us: u64) -> (&Open, PolicyHandle) {
        let open = self.0.as_ref().unwrap();
        open.clock.set(at(at_us));
        (open, open.limiter.policy("api").unwrap())
    }
}

impl Open {
    /// Sends a request: the answer's headers, which name the status too.
    fn send(&self, key: &[u8], cost: u64) -> HeaderMap {
        let mut request = Request::new(());
        request.extensions_mut().insert(Key(key.to_vec()));
        request.extensions_mut().insert(Costs(Cost::new(cost).unwrap()));
        let mut service = self.service.clone();
        // The store is in memory and delays are handed on, so there is nothing to wait for.
        match pin!(service.call(request)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(headers)) => headers,
            Poll::Pending => panic!("a request had to wait"),
        }
    }
}

fn limited(handle: PolicyHandle, decided: &Arc<Mutex<Option<Decision>>>) -> RateLimitLayer {
    let decided = Arc::clone(decided);
    RateLimitLayer::new(handle, key::extension(|key: &Key| Some(key.0.clone())), MissingKey::Deny)
        .cost_by(|request: &Parts| request.extensions.get::<Costs>().unwrap().0)
        .pacing(Pacing::HandOn)
        .on_report(move |_, report| {
            let (Report::Admitted(checked) | Report::Denied(Reason::Refused(checked))) = report else {
                panic!("{report:?}")
            };
            *decided.lock().unwrap() = Some(*checked.decision());
        })
}

impl Subject for Door {
    fn offers(&self) -> Offers {
        Offers { steps_back: StepsBack::AtMost(1_000_000), check_up_to: false, ..Offers::default() }
    }

    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        let clock = ManualClock::default();
        let limiter = Limiter::builder(policy(limits)?).clock(clock.clone()).build();
        let decided = Arc::default();
        let handler = service_fn(async |_: Request<()>| Ok(Response::new(String::new())));
        let service = limited(limiter.policy("api").unwrap(), &decided).layer(handler);
        let headers = tower::ServiceExt::map_response(service, |response| {
            let status = response.status().as_u16();
            let (mut parts, _) = response.into_parts();
            parts.headers.insert("status", status.into());
            parts.headers
        });
        self.0 = Some(Open { clock, limiter, service: BoxCloneService::new(headers), decided });
        Ok(())
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        let (open, _) = self.open(at_us);
        let headers = open.send(key, cost);
        let decision = open.decided.lock().unwrap().take().unwrap();
        let outcome = match decision.outcome() {
            Outcome::Allowed => Ended::Allowed,
            Outcome::Denied => Ended::Denied,
            Outcome::CostExceedsCapacity => Ended::CostExceedsCapacity,
            other => panic!("there is room for every key, and yet {other}"),
        };
        assert_eq!(headers["status"], if decision.is_allowed() { "200" } else { "429" });
        let sent = headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        let limits = decision.limits().iter().map(figures).collect();
        let answer = SubjectAnswer::of_limits(outcome, decision.bound_by(), limits);
        SubjectAnswer { headers: Some(sent.collect()), ..answer }
    }

    fn credit(&mut self, at_us: u64, key: &[u8], n: u64) {
        self.open(at_us).1.credit(key, Units::new(n).unwrap());
    }

    fn penalize(&mut self, at_us: u64, key: &[u8], n: u64) -> Vec<u64> {
        self.open(at_us).1.penalize(key, Units::new(n).unwrap()).cuts().to_vec()
    }

    fn reset(&mut self, at_us: u64, key: &[u8]) {
        self.open(at_us).1.reset(key);
    }

    fn reload(&mut self, limits: &[LimitSpec], since_us: u64) {
        self.open(since_us).0.limiter.reload(policy(limits).unwrap()).unwrap();
    }
}
