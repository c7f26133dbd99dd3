//! How a request is answered once the limiter has decided.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Response};
use tidegate::store::StoreError;
use tidegate::{Timestamp, Wait};
use tidegate_fields::LimitFields;

use crate::asking::OnStoreError;
use crate::body::DenialBody;
use crate::denial::{Denial, DenialHandler, Reason};
use crate::report::{Checked, Report};

/// What becomes of the delay that a leaky bucket gives admitted work, so that it leaves evenly spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pacing {
    /// The request waits that long, by the limiter's clock, before the inner service is called.
    #[default]
    Sleep,
    /// The inner service is called at once and finds the delay as [`HandedDelay`] in the request's extensions.
    HandOn,
}

/// A request extension: how long the work should wait before it starts. There only if [`Pacing::HandOn`] was
/// chosen and the delay is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedDelay(pub Wait);

/// How decisions become answers.
#[derive(Clone)]
pub(crate) struct Answering {
    pub(crate) handler: Arc<dyn DenialHandler>,
    pub(crate) fields: LimitFields,
    pub(crate) on_admission: bool,
    pub(crate) pacing: Pacing,
    pub(crate) on_store_error: OnStoreError,
    pub(crate) report: Option<Reporter>,
}

pub(crate) type Reporter = Arc<dyn Fn(&Parts, Report<'_>) + Send + Sync>;

/// Whether a request goes on to the inner service.
pub(crate) enum Verdict {
    /// It does: once the delay is over, if there is one. If the decision is to be shown in the answer, here it is.
    GoesOn { delayed_to: Option<Timestamp>, shown: Option<Box<Checked>> },
    /// It does not.
    Denied(Response<DenialBody>),
}

impl Answering {
    /// What follows from the limiter's answer. What a request that goes on shall know is put into its
    /// extensions.
    pub(crate) fn verdict(
        &self,
        request: &mut Parts,
        answer: Result<Checked, StoreError>,
        shadow: bool,
    ) -> Verdict {
        let checked = match answer {
            Ok(checked) => checked,
            Err(error) => {
                let passes = shadow || self.on_store_error == OnStoreError::Allow;
                return self.deny(request, Reason::StoreUnavailable(&error), passes);
            }
        };
        request.extensions.insert(checked.decision);
        if !checked.decision.is_allowed() {
            return self.deny(request, Reason::Refused(&checked), shadow);
        }
        self.tell(request, Report::Admitted(&checked));
        if shadow {
            return Verdict::GoesOn { delayed_to: None, shown: None };
        }
        let delayed_to = self.pace(request, &checked);
        Verdict::GoesOn { delayed_to, shown: self.on_admission.then(|| Box::new(checked)) }
    }

    /// The instant to sleep until, if there is a delay and it is not handed on.
    fn pace(&self, request: &mut Parts, checked: &Checked) -> Option<Timestamp> {
        let delay = checked.decision.delay();
        match self.pacing {
            _ if delay.is_zero() => None,
            Pacing::Sleep => Some(checked.at.saturating_add(delay)),
            Pacing::HandOn => {
                request.extensions.insert(HandedDelay(delay));
                None
            }
        }
    }

    /// Denies a request, unless it `passes` all the same.
    pub(crate) fn deny(&self, request: &Parts, reason: Reason<'_>, passes: bool) -> Verdict {
        if passes {
            self.tell(request, Report::Passed(reason));
            return Verdict::GoesOn { delayed_to: None, shown: None };
        }
        self.tell(request, Report::Denied(reason));
        let mut response = self.handler.respond(&Denial { request, reason });
        if let Reason::Refused(checked) = reason {
            self.fields.write(response.headers_mut(), &checked.standing());
        }
        Verdict::Denied(response)
    }

    /// Writes the limit fields into the answer to an admitted request. Fields that are there stay: whoever wrote
    /// them stands nearer to the work, and its limits are the narrower ones.
    pub(crate) fn show(&self, headers: &mut HeaderMap, checked: &Checked) {
        if !self.fields.are_in(headers) {
            self.fields.write(headers, &checked.standing());
        }
    }

    fn tell(&self, request: &Parts, report: Report<'_>) {
        if let Some(reporter) = &self.report {
            reporter(request, report);
        }
    }
}
