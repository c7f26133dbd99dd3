//! The bodies of refusals, word for word.

#![allow(clippy::unwrap_used)]

use http::StatusCode;
use tidegate::{Decision, Limit, Limiter, Period, Policy, Rate, Timestamp, Units};
use tidegate_fields::Problem;

fn refusal(costs: &[u32]) -> Option<Problem> {
    let policy = Policy::builder("api")
        .limit("burst", Limit::token_bucket(5, Rate::per_second(2)))
        .limit("log \"5\"", Limit::sliding_window_log(5, Period::MINUTE).unwrap())
        .build()
        .unwrap();
    let handle = Limiter::new(policy).policy("api").unwrap();
    let at = Timestamp::from_micros(1_700_000_000_000_000).unwrap();
    let decisions: Vec<Decision> = costs.iter().map(|cost| handle.check_at("a", *cost, at)).collect();
    Problem::of_refusal(&handle.policy(), decisions.last().unwrap())
}

#[test]
fn a_refusal_names_every_limit_that_refuses() {
    assert_eq!(
        refusal(&[5, 1]).unwrap().to_json(),
        concat!(
            r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","#,
            r#""status":429,"detail":"Limit \"log \\\"5\\\"\" of 5 is used up; try again in 60 s.","#,
            r#""violated-policies":["burst","log \"5\""]}"#
        )
    );
    assert_eq!(refusal(&[5]), None);
}

#[test]
fn a_cost_that_never_fits_does_not_advise_to_wait() {
    let problem = refusal(&[6]).unwrap();
    assert_eq!(problem.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        problem.detail,
        "The request costs more than limit \"burst\" can ever hold, 5; waiting does not help."
    );
    assert_eq!(problem.violated_policies, ["burst", "log \"5\""]);
}

#[test]
fn a_full_store_is_a_server_short_of_room_not_a_client_over_quota() {
    let policy = Policy::single("api", Limit::token_bucket(5, Rate::per_second(2))).unwrap();
    let problem = Problem::of_refusal(&policy, &Decision::overloaded(Units::new(5).unwrap())).unwrap();
    assert_eq!(problem.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(problem.kind.ends_with("#temporary-reduced-capacity"), "{}", problem.kind);
    assert_eq!(problem.violated_policies, ["api"]);
}

#[test]
fn whatever_the_detail_the_body_is_json() {
    for detail in ["", "\"", "\\", "\u{0}\n\u{1f}\u{7f}é\u{2028}\u{10ffff}"] {
        let problem = Problem::of_status(StatusCode::FORBIDDEN, detail);
        let json: serde_json::Value = serde_json::from_str(&problem.to_json()).unwrap();
        assert_eq!(json["detail"], detail);
        assert_eq!(json["type"], "about:blank");
        assert_eq!(json["title"], "Forbidden");
        assert_eq!(json["status"], 403);
        assert!(json.get("violated-policies").is_none());
    }
}
