//! Ranges of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of addresses: those that agree with `address` in its first `bits`.
///
/// ```
/// use tidegate_fields::client_ip::Cidr;
/// let range: Cidr = "2001:db8::/32".parse()?;
/// assert!(range.contains("2001:db8:7::1".parse()?));
/// assert!(!range.contains("192.0.2.1".parse()?));
/// assert_eq!(Cidr::around("2001:db8:1:2:3::4".parse()?, 64).to_string(), "2001:db8:1:2::/64");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

/// A text that is no range of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CidrError {
    text: String,
    rule: String,
}

impl fmt::Display for CidrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.text, self.rule)
    }
}

impl std::error::Error for CidrError {}

impl Cidr {
    /// The range of this many bits that `address` lies in; IPv4 in IPv6 is folded to IPv4. More bits than the
    /// address has count as all it has.
    pub fn around(address: IpAddr, bits: u8) -> Self {
        let address = address.to_canonical();
        let bits = bits.min(width(address));
        Cidr { address: masked(address, bits), bits }
    }

    /// Whether `address` lies in it. IPv4 in IPv6 is folded to IPv4 first, and an IPv4 address lies in no range
    /// of IPv6 addresses.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.bits) == self.address
    }

    /// Its first address.
    pub fn first(&self) -> IpAddr {
        self.address
    }

    /// How many leading bits its addresses share.
    pub fn bits(&self) -> u8 {
        self.bits
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    /// Reads `ADDRESS/BITS`, or an address alone.
    fn from_str(text: &str) -> Result<Self, CidrError> {
        let refused = |rule: String| CidrError { text: text.to_owned(), rule };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let Ok(written) = address.parse::<IpAddr>() else {
            return Err(refused("no range of addresses (write ADDRESS/BITS, such as 10.0.0.0/8)".into()));
        };
        let most = width(written);
        let bits = match bits.map(str::parse::<u8>) {
            None => most,
            Some(Ok(bits)) if bits <= most => bits,
            Some(_) => {
                return Err(refused(format!("a prefix has 0 to {most} bits (write {written}/{most})")));
            }
        };
        let first = masked(written, bits);
        if first != written {
            return Err(refused(format!("the address has bits beyond its prefix (write {first}/{bits})")));
        }
        match written.to_canonical() {
            folded if folded.is_ipv4() == written.is_ipv4() => Ok(Cidr { address: folded, bits }),
            // A prefix that leaves the 96 bits of "IPv4 in IPv6" whole, or it would not have been the first.
            folded => Ok(Cidr { address: folded, bits: bits.saturating_sub(96) }),
        }
    }
}

impl fmt::Display for Cidr {
    /// An address alone if the range holds no other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits == width(self.address) {
            true => self.address.fmt(f),
            false => write!(f, "{}/{}", self.address, self.bits),
        }
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn range(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn reads_ranges_and_writes_them_shortest() {
        for (text, written) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.1.2.3", "10.1.2.3"),
            ("10.1.2.3/32", "10.1.2.3"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::/0", "::/0"),
            ("2001:DB8:0::/48", "2001:db8::/48"),
            ("::1", "::1"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
        ] {
            assert_eq!(range(text).to_string(), written, "{text}");
        }
    }

    #[test]
    fn refuses_by_value_rule_and_mend() {
        for (text, message) in [
            ("", r#""": no range of addresses (write ADDRESS/BITS, such as 10.0.0.0/8)"#),
            ("10.0.0.0.0/8", "no range of addresses"),
            ("localhost", "no range of addresses"),
            ("fe80::1%eth0", "no range of addresses"),
            ("10.0.0.0/33", "a prefix has 0 to 32 bits (write 10.0.0.0/32)"),
            ("10.0.0.0/", "a prefix has 0 to 32 bits"),
            ("10.0.0.0/-1", "a prefix has 0 to 32 bits"),
            ("::/129", "a prefix has 0 to 128 bits"),
            ("10.1.0.0/8", "the address has bits beyond its prefix (write 10.0.0.0/8)"),
            ("::ffff:10.0.0.0/95", "the address has bits beyond its prefix"),
        ] {
            let error = text.parse::<Cidr>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn families_are_apart_except_for_ipv4_in_ipv6() {
        let is_in = |address: &str, text: &str| range(text).contains(address.parse().unwrap());
        assert!(is_in("10.255.0.1", "10.0.0.0/8"));
        assert!(!is_in("11.0.0.1", "10.0.0.0/8"));
        assert!(is_in("::ffff:10.0.0.1", "10.0.0.0/8"));
        assert!(is_in("10.0.0.1", "::ffff:10.0.0.0/104"));
        assert!(!is_in("10.0.0.1", "::/0"));
        assert!(!is_in("::a00:1", "0.0.0.0/0"));
        assert!(is_in("255.255.255.255", "0.0.0.0/0"));
        assert!(is_in("2001:db8:ffff::", "2001:db8::/32"));
        assert!(!is_in("2001:db9::", "2001:db8::/32"));
    }
}
