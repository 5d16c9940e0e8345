//! The proxies that are trusted to say whom they speak for, by their networks.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::http::HeaderMap;

use crate::api::header_names::X_FORWARDED_FOR;

/// Addresses with a common prefix: `10.0.0.0/8`, `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an address or a network such as 10.0.0.1, 10.0.0.0/8 or fd00::/8")]
pub struct NoNetwork;

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let (address, bits) = text
            .split_once('/')
            .map_or((text, None), |(address, bits)| (address, Some(bits)));
        let first: IpAddr = address.parse().map_err(|_| NoNetwork)?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| NoNetwork)?;
        if bits > most {
            Err(NoNetwork)
        } else {
            Ok(Self { first, bits })
        }
    }
}

impl Network {
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let begins_alike = |one: u128, other: u128, width: u32| {
            let rest = width - u32::from(self.bits);
            one.checked_shr(rest) == other.checked_shr(rest)
        };
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                begins_alike(u32::from(one).into(), u32::from(other).into(), 32)
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => begins_alike(one.into(), other.into(), 128),
            _ => false,
        }
    }
}

/// Proxies that are trusted to name their clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(pub Vec<Network>);

impl TrustedProxies {
    #[must_use]
    pub fn include(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// The client behind `peer`: the last address in `X-Forwarded-For` that is not a trusted proxy. Anybody
    /// could have written the entries before it.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.include(peer) {
            return peer;
        }
        let named: Vec<&str> = headers
            .get_all(X_FORWARDED_FOR)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','))
            .collect();
        let mut client = peer;
        for name in named.iter().rev() {
            let Some(address) = named_address(name.trim()) else {
                break;
            };
            client = address;
            if !self.include(address) {
                break;
            }
        }
        client
    }
}

/// An address as proxies write it: some add the port, and then brackets around an IPv6 address.
fn named_address(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || {
        text.strip_prefix('[')?
            .strip_suffix(']')?
            .parse::<Ipv6Addr>()
            .ok()
    };
    let bare = text.parse::<IpAddr>().ok();
    bare.or_else(with_port).or_else(|| in_brackets().map(IpAddr::V6))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn networks_hold_what_begins_like_them() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.1"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("fd00::/8", "fdff::1", "fe80::1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.contains(address(inside)), "{network:?} {inside}");
            assert!(!network.contains(address(outside)), "{network:?} {outside}");
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains(address("255.255.255.255")));
        for text in ["", "10.0.0.0/33", "10.0.0/8", "somewhere"] {
            assert_eq!(text.parse::<Network>(), Err(NoNetwork), "{text:?}");
        }
    }

    #[test]
    fn only_a_trusted_proxy_says_whom_it_speaks_for() {
        let proxies = TrustedProxies(vec!["10.0.0.0/8".parse().unwrap()]);
        let headers = |line: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(X_FORWARDED_FOR, line.parse().unwrap());
            headers
        };
        for (peer, line, client) in [
            ("192.0.2.9", "198.51.100.1", "192.0.2.9"),
            ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("10.0.0.1", "203.0.113.5, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
            ("10.0.0.1", "198.51.100.1, rubbish", "10.0.0.1"),
            ("10.0.0.1", "198.51.100.1:51234, 10.0.0.2:80", "198.51.100.1"),
            ("10.0.0.1", "[2001:db8::1]:51234", "2001:db8::1"),
            ("10.0.0.1", "[2001:db8::1]", "2001:db8::1"),
            ("10.0.0.1", "2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(
                proxies.client(address(peer), &headers(line)),
                address(client),
                "{peer} {line}"
            );
        }
    }
}
