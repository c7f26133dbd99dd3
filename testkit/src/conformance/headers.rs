//! The response headers that follow from a decision, for doors that speak HTTP.

use crate::cases::LimitSpec;
use crate::oracle::{OracleDecision, OracleFigures, Outcome};

/// The greatest integer of a structured field (RFC 9651, 3.3.1); what is greater is shown as this.
const GREATEST: u128 = 999_999_999_999_999;

/// Compares the headers of an answer with what the decision says.
///
/// # Errors
/// What is missing, wrong or there twice.
pub(super) fn agree(
    sent: &[(String, String)],
    right: &OracleDecision,
    limits: &[LimitSpec],
) -> Result<(), String> {
    let headline = right.headline();
    let waits = right.outcome != Outcome::Allowed;
    let retry = headline.retry_after_us.filter(|_| waits).map(|us| seconds(us).max(1));
    expect(sent, "retry-after", retry.map(text))?;
    expect(sent, "x-ratelimit-limit", Some(text(headline.limit)))?;
    expect(sent, "x-ratelimit-remaining", Some(text(headline.remaining)))?;
    expect(sent, "x-ratelimit-reset", headline.reset_after_us.map(|us| text(seconds(us))))?;
    let policy = members(sent, "ratelimit-policy")?;
    let state = members(sent, "ratelimit")?;
    if !state.iter().any(|member| member.name == limits[right.bound_by].name) {
        return Err(format!("`ratelimit` does not name {:?}, which binds", limits[right.bound_by].name));
    }
    for (limit, figures) in limits.iter().zip(&right.limits) {
        let Some(stated) = policy.iter().find(|member| member.name == limit.name) else {
            return Err(format!("`ratelimit-policy` does not name {:?}", limit.name));
        };
        stated.expect("q", Some(u128::from(limit.capacity)))?;
        // An empty bucket of capacity 0 is full: there is no time from empty to full to state.
        if limit.capacity > 0 {
            stated.expect("w", window_seconds(limit))?;
        }
        if let Some(member) = state.iter().find(|member| member.name == limit.name) {
            member.expect_state(figures)?;
        }
    }
    Ok(())
}

/// Compares one header with its whole value; `None` for one that must be absent.
///
/// # Errors
/// What was sent instead.
pub(crate) fn expect(sent: &[(String, String)], name: &str, value: Option<String>) -> Result<(), String> {
    let values: Vec<&String> = sent.iter().filter(|(sent, _)| sent == name).map(|(_, v)| v).collect();
    match (&value, values.as_slice()) {
        (None, []) => Ok(()),
        (Some(value), [one]) if *one == value => Ok(()),
        _ => Err(format!("header `{name}` must be {value:?}, was sent as {values:?}")),
    }
}

fn text(n: impl std::fmt::Display) -> String {
    n.to_string()
}

fn seconds(us: u128) -> u128 {
    us.div_ceil(1_000_000)
}

/// Seconds from empty to full, or the window; absent if it never refills.
fn window_seconds(limit: &LimitSpec) -> Option<u128> {
    let (capacity, period) = (u128::from(limit.capacity), u128::from(limit.period_us));
    match (limit.kind.is_bucket(), u128::from(limit.amount)) {
        (false, _) => Some(seconds(period)),
        (true, 0) => None,
        (true, amount) => Some(seconds((capacity * period).div_ceil(amount)).max(1)),
    }
}

/// One member of a list of strings with integer parameters (RFC 9651).
#[derive(Debug)]
struct Member {
    name: String,
    parameters: Vec<(String, u128)>,
}

impl Member {
    fn expect(&self, parameter: &str, value: Option<u128>) -> Result<(), String> {
        let value = value.map(|value| value.min(GREATEST));
        let sent: Vec<u128> =
            self.parameters.iter().filter(|(name, _)| name == parameter).map(|(_, v)| *v).collect();
        if sent == Vec::from_iter(value) {
            return Ok(());
        }
        Err(format!("`{parameter}` of {:?} must be {value:?}, was sent as {sent:?}", self.name))
    }

    fn expect_state(&self, figures: &OracleFigures) -> Result<(), String> {
        self.expect("r", Some(u128::from(figures.remaining)))?;
        self.expect("t", figures.grows_after_us.map(seconds))
    }
}

fn members(sent: &[(String, String)], header: &str) -> Result<Vec<Member>, String> {
    let mut values = sent.iter().filter(|(name, _)| name == header).map(|(_, value)| value);
    match (values.next(), values.next()) {
        (Some(value), None) => {
            list(value).ok_or_else(|| format!("`{header}: {value}` is not a list of strings"))
        }
        (one, _) => {
            Err(format!("header `{header}` must be sent once, was sent {one:?} and more or not at all"))
        }
    }
}

/// Reads the list strictly: exactly what a serializer writes, and `None` for anything else.
fn list(value: &str) -> Option<Vec<Member>> {
    let mut rest = value;
    let mut members = Vec::new();
    loop {
        let (name, after) = string(rest)?;
        let (parameters, after) = parameters(after)?;
        members.push(Member { name, parameters });
        if after.is_empty() {
            return Some(members);
        }
        rest = after.strip_prefix(", ")?;
    }
}

fn string(text: &str) -> Option<(String, &str)> {
    let mut characters = text.strip_prefix('"')?.char_indices();
    let mut name = String::new();
    loop {
        match characters.next()? {
            (at, '"') => return Some((name, &text[at + 2..])),
            (_, '\\') => match characters.next()? {
                (_, escaped @ ('"' | '\\')) => name.push(escaped),
                _ => return None,
            },
            (_, plain @ ' '..='~') => name.push(plain),
            _ => return None,
        }
    }
}

fn parameters(mut rest: &str) -> Option<(Vec<(String, u128)>, &str)> {
    let mut parameters = Vec::new();
    while let Some(after) = rest.strip_prefix(';') {
        let (name, after) = after.split_once('=')?;
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        parameters.push((name.to_owned(), after[..digits].parse().ok()?));
        rest = &after[digits..];
    }
    Some((parameters, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_serializer_writes_and_nothing_else() {
        let members = list(r#""a\"b\\c";q=2;w=2, "daily";q=1000"#).expect("a list");
        assert_eq!(members[0].name, "a\"b\\c");
        assert_eq!(members[0].parameters, [("q".to_owned(), 2), ("w".to_owned(), 2)]);
        assert_eq!(members[1].parameters, [("q".to_owned(), 1000)]);
        for wrong in
            ["", "a;q=1", "\"a\";q=", "\"a\";q=1,\"b\"", "\"a\" ;q=1", "\"a\\n\"", "\"é\"", "\"a\";q=-1"]
        {
            assert!(list(wrong).is_none(), "{wrong}");
        }
    }
}
