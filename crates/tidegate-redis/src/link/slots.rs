//! The slots of a cluster: which a key is in, and whose they are.

use std::sync::Arc;

use redis::Value;

use crate::address::Host;

/// So many slots there are.
const SLOTS: usize = 16_384;

/// The slot of a key: of what stands in its first `{}`, if anything does, else of all of it.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|&byte| byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS as u16
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8)
            .fold(crc ^ u16::from(byte) << 8, |crc, _| crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 })
    })
}

/// Whose each slot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Map {
    masters: Vec<Host>,
    /// For each slot one more than the place of its master among them; 0 for a slot that nobody serves.
    slots: Arc<[u16]>,
}

impl Map {
    /// The master of a slot, if it has one.
    pub fn master_of(&self, slot: u16) -> Option<&Host> {
        let place = *self.slots.get(usize::from(slot))?;
        self.masters.get(usize::from(place).checked_sub(1)?)
    }

    /// All that serve slots, each once.
    pub fn masters(&self) -> &[Host] {
        &self.masters
    }

    /// The map with this slot at `to`, as a server said of it.
    pub fn moved(&self, slot: u16, to: &Host) -> Self {
        let mut masters = self.masters.clone();
        let place = masters.iter().position(|host| host == to).unwrap_or_else(|| {
            masters.push(to.clone());
            masters.len() - 1
        });
        let mut slots = self.slots.to_vec();
        if let Some(slot) = slots.get_mut(usize::from(slot)) {
            *slot = place as u16 + 1;
        }
        Self { masters, slots: slots.into() }
    }

    /// What `CLUSTER SLOTS` answers. `asked` is who was asked, for a node that does not know its own address.
    pub fn read(answer: Value, asked: &Host) -> Option<Self> {
        let mut map = Self { masters: Vec::new(), slots: Arc::default() };
        let mut slots = vec![0; SLOTS];
        for range in list(answer)? {
            let mut parts = list(range)?.into_iter();
            let (first, last) = (number(parts.next()?)?, number(parts.next()?)?);
            let Some(master) = parts.next().and_then(|node| host(node, asked)) else { continue };
            let place = map.masters.iter().position(|host| *host == master).unwrap_or_else(|| {
                map.masters.push(master);
                map.masters.len() - 1
            });
            slots.get_mut(first..=last)?.fill(place as u16 + 1);
        }
        map.slots = slots.into();
        (!map.masters.is_empty()).then_some(map)
    }
}

fn host(node: Value, asked: &Host) -> Option<Host> {
    let mut parts = list(node)?.into_iter();
    let (name, port) = (parts.next()?, number(parts.next()?)?);
    // Nil and empty: where I was asked. "?": not known yet.
    let name = match name {
        Value::Nil => String::new(),
        name => redis::from_redis_value(name).ok()?,
    };
    host_named(&name, port.try_into().ok()?, asked)
}

fn host_named(name: &str, port: u16, asked: &Host) -> Option<Host> {
    match name {
        "" => Some(Host { name: asked.name.clone(), port }),
        "?" => None,
        name => Some(Host { name: name.to_owned(), port }),
    }
}

/// Where `MOVED` or `ASK` points: `host:port`, and `:port` at the host that was asked.
pub(super) fn redirect(to: &str, asked: &Host) -> Option<Host> {
    let (name, port) = to.rsplit_once(':')?;
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    host_named(name, port.parse().ok()?, asked)
}

fn list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(list) => Some(list),
        _ => None,
    }
}

fn number(value: Value) -> Option<usize> {
    match value {
        Value::Int(number) => number.try_into().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // CLUSTER KEYSLOT on a server; the first is the specification's.
        for (key, slot) in
            [(&b"123456789"[..], 0x31C3), (b"", 0), (b"a", 15495), (b"{a}b", 15495), (b"x{a}{b}", 15495)]
        {
            assert_eq!(slot_of(key), slot, "{key:?}");
        }
        for key in [&b"{}a"[..], b"foo{}{bar}", b"}{", b"x{a", b"\xff\0"] {
            assert_eq!(slot_of(key), crc16(key) % 16_384, "{key:?}");
        }
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"x{{bar}"));
    }

    fn name(name: &str, port: u16) -> Host {
        Host { name: name.to_owned(), port }
    }

    fn range(first: i64, last: i64, node: Value) -> Value {
        let replica = Value::Array(vec![Value::BulkString(b"r".to_vec()), Value::Int(9)]);
        Value::Array(vec![Value::Int(first), Value::Int(last), node, replica])
    }

    fn node(name: Value, port: i64) -> Value {
        Value::Array(vec![name, Value::Int(port), Value::BulkString(b"id".to_vec())])
    }

    #[test]
    fn the_map_names_masters_and_knows_of_gaps() {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let answer = Value::Array(vec![
            range(0, 99, node(bulk("m1"), 1)),
            range(100, 199, node(Value::Nil, 2)),
            range(200, 299, node(bulk(""), 3)),
            range(300, 399, node(bulk("?"), 4)),
            range(16_000, 16_383, node(bulk("m1"), 1)),
        ]);
        let map = Map::read(answer, &name("asked", 7)).unwrap();
        for (slot, master) in [
            (0, Some(name("m1", 1))),
            (99, Some(name("m1", 1))),
            (100, Some(name("asked", 2))),
            (299, Some(name("asked", 3))),
            (300, None),
            (400, None),
            (16_383, Some(name("m1", 1))),
            (16_384, None),
        ] {
            assert_eq!(map.master_of(slot), master.as_ref(), "{slot}");
        }
        assert_eq!(map.masters().len(), 3);
        let moved = map.moved(400, &name("new", 8)).moved(0, &name("asked", 3));
        assert_eq!(moved.master_of(400), Some(&name("new", 8)));
        assert_eq!((moved.master_of(0), moved.master_of(1)), (Some(&name("asked", 3)), Some(&name("m1", 1))));
    }

    #[test]
    fn what_is_no_map_is_none() {
        let asked = name("asked", 7);
        for answer in [
            Value::Nil,
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 16_384, node(Value::Nil, 1))]),
            Value::Array(vec![range(5, 4, node(Value::Nil, 70_000))]),
            Value::Array(vec![range(-1, 4, node(Value::Nil, 1))]),
        ] {
            assert_eq!(Map::read(answer.clone(), &asked), None, "{answer:?}");
        }
    }

    #[test]
    fn redirections_point_somewhere() {
        let asked = name("asked", 7);
        for (to, host) in [
            ("127.0.0.1:1", Some(name("127.0.0.1", 1))),
            (":2", Some(name("asked", 2))),
            ("[::1]:3", Some(name("::1", 3))),
            ("::1:3", Some(name("::1", 3))),
            ("?:4", None),
            ("h", None),
            ("h:x", None),
        ] {
            assert_eq!(redirect(to, &asked), host, "{to}");
        }
    }
}
