//! From a path to the service that answers it.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic_health::pb::health_server::HealthServer;

use super::health::HealthService;
use super::reflection::Reflection;
use super::{rate_limit, unary};
use crate::app::App;

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const HEALTH: &str = "/grpc.health.v1.Health/";
/// Bytes of a request: a thousand descriptors. As many may be held of each call that is under way.
const MOST_BYTES: usize = 64 << 10;
/// The longest a call may take, whatever time its caller gives it: one whose message never comes is let go.
const LONGEST: Duration = Duration::from_secs(30);

/// All services of the door.
#[derive(Debug)]
pub(crate) struct Routes {
    app: Arc<App>,
    health: HealthServer<HealthService>,
    reflection: Reflection,
}

impl Routes {
    /// What never ends by itself ends once `closing` says so.
    pub fn new(app: Arc<App>, closing: watch::Receiver<bool>) -> Self {
        let health = HealthServer::new(HealthService { app: Arc::clone(&app), closing });
        Routes { health, reflection: Reflection::new(), app }
    }

    /// Answers one call, in the time that its caller gives it.
    pub async fn call(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        if let Some(answer) = self.reflection.at(path) {
            return answer(request).await.unwrap_or_else(|never| match never {});
        }
        // A watch lasts as long as its caller likes: the deadline is for calls that are answered once.
        if path.starts_with(HEALTH) {
            return self.health.clone().call(request).await.unwrap_or_else(|never| match never {});
        }
        if path != SHOULD_RATE_LIMIT {
            return Status::unimplemented(format!("{path}: no such method")).into_http();
        }
        let given = timeout(request.headers());
        let message = unary::message(request, MOST_BYTES);
        let within = given.map_or(LONGEST, |given| given.min(LONGEST));
        let answered = tokio::time::timeout(within, async {
            rate_limit::answer(&self.app, &message.await?, given).await
        });
        match answered.await {
            Ok(Ok(answer)) => unary::reply(&answer),
            Ok(Err(status)) => status.into_http(),
            Err(_) => Status::deadline_exceeded("the time for the call is over").into_http(),
        }
    }
}

/// The `grpc-timeout` of a call: at most eight digits and a unit. One that cannot be read is none.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 60 * 60)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn timeouts_are_read_as_grpc_writes_them() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            timeout(&headers)
        };
        assert_eq!(read("20m"), Some(Duration::from_millis(20)));
        assert_eq!(read("19999u"), Some(Duration::from_micros(19_999)));
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        for wrong in ["", "m", "1", "1d", "-1S", "+1S", "123456789S", "1 S"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        assert_eq!(timeout(&HeaderMap::new()), None);
    }
}
