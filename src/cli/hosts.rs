//! Hosts in addresses, whether they are this machine, and whether what is sent to them is safe on its way.

use std::net::IpAddr;

/// Whether nobody on the way can read or change what is sent to the address `url` of the web.
pub(super) fn is_safe(url: &str) -> bool {
    let is_near = || host_of(url).as_deref().is_some_and(is_this_machine);
    url.starts_with("https://") || (url.starts_with("http://") && is_near())
}

/// The host in an address, if it names one.
fn host_of(url: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_elsewhere_needs_tls() {
        for (url, safe) in [
            ("https://keys.example/v1", true),
            ("http://keys.example/v1", false),
            ("http://localhost:8200/v1", true),
            ("http://LOCALHOST/v1", true),
            ("http://127.0.0.1:8200", true),
            ("http://[::1]:8200/v1", true),
            ("http://localhost@keys.example/v1", false),
            ("http://keys.example/?localhost", false),
            ("http://192.0.2.1/", false),
            ("ftp://localhost/", false),
            ("localhost", false),
        ] {
            assert_eq!(is_safe(url), safe, "{url}");
        }
    }
}
