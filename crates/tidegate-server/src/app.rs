//! What all doors of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use tidegate::store::{StoreError, StoreErrorKind};
use tidegate::{Limiter, PolicySet, Reload, Timestamp, TooManyFigures};
use tokio::sync::watch;

use crate::admin_token::AdminToken;
use crate::config::{Gateway, HeaderSettings};
use crate::envoy::{EnvoyRules, InForce};
use crate::metrics::Metrics;
use crate::store::{AnyStore, Handle};

/// The policy of a request that names none, where there are several: the one of this name.
pub const DEFAULT_POLICY: &str = "default";

/// A server's state: the limiter, what was counted, whether it is ready. All doors of one server share one.
///
/// ```
/// use tidegate_server::{App, config::Config};
/// let config = Config::default();
/// let app = App::in_memory(config.policies().clone()).with_headers(config.headers());
/// assert!(app.is_ready());
/// ```
#[derive(Debug)]
pub struct App {
    limiter: Limiter<AnyStore>,
    headers: ArcSwap<HeaderSettings>,
    gateway: ArcSwap<Gateway>,
    admin_token: Option<AdminToken>,
    metrics: Metrics,
    draining: AtomicBool,
    /// Whether new work is welcome, for those who wait to be told.
    ready: watch::Sender<bool>,
    envoy: ArcSwap<InForce>,
}

/// Why a request is under no policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPolicy {
    /// No policy has the name asked for.
    Unknown,
    /// No name was given, there are several, and none is the default.
    Unnamed,
}

impl App {
    /// A server of this limiter: all header families, no admin routes.
    pub fn new(limiter: Limiter<AnyStore>) -> Self {
        App {
            metrics: Metrics::new(limiter.now()),
            limiter,
            headers: ArcSwap::default(),
            gateway: ArcSwap::default(),
            admin_token: None,
            draining: AtomicBool::new(false),
            ready: watch::Sender::new(true),
            envoy: ArcSwap::default(),
        }
    }

    /// A server of these policies, which keeps their state in memory, without bounds.
    pub fn in_memory(policies: impl Into<PolicySet>) -> Self {
        App::new(Limiter::builder(policies).store(AnyStore::default()).build())
    }

    /// Answers with these headers.
    #[must_use]
    pub fn with_headers(self, headers: HeaderSettings) -> Self {
        self.headers.store(Arc::new(headers));
        self
    }

    /// Answers proxies by these rules.
    #[must_use]
    pub fn with_gateway(self, gateway: Gateway) -> Self {
        self.set_gateway(gateway);
        self
    }

    /// Puts other rules for proxies in force, at once. Reload the policies they name before.
    pub fn set_gateway(&self, gateway: Gateway) {
        self.gateway.store(Arc::new(gateway));
    }

    /// Switches the admin routes on, for whoever shows this token.
    #[must_use]
    pub fn with_admin_token(self, token: AdminToken) -> Self {
        App { admin_token: Some(token), ..self }
    }

    /// Answers Envoy by these rules.
    #[must_use]
    pub fn with_envoy(self, rules: EnvoyRules) -> Self {
        self.set_envoy(rules);
        self
    }

    /// Puts other rules for Envoy in force, at once. Reload the policies they name before.
    pub fn set_envoy(&self, rules: EnvoyRules) {
        self.envoy.store(Arc::new(InForce::of(rules, &self.limiter)));
    }

    /// The limiter.
    pub fn limiter(&self) -> &Limiter<AnyStore> {
        &self.limiter
    }

    /// Puts other policies and headers in force, at once; what was used stays used. See [`Limiter::reload`].
    ///
    /// # Errors
    /// More sets of figures than a limiter can keep state under; nothing is changed.
    pub fn reload(&self, policies: PolicySet, headers: HeaderSettings) -> Result<Reload, TooManyFigures> {
        let report = self.limiter.reload(policies)?;
        self.headers.store(Arc::new(headers));
        self.metrics.reloaded(self.now());
        Ok(report)
    }

    /// Whether new work is welcome: until a drain begins.
    pub fn is_ready(&self) -> bool {
        !self.draining.load(Ordering::Acquire)
    }

    /// Tells whoever asks for readiness to send no more work.
    pub(crate) fn begin_drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.ready.send_replace(false);
    }

    /// The handle on the policy of this name; without one, on the only policy there is, or the default.
    pub(crate) fn policy(&self, name: Option<&str>) -> Result<Handle, NoPolicy> {
        if let Some(name) = name {
            return self.limiter.policy(name).map_err(|_| NoPolicy::Unknown);
        }
        let policies = self.limiter.policies();
        let name = match policies.iter().next() {
            Some(only) if policies.len() == 1 => only.name(),
            _ => DEFAULT_POLICY,
        };
        self.limiter.policy(name).map_err(|_| NoPolicy::Unnamed)
    }

    /// Whether the admin routes are on.
    pub fn has_admin_token(&self) -> bool {
        self.admin_token.is_some()
    }

    /// The names of the policies, as many as fit a message.
    pub(crate) fn known_policies(&self) -> String {
        const MOST: usize = 20;
        let policies = self.limiter.policies();
        let names: Vec<&str> = policies.iter().take(MOST).map(|policy| policy.name()).collect();
        match policies.len().saturating_sub(MOST) {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }

    pub(crate) fn admin_token(&self) -> Option<&AdminToken> {
        self.admin_token.as_ref()
    }

    pub(crate) fn headers(&self) -> HeaderSettings {
        **self.headers.load()
    }

    pub(crate) fn gateway(&self) -> Arc<Gateway> {
        self.gateway.load_full()
    }

    pub(crate) fn envoy(&self) -> Arc<InForce> {
        self.envoy.load_full()
    }

    pub(crate) fn watch_ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The store could not answer: this is counted, and told in the log, but not for every check.
    pub(crate) fn store_failed(&self, error: &StoreError) {
        if !self.metrics.store_failed(self.now(), error) {
            return;
        }
        match error.kind {
            StoreErrorKind::Outage => tracing::warn!("{error} (told once a second at most)"),
            // It does not mend itself.
            _ => tracing::error!("{error} (told once a second at most)"),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.limiter.now()
    }
}

#[cfg(test)]
mod tests {
    use tidegate::{Limit, Policy, Rate};

    use super::*;

    fn app(names: &[&str]) -> App {
        let limit = Limit::token_bucket(5, Rate::per_second(1));
        let policies = names.iter().map(|name| Policy::single(*name, limit).unwrap());
        App::in_memory(PolicySet::new(policies).unwrap())
    }

    fn found(app: &App, name: Option<&str>) -> Result<String, NoPolicy> {
        app.policy(name).map(|handle| handle.policy().name().to_owned())
    }

    #[test]
    fn a_request_without_a_policy_is_for_the_only_one_or_the_default() {
        assert_eq!(found(&app(&["api"]), None).as_deref(), Ok("api"));
        assert_eq!(found(&app(&["api", "default"]), None).as_deref(), Ok("default"));
        assert_eq!(found(&app(&["api", "login"]), None), Err(NoPolicy::Unnamed));
        assert_eq!(found(&app(&["api", "login"]), Some("login")).as_deref(), Ok("login"));
        assert_eq!(found(&app(&["api"]), Some("default")), Err(NoPolicy::Unknown));
    }
}
