//! A gRPC status with details, as response headers.
//!
//! The handful of messages of `google.rpc` is written by hand: a generator and its runtime would weigh more than
//! the whole crate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::wire::Message;

/// The codes a denial may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    InvalidArgument = 3,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

/// `google.rpc.Status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) details: Vec<Detail>,
}

/// What is told beside the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Detail {
    /// `google.rpc.RetryInfo`: when the call would be admitted.
    RetryInfo { micros: u128 },
    /// `google.rpc.QuotaFailure`: which limits refused.
    QuotaFailure(Vec<Violation>),
}

/// `google.rpc.QuotaFailure.Violation`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) subject: String,
    pub(super) description: String,
    pub(super) quota_id: String,
    pub(super) quota_value: u64,
}

/// The longest that `google.protobuf.Duration` may be, about ten thousand years.
const LONGEST_SECONDS: u64 = 315_576_000_000;

impl Status {
    /// Writes `grpc-status`, `grpc-message` and, if there are details, `grpc-status-details-bin`.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(HeaderName::from_static("grpc-status"), HeaderValue::from(self.code as u16));
        let message = HeaderValue::try_from(percent_encoded(&self.message));
        let message = message.expect("what is not printable ASCII has been encoded");
        headers.insert(HeaderName::from_static("grpc-message"), message);
        if !self.details.is_empty() {
            let details = HeaderValue::try_from(STANDARD_NO_PAD.encode(self.encode()));
            let details = details.expect("base64 is printable ASCII");
            headers.insert(HeaderName::from_static("grpc-status-details-bin"), details);
        }
    }

    fn encode(&self) -> Vec<u8> {
        let status = Message::new().number(1, self.code as u64).text(2, &self.message);
        self.details.iter().fold(status, |status, detail| status.message(3, detail.as_any())).into_bytes()
    }
}

impl Detail {
    /// As `google.protobuf.Any`.
    fn as_any(&self) -> Message {
        let (name, value) = match self {
            Detail::RetryInfo { micros } => ("google.rpc.RetryInfo", retry_info(*micros)),
            Detail::QuotaFailure(violations) => ("google.rpc.QuotaFailure", quota_failure(violations)),
        };
        Message::new().text(1, &format!("type.googleapis.com/{name}")).message(2, value)
    }
}

fn retry_info(micros: u128) -> Message {
    let seconds = u64::try_from(micros / 1_000_000).unwrap_or(u64::MAX).min(LONGEST_SECONDS);
    // Below a billion.
    let nanos = (micros % 1_000_000) as u64 * 1_000;
    Message::new().message(1, Message::new().number(1, seconds).number(2, nanos))
}

fn quota_failure(violations: &[Violation]) -> Message {
    violations.iter().fold(Message::new(), |failure, violation| {
        let message = Message::new()
            .text(1, &violation.subject)
            .text(2, &violation.description)
            .text(5, &violation.quota_id)
            .number(7, violation.quota_value);
        failure.message(1, message)
    })
}

/// Encodes what gRPC wants encoded in a message: all but printable ASCII, and `%`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' => encoded.push_str("%25"),
            b' '..=b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_encoded_as_protobuf_has_it() {
        let status = Status {
            code: Code::ResourceExhausted,
            message: "no".into(),
            details: vec![Detail::RetryInfo { micros: 1_500_000 }],
        };
        let any = [
            &[0x0a, 40][..],
            b"type.googleapis.com/google.rpc.RetryInfo",
            &[0x12, 10, 0x0a, 8, 0x08, 1, 0x10, 0x80, 0xca, 0xb5, 0xee, 0x01],
        ]
        .concat();
        let mut expected = vec![0x08, 8, 0x12, 2, b'n', b'o', 0x1a, any.len() as u8];
        expected.extend(any);
        assert_eq!(status.encode(), expected);
    }

    #[test]
    fn a_wait_of_ages_is_the_longest_there_is() {
        let longest = Message::new().message(1, Message::new().number(1, LONGEST_SECONDS)).into_bytes();
        assert_eq!(retry_info(u128::from(u64::MAX) * 1_000_000).into_bytes(), longest);
    }

    #[test]
    fn a_message_survives_headers() {
        assert_eq!(percent_encoded("100 % é\n"), "100 %25 %C3%A9%0A");
    }
}
