//! The target of a request: its path, in every way an application may read it, and its query.

use std::borrow::Cow;

/// The target of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target<'r> {
    /// The path as it came.
    pub path: &'r [u8],
    query: &'r [u8],
}

impl<'r> Target<'r> {
    /// Takes apart `/path?query`, or the same behind a scheme and host.
    pub fn of(uri: &'r [u8]) -> Self {
        let uri = match memchr::memmem::find(uri, b"://") {
            Some(at) if uri[..at].iter().all(u8::is_ascii_alphanumeric) => {
                let rest = &uri[at + 3..];
                rest.iter().position(|byte| b"/?#".contains(byte)).map_or(&b""[..], |at| &rest[at..])
            }
            _ => uri,
        };
        let uri = uri.split(|byte| *byte == b'#').next().unwrap_or(uri);
        match memchr::memchr(b'?', uri) {
            Some(at) => Target { path: &uri[..at], query: &uri[at + 1..] },
            None => Target { path: uri, query: b"" },
        }
    }

    /// The values of a parameter, its escapes undone.
    pub fn parameters(self, name: &str) -> impl Iterator<Item = Vec<u8>> {
        let pairs = self.query.split(|byte| *byte == b'&');
        pairs.filter_map(move |pair| {
            let (known, value) = match memchr::memchr(b'=', pair) {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &b""[..]),
            };
            (unescape(known, true, false) == name.as_bytes()).then(|| unescape(value, true, false))
        })
    }

    /// The path with its escapes undone, doubled slashes and dots resolved.
    pub fn resolved_path(self) -> Cow<'r, [u8]> {
        if is_plain(self.path) {
            self.path.into()
        } else {
            resolve(&unescape(self.path, false, false)).into()
        }
    }
}

/// The path in every way an application may read it: as it came, resolved, and resolved with an escaped slash
/// taken for data. A rule that fits one of them applies, so that no spelling slips past it.
pub(super) fn readings(path: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let mut readings = vec![Cow::Borrowed(path)];
    if !is_plain(path) {
        for keep_slashes in [false, true] {
            let resolved = resolve(&unescape(path, false, keep_slashes));
            if !readings.iter().any(|known| **known == resolved) {
                readings.push(resolved.into());
            }
        }
    }
    readings
}

/// Whether there is but one way to read it.
fn is_plain(path: &[u8]) -> bool {
    path.starts_with(b"/")
        && !path.contains(&b'%')
        && !path.windows(2).any(|two| two == b"//" || two == b"/.")
}

/// Undoes escapes; what is no escape stays.
fn unescape(text: &[u8], form: bool, keep_slashes: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [high, low, further @ ..]) => {
                match hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low) {
                    Some(b'/') if keep_slashes => bytes.push(b'%'),
                    Some(byte) => {
                        rest = further;
                        bytes.push(byte);
                    }
                    None => bytes.push(b'%'),
                }
            }
            (b'+', _) if form => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Removes empty and dot segments (RFC 3986, 5.2.4, and what servers do with `//`).
fn resolve(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut open_end = false;
    for segment in path.split(|byte| *byte == b'/') {
        open_end = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    let mut resolved = Vec::with_capacity(path.len() + 1);
    for segment in kept {
        resolved.push(b'/');
        resolved.extend_from_slice(segment);
    }
    if open_end {
        resolved.push(b'/');
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Vec<String> {
        readings(path.as_bytes()).iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect()
    }

    #[test]
    fn a_path_is_read_in_every_way() {
        for (path, expected) in [
            ("/v1/orders", &["/v1/orders"][..]),
            ("/", &["/"]),
            ("", &["", "/"]),
            ("/v1/%6frders", &["/v1/%6frders", "/v1/orders"]),
            ("//v1//orders/", &["//v1//orders/", "/v1/orders/"]),
            ("/x/../v1/./orders", &["/x/../v1/./orders", "/v1/orders"]),
            ("/../../v1", &["/../../v1", "/v1"]),
            ("/v1/..", &["/v1/..", "/"]),
            ("/x/%2e%2E/v1", &["/x/%2e%2E/v1", "/v1"]),
            ("/v1/..%2fother", &["/v1/..%2fother", "/other", "/v1/..%2fother"][..2]),
            ("/%761/..%2F..%2Fother", &["/%761/..%2F..%2Fother", "/other", "/v1/..%2F..%2Fother"]),
            ("/100%", &["/100%"]),
            ("/%zz", &["/%zz"]),
            ("v1", &["v1", "/v1"]),
        ] {
            assert_eq!(read(path), expected, "{path}");
        }
    }

    #[test]
    fn a_target_is_taken_apart() {
        for (uri, path) in [
            ("/a/b?c=/d?e", "/a/b"),
            ("/a#b?c", "/a"),
            ("http://example.com/a?b", "/a"),
            ("https://example.com?b", ""),
            ("/a?u=http://example.com/b", "/a"),
            ("*", "*"),
        ] {
            assert_eq!(Target::of(uri.as_bytes()).path, path.as_bytes(), "{uri}");
        }
        let target = Target::of(b"/?a=1&b=x+y%21&%61=2&c");
        assert_eq!(target.parameters("a").collect::<Vec<_>>(), [b"1", b"2"]);
        assert_eq!(target.parameters("b").collect::<Vec<_>>(), [b"x y!"]);
        assert_eq!(target.parameters("c").collect::<Vec<_>>(), [b""]);
        assert_eq!(target.parameters("d").count(), 0);
        assert_eq!(&*Target::of(b"/a/../%62").resolved_path(), b"/b");
    }
}
