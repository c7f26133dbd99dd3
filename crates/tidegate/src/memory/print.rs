//! Who a key is: SipHash-1-3 with 128 bits of result, keyed with a secret.
//!
//! Written out for the one use there is of it, a number and then a key at once, because it is half the work
//! of a check: a hasher that takes bytes in pieces keeps what is left over from each.

use super::table::Fingerprint;

/// The secret that makes the prints of a store its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret {
    pub(crate) first: u64,
    pub(crate) second: u64,
}

impl Secret {
    /// One drawn at random.
    ///
    /// # Panics
    /// If the operating system has no randomness to draw from.
    pub(crate) fn drawn() -> Self {
        let draw = || getrandom::u64().expect("the operating system has randomness to draw from");
        Secret { first: draw(), second: draw() }
    }

    /// 128 bits of a hash of `number` and `key`, so that nobody outside can make two keys share a state.
    ///
    /// The number has a fixed width, so no two pairs of number and key are the same bytes.
    #[inline]
    pub(crate) fn print(self, number: u64, key: &[u8]) -> Fingerprint {
        let mut state = State::new(self);
        state.absorb(number);
        let mut words = key.chunks_exact(8);
        for word in &mut words {
            // A chunk of eight has eight bytes.
            state.absorb(word.try_into().map_or(0, u64::from_le_bytes));
        }
        let length = (key.len() as u64 + 8) << 56;
        state.absorb(length | last_bytes(key));
        let (lo, hi) = state.finish();
        Fingerprint::new(lo, hi)
    }
}

/// The bytes after the last whole word, the first of them lowest.
#[inline]
fn last_bytes(key: &[u8]) -> u64 {
    let bits = key.len() % 8 * 8;
    match key.last_chunk::<8>() {
        _ if bits == 0 => 0,
        Some(last) => u64::from_le_bytes(*last) >> (64 - bits),
        None => key.iter().rev().fold(0, |bytes, byte| bytes << 8 | u64::from(*byte)),
    }
}

struct State([u64; 4]);

impl State {
    #[inline]
    fn new(Secret { first, second }: Secret) -> Self {
        State([
            first ^ 0x736f_6d65_7073_6575,
            // 0xee: of the variant with 128 bits.
            second ^ 0x646f_7261_6e64_6f6d ^ 0xee,
            first ^ 0x6c79_6765_6e65_7261,
            second ^ 0x7465_6462_7974_6573,
        ])
    }

    #[inline]
    fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    #[inline]
    fn finish(mut self) -> (u64, u64) {
        self.0[2] ^= 0xee;
        let lo = self.three_rounds();
        self.0[1] ^= 0xdd;
        (lo, self.three_rounds())
    }

    #[inline]
    fn three_rounds(&mut self) -> u64 {
        (0..3).for_each(|_| self.round());
        let [v0, v1, v2, v3] = self.0;
        v0 ^ v1 ^ v2 ^ v3
    }

    #[inline]
    fn round(&mut self) {
        let [mut v0, mut v1, mut v2, mut v3] = self.0;
        v0 = v0.wrapping_add(v1);
        v2 = v2.wrapping_add(v3);
        v1 = v1.rotate_left(13) ^ v0;
        v3 = v3.rotate_left(16) ^ v2;
        v0 = v0.rotate_left(32);
        v2 = v2.wrapping_add(v1);
        v0 = v0.wrapping_add(v3);
        v1 = v1.rotate_left(17) ^ v2;
        v3 = v3.rotate_left(21) ^ v0;
        v2 = v2.rotate_left(32);
        self.0 = [v0, v1, v2, v3];
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;

    use siphasher::sip128::{Hasher128, SipHasher13};

    use super::*;

    /// Of every length around the words it is made of, it is what the reference says.
    #[test]
    fn a_print_is_siphash_of_the_number_and_the_key() {
        let bytes: Vec<u8> = (0..600_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for length in (0..=70).chain([255, 256, 257, 599, 600]) {
            for number in [0, 1, 0xff, u64::MAX] {
                let secret = Secret { first: 0x0706_0504_0302_0100 ^ number, second: 0x0f0e_0d0c_0b0a_0908 };
                let mut hasher = SipHasher13::new_with_keys(secret.first, secret.second);
                hasher.write(&number.to_le_bytes());
                hasher.write(&bytes[..length]);
                let right = hasher.finish128();
                let print = secret.print(number, &bytes[..length]);
                assert_eq!(print, Fingerprint::new(right.h1, right.h2), "{number} and {length} bytes");
            }
        }
    }
}
