//! Writing protobuf.

/// A message being written, field by field. Fields of the default value are left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new() -> Self {
        Message::default()
    }

    /// A field of any integer type that is not negative.
    pub(super) fn number(mut self, field: u8, value: u64) -> Self {
        if value != 0 {
            self.tag(field, 0);
            self.varint(value);
        }
        self
    }

    /// A string.
    pub(super) fn text(self, field: u8, value: &str) -> Self {
        if value.is_empty() { self } else { self.bytes(field, value.as_bytes()) }
    }

    /// A message, empty or not.
    pub(super) fn message(self, field: u8, value: Message) -> Self {
        self.bytes(field, &value.0)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn bytes(mut self, field: u8, value: &[u8]) -> Self {
        self.tag(field, 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    fn tag(&mut self, field: u8, kind: u8) {
        self.varint(u64::from(field) << 3 | u64::from(kind));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_in_groups_of_seven_bits() {
        let written = |value| Message::new().number(1, value).into_bytes();
        assert!(written(0).is_empty());
        assert_eq!(written(127), [0x08, 0x7f]);
        assert_eq!(written(300), [0x08, 0xac, 0x02]);
        assert_eq!(written(u64::MAX), [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }
}
