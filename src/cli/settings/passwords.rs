//! Hides the passwords of addresses from whoever is shown one.
//!
//! Passwords are written by hand, and few people know what must be escaped in them. So nothing here relies on
//! an address being well formed, and rather too much is hidden than too little.

use std::ops::Range;

use percent_encoding::percent_decode_str;
use reqwest::Url;

use crate::catalog::Catalog;

/// Stands for what is hidden.
const MASK: &str = "***";
/// The value of a parameter whose name contains one of these is hidden.
const SECRET_NAMES: [&str; 5] = ["password", "passphrase", "key", "token", "secret"];

/// Whether it is clear what is where in an address.
pub(super) fn is_understood(address: &str) -> bool {
    // What follows is the path of a file.
    address.starts_with("sqlite:") || (address.contains("://") && Url::parse(address).is_ok())
}

/// A text with the passwords of the address that it may be masked: whatever stands between the first colon
/// after the scheme and the last @, all parameters but those of a database that are no secrets, and whatever
/// else has a name that sounds like a secret.
pub(in crate::cli) fn without_passwords(text: &str) -> String {
    let Some(scheme) = text.find("://") else {
        return text.to_owned();
    };
    let mut hidden: Vec<Range<usize>> = secrets_by_name(text);
    hidden.extend(password(text, scheme + "://".len()));
    hidden.extend(parameters(text));
    hidden.sort_unstable_by_key(|part| part.start);
    let (mut shown, mut end) = (String::new(), 0);
    for part in hidden {
        if part.start >= end {
            shown.push_str(text.get(end..part.start).unwrap_or_default());
            shown.push_str(MASK);
        }
        end = end.max(part.end);
    }
    shown.push_str(text.get(end..).unwrap_or_default());
    shown
}

/// The password before the host in an address that begins at `start`, behind its scheme.
fn password(text: &str, start: usize) -> Option<Range<usize>> {
    let end = text.rfind('@')?;
    let colon = start + text.get(start..end)?.find(':')?;
    Some(colon + 1..end)
}

/// The values of all parameters but those that the database's client knows, and what has no name.
fn parameters(text: &str) -> Vec<Range<usize>> {
    // In the path of a file ? and # are letters like others.
    let mark = text.find(['?', '#']).filter(|_| !text.starts_with("sqlite:"));
    let Some(mut start) = mark.map(|mark| mark + 1) else {
        return Vec::new();
    };
    let mut hidden = Vec::new();
    for parameter in text.get(start..).unwrap_or_default().split('&') {
        let end = start + parameter.len();
        match parameter.split_once('=') {
            Some((name, _)) if Catalog::SERVER_PARAMETERS.contains(&name) => {}
            Some((name, _)) => hidden.push(start + name.len() + 1..end),
            None => hidden.push(start..end),
        }
        start = end + 1;
    }
    hidden.retain(|part| !part.is_empty());
    hidden
}

fn secrets_by_name(text: &str) -> Vec<Range<usize>> {
    let parameter = |(equals, _): (usize, &str)| {
        let before = text.get(..equals)?;
        let begin = before.rfind(['?', '&', ';', '#']).map_or(0, |mark| mark + 1);
        let name = percent_decode_str(before.get(begin..)?).decode_utf8_lossy();
        let name = name.to_lowercase();
        let start = equals + 1;
        let end = text.get(start..)?.find('&').map_or(text.len(), |end| start + end);
        let is_secret = SECRET_NAMES.iter().any(|secret| name.contains(secret));
        is_secret.then_some(start..end)
    };
    text.match_indices('=').filter_map(parameter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        for (text, shown) in [
            (
                "postgres://almanac:secret@localhost/almanac",
                "postgres://almanac:***@localhost/almanac",
            ),
            (
                "postgres://almanac:se@cret@localhost:5432/almanac?sslmode=require",
                "postgres://almanac:***@localhost:5432/almanac?sslmode=require",
            ),
            (
                "postgres://almanac:12/se?cr@et@localhost/almanac",
                "postgres://almanac:***",
            ),
            (
                "postgres://localhost/almanac?user=a&password=secret&port=1",
                "postgres://localhost/almanac?user=a&password=***&port=1",
            ),
            (
                "postgres://localhost/a?sslpassword=one&password=two",
                "postgres://localhost/a?sslpassword=***&password=***",
            ),
            (
                "postgres://localhost/a?pass%77ord=se=cret",
                "postgres://localhost/a?pass%77ord=***",
            ),
            (
                "postgres://localhost:5432/a?password=se@cret&user=b",
                "postgres://localhost:***&user=b",
            ),
            (
                "https://identity.example/keys?API_Key=secret",
                "https://identity.example/keys?API_Key=***",
            ),
            (
                "https://identity.example/keys?policy=users&p=",
                "https://identity.example/keys?policy=***&p=",
            ),
            ("https://u:pw@o/?api=secret", "https://u:***@o/?api=***"),
            ("https://o/?secret&host=o", "https://o/?***&host=o"),
            ("https://o/#secret", "https://o/#***"),
            ("https://o:1/?api=se@cret", "https://o:***"),
            (
                "postgres://localhost/a?password=se&cret&user=b",
                "postgres://localhost/a?password=***&***&user=b",
            ),
            (
                "sqlite:///srv/what?/no#1/catalogue.db",
                "sqlite:///srv/what?/no#1/catalogue.db",
            ),
            (
                "postgres://me@localhost:5432/almanac",
                "postgres://me@localhost:5432/almanac",
            ),
            ("sqlite://./data/catalogue.db", "sqlite://./data/catalogue.db"),
            ("info,almanac::auth::keys=debug", "info,almanac::auth::keys=debug"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }

    #[test]
    fn an_address_is_understood_or_not() {
        for (address, understood) in [
            ("postgres://me:secret@localhost:5432/almanac", true),
            ("postgres://%2Frun%2Fpostgresql/almanac", true),
            ("postgres:///almanac?host=/run/postgresql", true),
            ("sqlite://./my data/catalogue.db", true),
            ("https://identity.example/keys?policy=users", true),
            ("postgres://almanac:se/cret@localhost/almanac", false),
            ("postgres:/almanac:secret@localhost/almanac", false),
            ("almanac:secret@localhost/almanac", false),
        ] {
            assert_eq!(is_understood(address), understood, "{address}");
        }
    }
}
