//! Forward auth: a proxy asks about each request before it lets it through, at `/v1/forward-auth/RULE`, by any
//! method and without its body. The rule of that name says whether the request is charged, under which policy,
//! to whom and how much.
//!
//! 200 lets it through, whether it was charged or is none of the rule's: Envoy takes no other status for a yes.

mod answer;
mod key;
mod original;
mod path;

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use tidegate::Cost;

use crate::app::App;
use crate::config::{OnMissing, Rule, RuleCost};
use crate::http::decode::shown;
use crate::http::problem::{Problem, ProblemKind};
use crate::http::{policy_named, unavailable};
use crate::view::View;
use answer::Refusal;
use key::Key;
use original::Original;

/// Where proxies ask; the rule's name follows.
pub(crate) const PATH: &str = "/v1/forward-auth/";

/// Who is at the other end of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub IpAddr);

/// Tells a request of a proxy who sent it; others need not know, and are not slowed down.
pub(crate) fn tell_peer<B>(request: &mut http::Request<B>, peer: Option<IpAddr>) {
    if let Some(peer) = peer.filter(|_| request.uri().path().starts_with(PATH)) {
        request.extensions_mut().insert(Peer(peer));
    }
}

/// May the request that a proxy has before it go on?
///
/// A proxy asks about each request, by the request's own method or any other and without its body; what it tells of the
/// request in headers counts if its address is among `trusted_proxies`. The rule says whether the request is charged,
/// under which policy, to whom and how much.
#[utoipa::path(
    get,
    path = "/v1/forward-auth/{rule}",
    operation_id = "forward_auth",
    tag = "limits",
    params(("rule" = String, Path, description = "The rule's name; a path of the request's own may follow", example = "writes")),
    responses(
        (status = 200, description = "Let it through: it was charged, or is none of the rule's, which has no limit fields",
            headers(
                ("X-RateLimit-Limit" = u64, description = "Capacity, or limit per window, of the binding limit"),
                ("X-RateLimit-Remaining" = u64, description = "What is left of it"),
                ("RateLimit-Policy" = String, description = "Every limit with its quota and window in seconds"),
                ("RateLimit" = String, description = "What is left of them and the seconds until more is"),
            )),
        (status = 400, description = "The proxy is not trusted, contradicts itself or does not tell what the rule needs",
            body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "Denied, where the rule says deny_status: 403; without limit fields: it does not say whom to charge, or says it twice",
            body = Refusal, content_type = "application/problem+json"),
        (status = 404, description = "No rule has this name", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Denied", body = Refusal, content_type = "application/problem+json",
            headers(
                ("Retry-After" = u64, description = "Seconds until it may be let through; absent where waiting does not help"),
                ("X-RateLimit-Limit" = u64, description = "Capacity, or limit per window, of the binding limit"),
                ("X-RateLimit-Remaining" = u64, description = "What is left of it"),
                ("RateLimit-Policy" = String, description = "Every limit with its quota and window in seconds"),
                ("RateLimit" = String, description = "What is left of them and the seconds until more is"),
            )),
        (status = 503, description = "The store is full and refuses new keys, or did not answer",
            body = Refusal, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn ask(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (request, _body) = request.into_parts();
    let asked = request.uri.path().strip_prefix(PATH).unwrap_or("");
    let (name, path) = asked.split_at(asked.find('/').unwrap_or(asked.len()));
    let gateway = app.gateway();
    let Some(rule) = gateway.rule(name) else {
        let names: Vec<&str> = gateway.rules().iter().map(Rule::name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let detail = format!("{:?}: no rule has this name (there are {known})", shown(name));
        return Err(Problem::new(ProblemKind::NotFound, detail));
    };
    let own = original::own_target(&request, path);
    let original = Original::read(&request, own.as_deref(), gateway.proxies())?;
    if !original.fits(&rule.matches)? {
        return Ok(answer::let_through());
    }
    let key = match (key::of(rule, &original)?, rule.on_missing) {
        (Key::Whole(key), _) | (Key::Shared(key), OnMissing::Shared) => key,
        (Key::Shared(_), OnMissing::Skip) => return Ok(answer::let_through()),
        (Key::Shared(_), OnMissing::Deny) => return Ok(answer::nobody_to_charge()),
        (Key::Ambiguous, _) => return Ok(answer::ambiguous()),
    };
    let handle = policy_named(&app, &rule.policy)?;
    let at = app.now();
    let view = View::of(&handle, &key, |handle| handle.check_at(&key, cost(rule, &original), at)).await;
    let view = view.map_err(|error| unavailable(&app, &error))?;
    let took = app.now().micros_since(at);
    app.metrics().decided(view.policy().name(), view.decision().outcome(), took);
    Ok(answer::decided(&app, &view, rule.deny_status, at))
}

/// What the request costs. A header that tells nothing that can be charged is as good as none.
fn cost(rule: &Rule, original: &Original<'_>) -> Cost {
    match &rule.cost {
        RuleCost::Fixed(cost) => *cost,
        RuleCost::Header { name, default, max } => match original.number(name) {
            None | Some(0) => *default,
            Some(told) => Cost::new(told).map_or(*max, |told| told.min(*max)),
        },
    }
}
