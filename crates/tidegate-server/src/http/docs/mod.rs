//! The OpenAPI document, and the page at `/docs` to try the server on.

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, header};
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi as Generated;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{IntoResponses, Modify, OpenApi};

use super::problem::Problem;

/// What the document says of the server as a whole; its paths come from the handlers.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tidegate",
        description = "Decides, for each client and each request, whether work may go ahead now. What cannot be read as \
                       HTTP at all (400), and a head too large to be read (431), are answered without a body.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers((url = "/", description = "This server")),
    paths(crate::forward_auth::ask),
    tags(
        (name = "limits", description = "Decisions, and what they are made by"),
        (name = "admin", description = "Changes by hand; only with the admin token the server was started with"),
        (name = "operation", description = "For monitoring and orchestration"),
    ),
    modifiers(&AdminScheme),
)]
pub(super) struct Document;

struct AdminScheme;

impl Modify for AdminScheme {
    fn modify(&self, document: &mut Generated) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("admin", scheme);
    }
}

/// What may be wrong with any POST.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only its responses are used")]
pub(super) enum PostProblems {
    /// The body is not what it should be
    #[response(status = 400, content_type = "application/problem+json")]
    InvalidRequest(#[to_schema] Problem),
    /// No policy has the name asked for
    #[response(status = 404, content_type = "application/problem+json")]
    UnknownPolicy(#[to_schema] Problem),
    /// The body did not arrive in time
    #[response(status = 408, content_type = "application/problem+json")]
    BodyTooSlow(#[to_schema] Problem),
    /// The body is too large
    #[response(status = 413, content_type = "application/problem+json")]
    BodyTooLarge(#[to_schema] Problem),
    /// The body is not declared as JSON
    #[response(status = 415, content_type = "application/problem+json")]
    UnsupportedMediaType(#[to_schema] Problem),
    /// What the store keeps of the key is damaged, or it is not set up for this: there is no decision
    #[response(status = 500, content_type = "application/problem+json")]
    Broken(#[to_schema] Problem),
    /// The store of the limits did not answer: there is no decision
    #[response(status = 503, content_type = "application/problem+json")]
    StoreUnavailable(#[to_schema] Problem),
}

/// What may be wrong with a GET that asks about a key.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only its responses are used")]
pub(super) enum GetProblems {
    /// The query is not what it should be
    #[response(status = 400, content_type = "application/problem+json")]
    InvalidRequest(#[to_schema] Problem),
    /// No policy has the name asked for
    #[response(status = 404, content_type = "application/problem+json")]
    UnknownPolicy(#[to_schema] Problem),
    /// What the store keeps of the key is damaged, or it is not set up for this: there is no decision
    #[response(status = 500, content_type = "application/problem+json")]
    Broken(#[to_schema] Problem),
    /// The store of the limits did not answer: there is no decision
    #[response(status = 503, content_type = "application/problem+json")]
    StoreUnavailable(#[to_schema] Problem),
}

/// What may be wrong with an admin's POST.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only its responses are used")]
pub(super) enum AdminProblems {
    /// The body is not what it should be
    #[response(status = 400, content_type = "application/problem+json")]
    InvalidRequest(#[to_schema] Problem),
    /// Without the admin token, or with another
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(#[to_schema] Problem),
    /// The server was started without an admin token
    #[response(status = 403, content_type = "application/problem+json")]
    AdminOff(#[to_schema] Problem),
    /// No policy has the name asked for
    #[response(status = 404, content_type = "application/problem+json")]
    UnknownPolicy(#[to_schema] Problem),
    /// The body did not arrive in time
    #[response(status = 408, content_type = "application/problem+json")]
    BodyTooSlow(#[to_schema] Problem),
    /// The body is too large
    #[response(status = 413, content_type = "application/problem+json")]
    BodyTooLarge(#[to_schema] Problem),
    /// The body is not declared as JSON
    #[response(status = 415, content_type = "application/problem+json")]
    UnsupportedMediaType(#[to_schema] Problem),
    /// What the store keeps of the key is damaged, or it is not set up for this: there is no decision
    #[response(status = 500, content_type = "application/problem+json")]
    Broken(#[to_schema] Problem),
    /// The store of the limits did not answer: there is no decision
    #[response(status = 503, content_type = "application/problem+json")]
    StoreUnavailable(#[to_schema] Problem),
}

/// The bodies that name a key by one of two fields.
const KEYED: [&str; 3] = ["Check", "Adjustment", "Reset"];

/// The document as text, with what the generator has no words for.
pub(super) fn openapi(document: Generated) -> String {
    // Built from strings and maps: nothing in it can fail to be written.
    let mut document = serde_json::to_value(document).unwrap_or_default();
    for name in KEYED {
        if let Value::Object(schema) = &mut document["components"]["schemas"][name] {
            schema.insert("oneOf".into(), json!([{"required": ["key"]}, {"required": ["key_b64"]}]));
        }
    }
    if let Value::Object(path) = &mut document["paths"]["/v1/forward-auth/{rule}"] {
        by_any_method(path);
    }
    document.to_string()
}

/// Says of every method what is said of GET.
fn by_any_method(path: &mut Map<String, Value>) {
    let Some(get) = path.get("get").cloned() else { return };
    for method in ["head", "post", "put", "patch", "delete", "options", "trace"] {
        let mut same = get.clone();
        same["operationId"] = json!(format!("forward_auth_{method}"));
        if let (Value::Object(responses), "head") = (&mut same["responses"], method) {
            // It has no body whatever the answer is.
            responses
                .values_mut()
                .filter_map(Value::as_object_mut)
                .for_each(|told| drop(told.remove("content")));
        }
        path.insert(method.to_owned(), same);
    }
}

pub(super) async fn document(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], Bytes::from(text)).into_response()
}

/// Nothing from elsewhere is loaded or called, and no other site frames the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("page.html"))
}

pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("page.js"))
}

pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("page.css"))
}

fn file(media_type: &'static str, text: &'static str) -> Response {
    const X_CONTENT_TYPE_OPTIONS: HeaderName = header::X_CONTENT_TYPE_OPTIONS;
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::super::problem::ProblemKind;

    #[test]
    fn the_page_has_a_line_on_every_problem() {
        let page = include_str!("page.html");
        for kind in ProblemKind::ALL {
            let (_, anchor) = kind.uri().split_once('#').unwrap();
            assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor}");
        }
    }

    #[test]
    fn nothing_comes_from_elsewhere() {
        for text in [include_str!("page.html"), include_str!("page.js"), include_str!("page.css")] {
            assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("//cdn"));
        }
    }
}
