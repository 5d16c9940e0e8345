//! Hosts in addresses, and whether they are this machine.

use std::net::IpAddr;

/// The host in an address, if it names one.
pub(super) fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(inside) => inside.split(']').next()?,
        None => host.rsplit_once(':').map_or(host, |(host, _)| host),
    };
    (!host.is_empty()).then(|| host.to_owned())
}

/// Whether `host` is this machine, by its name or its address.
pub(super) fn is_this_machine(host: &str) -> bool {
    let loopback = host
        .parse::<IpAddr>()
        .is_ok_and(|address| address.to_canonical().is_loopback());
    loopback || host.eq_ignore_ascii_case("localhost")
}
