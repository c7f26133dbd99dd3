//! The layer: what is chosen once, for all requests.

use std::fmt;
use std::sync::Arc;

use http::HeaderName;
use http::request::Parts;
use tidegate::store::Store;
use tidegate::{Cost, MemoryStore, PolicyHandle};
use tidegate_fields::LimitFields;
use tower_layer::Layer;

use crate::answering::{Answering, Pacing};
use crate::asking::{Asking, OnStoreError};
use crate::choice::{CostChoice, MissingKey, PolicyChoice};
use crate::denial::{DenialHandler, ProblemDenial};
use crate::key::KeyExtractor;
use crate::report::Report;
use crate::service::RateLimit;

/// Puts a rate limit around services. All services it makes, and all their clones, share the limiter's state.
///
/// ```
/// use http::Response;
/// use http::request::Parts;
/// use tidegate::{Limit, Limiter, Policy, Rate};
/// use tidegate_tower::{MissingKey, RateLimitLayer, key};
///
/// let limiter = Limiter::new(Policy::single("api", Limit::token_bucket(100, Rate::per_second(10)))?);
/// let layer = RateLimitLayer::new(
///     limiter.policy("api")?,
///     key::joined().part(key::header("x-tenant")).part(key::peer_ip()),
///     MissingKey::Deny,
/// )
/// .skip_if(|request: &Parts| request.uri.path() == "/healthz")
/// .cost_by(|request: &Parts| if request.method == "POST" { 5 } else { 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RateLimitLayer<S: Store = MemoryStore> {
    asking: Arc<Asking<S>>,
    answering: Arc<Answering>,
}

impl<S: Store> RateLimitLayer<S> {
    /// Charges each request 1 under `policy`, to the key that `key` finds; `missing` says what becomes of a
    /// request without one.
    pub fn new(policy: PolicyHandle<S>, key: impl KeyExtractor, missing: MissingKey) -> Self {
        let asking = Asking {
            policy: PolicyChoice::Always(policy),
            key: Arc::new(key),
            missing,
            cost: CostChoice::Always(Cost::ONE),
            skip: Vec::new(),
            shadow: Vec::new(),
        };
        let answering = Answering {
            handler: Arc::new(ProblemDenial),
            fields: LimitFields::default(),
            on_admission: true,
            pacing: Pacing::default(),
            on_store_error: OnStoreError::default(),
            report: None,
        };
        RateLimitLayer { asking: Arc::new(asking), answering: Arc::new(answering) }
    }

    /// Charges each request `cost`.
    #[must_use]
    pub fn cost(self, cost: impl Into<Cost>) -> Self {
        let cost = cost.into();
        self.asking(|it| it.cost = CostChoice::Always(cost))
    }

    /// Charges each request what `cost` says. 0 is a peek: it charges nothing, and is denied only in debt.
    #[must_use]
    pub fn cost_by<C: Into<Cost>>(self, cost: impl Fn(&Parts) -> C + Send + Sync + 'static) -> Self {
        self.asking(|it| it.cost = CostChoice::By(Arc::new(move |request| cost(request).into())))
    }

    /// Charges each request what the header says, and `otherwise` if it is not there. A value that is no whole
    /// number from 0 to 10^12, or is given twice, is denied with 400.
    ///
    /// Only for headers that something trusted sets or checks: who may choose the cost may choose 0.
    #[must_use]
    pub fn cost_from(self, header: HeaderName, otherwise: impl Into<Cost>) -> Self {
        let otherwise = otherwise.into();
        self.asking(|it| it.cost = CostChoice::Header { header, otherwise })
    }

    /// Puts each request under the policy that `policy` says, in place of the one given to [`new`](Self::new).
    /// Get the handles beforehand.
    #[must_use]
    pub fn policy_by(self, policy: impl Fn(&Parts) -> PolicyHandle<S> + Send + Sync + 'static) -> Self {
        self.asking(|it| it.policy = PolicyChoice::By(Arc::new(policy)))
    }

