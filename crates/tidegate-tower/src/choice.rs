//! What is chosen for each request: the policy, the cost, and what happens without a key.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderName, StatusCode};
use tidegate::store::Store;
use tidegate::{Cost, PolicyHandle};

/// What becomes of a request that has no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingKey {
    /// It is passed on unlimited.
    Skip,
    /// It is denied, 403 Forbidden.
    Deny,
    /// It is denied with this status, such as 401 or 400.
    DenyWith(StatusCode),
    /// It is charged to a key that all such requests share. Choose one that no client can have for its own.
    Shared(Vec<u8>),
}

/// A cost that a header should tell and does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableCost {
    header: HeaderName,
    value: String,
}

impl fmt::Display for UnreadableCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value, most) = (&self.header, &self.value, Cost::MAX);
        write!(f, "{name}: {value:?}: a cost is a whole number from 0 to {most}, given once")
    }
}

impl std::error::Error for UnreadableCost {}

/// Says which policy decides.
type PolicyOf<S> = dyn Fn(&Parts) -> PolicyHandle<S> + Send + Sync;

/// Which policy decides.
pub(crate) enum PolicyChoice<S: Store> {
    Always(PolicyHandle<S>),
    By(Arc<PolicyOf<S>>),
    Named { header: HeaderName, policies: Arc<HashMap<Vec<u8>, PolicyHandle<S>>>, otherwise: PolicyHandle<S> },
}

impl<S: Store> PolicyChoice<S> {
    pub(crate) fn of(&self, request: &Parts) -> PolicyHandle<S> {
        match self {
            PolicyChoice::Always(policy) => policy.clone(),
            PolicyChoice::By(choose) => choose(request),
            PolicyChoice::Named { header, policies, otherwise } => {
                let named = request.headers.get(header).and_then(|name| policies.get(name.as_bytes()));
                named.unwrap_or(otherwise).clone()
            }
        }
    }
}

impl<S: Store> Clone for PolicyChoice<S> {
    fn clone(&self) -> Self {
        match self {
            PolicyChoice::Always(policy) => PolicyChoice::Always(policy.clone()),
            PolicyChoice::By(choose) => PolicyChoice::By(Arc::clone(choose)),
            PolicyChoice::Named { header, policies, otherwise } => PolicyChoice::Named {
                header: header.clone(),
                policies: Arc::clone(policies),
                otherwise: otherwise.clone(),
            },
        }
    }
}

/// What a request costs.
#[derive(Clone)]
pub(crate) enum CostChoice {
    Always(Cost),
    By(Arc<dyn Fn(&Parts) -> Cost + Send + Sync>),
    Header { header: HeaderName, otherwise: Cost },
}

impl CostChoice {
    pub(crate) fn of(&self, request: &Parts) -> Result<Cost, UnreadableCost> {
        match self {
            CostChoice::Always(cost) => Ok(*cost),
            CostChoice::By(choose) => Ok(choose(request)),
            CostChoice::Header { header, otherwise } => told_by(request, header, *otherwise),
        }
    }
}

fn told_by(request: &Parts, header: &HeaderName, otherwise: Cost) -> Result<Cost, UnreadableCost> {
    let mut lines = request.headers.get_all(header).iter();
    let Some(value) = lines.next() else { return Ok(otherwise) };
    let digits = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.to_str().ok().filter(digits).and_then(|text| text.parse().ok());
    match (number.map(Cost::new), lines.next()) {
        (Some(Ok(cost)), None) => Ok(cost),
        _ => {
            let value = value.as_bytes().escape_ascii().to_string();
            Err(UnreadableCost { header: header.clone(), value })
        }
    }
}
