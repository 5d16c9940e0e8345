//! The addresses of connections: how many connections each may have.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// How many connections each address has.
#[derive(Clone, Debug)]
pub struct Shares {
    most: usize,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One of an address's connections, until it is dropped.
#[derive(Debug)]
pub struct Share {
    of: Shares,
    address: IpAddr,
}

impl Shares {
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            open: Arc::default(),
        }
    }

    /// One more connection for `address`, unless it has the most that are allowed.
    #[must_use]
    pub fn take(&self, address: IpAddr) -> Option<Share> {
        let address = household(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let has = open.entry(address).or_default();
        if *has >= self.most {
            return None;
        }
        *has += 1;
        drop(open);
        Some(Share {
            of: self.clone(),
            address,
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut open = self.of.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(has) = open.get_mut(&self.address) {
            *has -= 1;
            if *has == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// IPv6 addresses of one /64 network count as one: a household has 2^64 of them.
#[must_use]
pub fn household(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(network.into())
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_a_share_and_gets_it_back() {
        let shares = Shares::new(2);
        let one = shares.take(address("192.0.2.1")).unwrap();
        let _two = shares.take(address("192.0.2.1")).unwrap();
        assert!(shares.take(address("192.0.2.1")).is_none());
        assert!(shares.take(address("192.0.2.2")).is_some());
        drop(one);
        assert!(shares.take(address("192.0.2.1")).is_some());
        let _six = shares.take(address("2001:db8::1")).unwrap();
        let _seven = shares.take(address("2001:db8::2")).unwrap();
        assert!(shares.take(address("2001:db8::3")).is_none());
    }
}