    /// Puts each request under the policy that the header's value names, and under `otherwise` if it names none
    /// of these or is not there.
    ///
    /// Only for headers that something trusted sets, such as a gateway that knows the client's plan.
    #[must_use]
    pub fn policy_from<N: Into<Vec<u8>>>(
        self,
        header: HeaderName,
        policies: impl IntoIterator<Item = (N, PolicyHandle<S>)>,
        otherwise: PolicyHandle<S>,
    ) -> Self {
        let policies = policies.into_iter().map(|(name, policy)| (name.into(), policy)).collect();
        self.asking(|it| it.policy = PolicyChoice::Named { header, policies: Arc::new(policies), otherwise })
    }

    /// Passes requests on unasked of which this holds. Of several predicates one suffices.
    #[must_use]
    pub fn skip_if(self, skips: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.asking(|it| it.skip.push(Arc::new(skips)))
    }

    /// Only watches requests of which this holds: the limiter decides, and charges what it admits, and the
    /// decision is [reported](Self::on_report) and put into the request's extensions; but nothing is denied or
    /// delayed, and the answer shows nothing of it. Of several predicates one suffices.
    #[must_use]
    pub fn shadow_if(self, shadows: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.asking(|it| it.shadow.push(Arc::new(shadows)))
    }

    /// Only watches all requests, as [`shadow_if`](Self::shadow_if) says.
    #[must_use]
    pub fn shadow(self) -> Self {
        self.shadow_if(|_| true)
    }

    /// Answers denied requests by `handler`; by [`ProblemDenial`] unless said otherwise.
    #[must_use]
    pub fn on_denial(self, handler: impl DenialHandler) -> Self {
        self.answering(|it| it.handler = Arc::new(handler))
    }

    /// What becomes of requests when the store does not answer: denied with 503 unless said otherwise.
    #[must_use]
    pub fn on_store_error(self, choice: OnStoreError) -> Self {
        self.answering(|it| it.on_store_error = choice)
    }

    /// What becomes of a leaky bucket's delay: slept unless said otherwise.
    #[must_use]
    pub fn pacing(self, pacing: Pacing) -> Self {
        self.answering(|it| it.pacing = pacing)
    }

    /// Which limit fields answers bear; both families unless said otherwise.
    #[must_use]
    pub fn fields(self, fields: LimitFields) -> Self {
        self.answering(|it| it.fields = fields)
    }

    /// Whether answers to admitted requests bear limit fields too; they do unless said otherwise.
    #[must_use]
    pub fn fields_on_admission(self, shown: bool) -> Self {
        self.answering(|it| it.on_admission = shown)
    }

    /// Tells `report` what became of each request, for metrics and logs. It runs on the request's way, so it
    /// ought to be quick.
    #[must_use]
    pub fn on_report(self, report: impl Fn(&Parts, Report<'_>) + Send + Sync + 'static) -> Self {
        self.answering(|it| it.report = Some(Arc::new(report)))
    }

    fn asking(mut self, change: impl FnOnce(&mut Asking<S>)) -> Self {
        change(Arc::make_mut(&mut self.asking));
        self
    }

    fn answering(mut self, change: impl FnOnce(&mut Answering)) -> Self {
        change(Arc::make_mut(&mut self.answering));
        self
    }
}

impl<I, S: Store> Layer<I> for RateLimitLayer<S> {
    type Service = RateLimit<I, S>;

    fn layer(&self, inner: I) -> RateLimit<I, S> {
        RateLimit::new(inner, Arc::clone(&self.asking), Arc::clone(&self.answering))
    }
}

impl<S: Store> Clone for RateLimitLayer<S> {
    fn clone(&self) -> Self {
        RateLimitLayer { asking: Arc::clone(&self.asking), answering: Arc::clone(&self.answering) }
    }
}

impl<S: Store> fmt::Debug for RateLimitLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RateLimitLayer");
        debug.field("missing", &self.asking.missing).field("fields", &self.answering.fields);
        debug.finish_non_exhaustive()
    }
}
