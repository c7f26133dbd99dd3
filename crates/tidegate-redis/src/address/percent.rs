//! Bytes that mean something in an address, written as `%40`.

/// The text with `%XX` made bytes again. Its error says what is wrong, and not with which text.
pub(super) fn decode(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err("a % without two hexadecimal digits after it (write %25 for %)");
        };
        bytes.push((high * 16 + low) as u8);
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err("%00, which no name has"),
        Ok(text) => Ok(text),
        Err(_) => Err("%XX that make no UTF-8"),
    }
}

/// The text with `%XX` for all but letters, digits and `-._~`.
pub(super) fn encode(text: &str) -> String {
    encode_but(text, b"-._~")
}

/// As [`encode`], slashes left alone.
pub(super) fn encode_path(text: &str) -> String {
    encode_but(text, b"-._~/")
}

fn encode_but(text: &str, plain: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
