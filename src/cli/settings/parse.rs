//! Parses the texts of settings.

use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::time::Duration;

use axum::http::uri::Uri;
use axum::http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use tracing_subscriber::EnvFilter;

use super::error::SettingsError;
use super::given::GivenSetting;
use super::passwords::without_passwords;
use crate::model::whole_units::in_whole_units;

/// The most of anything that is counted, far beyond what a machine has room for. More means no limit.
const LARGEST_COUNT: u64 = 1_000_000_000;
/// A hundred years. No service runs for longer, and clocks count on for as long.
const LONGEST_DURATION: Duration = Duration::from_hours(36_525 * 24);

/// `250ms`, `30s`, `5m`, `2h`, `1d`, or a number of seconds.
pub(super) fn duration(setting: &GivenSetting) -> Result<Duration, SettingsError> {
    duration_up_to(setting, LONGEST_DURATION)
}

pub(super) fn duration_up_to(setting: &GivenSetting, longest: Duration) -> Result<Duration, SettingsError> {
    let found = read_duration(&setting.text)
        .ok_or_else(|| setting.wrong("a duration such as 250ms, 30s, 5m, 2h or 1d"))?;
    let most = || setting.wrong(format!("a duration of at most {}", in_whole_units(longest)));
    (found <= longest).then_some(found).ok_or_else(most)
}

/// A duration that is not zero, which would let nothing through.
pub(super) fn some_time(setting: &GivenSetting) -> Result<Duration, SettingsError> {
    let found = duration(setting)?;
    let is_some = !found.is_zero();
    is_some
        .then_some(found)
        .ok_or_else(|| setting.wrong("a duration longer than zero"))
}

/// `64MiB`, `4GiB`, `500kB`, or a number of bytes.
pub(super) fn size(setting: &GivenSetting) -> Result<usize, SettingsError> {
    read_size(&setting.text).ok_or_else(|| setting.wrong("a size such as 65536, 500kB or 64MiB"))
}

pub(super) fn number(setting: &GivenSetting, least: u64) -> Result<u64, SettingsError> {
    let number = setting.text.trim().parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| setting.wrong(format!("a whole number of at least {least}")))
}

pub(super) fn count(setting: &GivenSetting, least: u64) -> Result<usize, SettingsError> {
    Ok(number(setting, least)?.min(LARGEST_COUNT) as usize)
}

pub(super) fn count_within(
    setting: &GivenSetting,
    allowed: RangeInclusive<u64>,
) -> Result<usize, SettingsError> {
    let number: Option<u64> = setting.text.trim().parse().ok();
    let count = number
        .filter(|number| allowed.contains(number))
        .and_then(|number| usize::try_from(number).ok());
    let (least, most) = allowed.into_inner();
    count.ok_or_else(|| setting.wrong(format!("a whole number from {least} to {most}")))
}

pub(super) fn flag(setting: &GivenSetting) -> Result<bool, SettingsError> {
    match setting.text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "on" | "yes" => Ok(true),
        "false" | "0" | "off" | "no" => Ok(false),
        _ => Err(setting.wrong("true or false")),
    }
}

pub(super) fn list(setting: &GivenSetting) -> Vec<String> {
    setting
        .text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Origins as browsers write them, or `*` for all.
pub(super) fn origins(setting: &GivenSetting) -> Result<Vec<String>, SettingsError> {
    let origins = list(setting);
    let is_unsent = |origin: &&String| *origin != "*" && as_sent(origin).as_ref() != Some(*origin);
    let Some(unsent) = origins.iter().find(is_unsent) else {
        return Ok(origins);
    };
    Err(setting.wrong(as_sent(unsent).map_or_else(
        || "origins such as https://pages.example or http://localhost:3000, or *".to_owned(),
        |sent| {
            let unsent = without_passwords(unsent);
            format!("{sent} instead of {unsent}: browsers write it like this")
        },
    )))
}

/// The first part of a dotted name, as in `com.example`.
pub(super) fn name_prefix(setting: &GivenSetting) -> Result<String, SettingsError> {
    let is_symbol = |symbol: char| symbol.is_ascii_alphanumeric() || matches!(symbol, '-' | '_');
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_symbol);
    let found = setting.value().filter(|text| text.split('.').all(is_part));
    let expected = "letters, digits, - and _ in parts with dots between them, such as com.example";
    found.map(str::to_owned).ok_or_else(|| setting.wrong(expected))
}

/// Headers as `NAME=VALUE`, separated by commas, with percent-encoded values: the form that an operator's
/// other services read as well.
pub(super) fn headers(setting: &GivenSetting) -> Result<Vec<(HeaderName, HeaderValue)>, SettingsError> {
    let header = |pair: &String| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((name.trim().parse().ok()?, HeaderValue::from_str(&value).ok()?))
    };
    let headers: Option<Vec<_>> = list(setting).iter().map(header).collect();
    headers.ok_or_else(|| setting.wrong("NAME=VALUE with commas between them, values percent-encoded"))
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A filter for the log, in the log library's own syntax.
pub(super) fn log_filter(setting: &GivenSetting) -> Result<String, SettingsError> {
    let expected = |reason: String| {
        setting.wrong(format!(
            "a level or a list such as info,almanac::store=debug ({reason})"
        ))
    };
    // The library takes a word that is no level for the name of a module, and is silent about all others.
    let of_no_level =
        |part: &&str| !part.contains(['=', '[']) && !LEVELS.contains(&part.to_lowercase().as_str());
    let parts = setting.text.split(',').map(str::trim);
    if let Some(word) = parts.filter(|part| !part.is_empty()).find(of_no_level) {
        return Err(expected(format!("{word:?} is none of {}", LEVELS.join(", "))));
    }
    match EnvFilter::try_new(&setting.text) {
        Ok(_) => Ok(setting.text.clone()),
        Err(error) => Err(expected(error.to_string())),
    }
}

/// An address and port; a host name is resolved to its first address.
pub(super) fn address(setting: &GivenSetting) -> Result<SocketAddr, SettingsError> {
    let resolved = setting
        .text
        .trim()
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next());
    resolved.ok_or_else(|| setting.wrong("an address and port such as 127.0.0.1:8080"))
}

/// The address of a service, to which paths are added.
pub(super) fn base_url(setting: &GivenSetting) -> Result<Option<String>, SettingsError> {
    match setting.value() {
        Some(url) if is_http(url) && !url.contains('?') => Ok(Some(url.trim_end_matches('/').to_owned())),
        Some(_) => {
            Err(setting.wrong("an address such as https://HOST/PATH, without ? and #, HOST in ASCII (xn--…)"))
        }
        None => Ok(None),
    }
}

/// An address that is asked as it is.
pub(super) fn whole_url(setting: &GivenSetting) -> Result<Option<String>, SettingsError> {
    match setting.value() {
        Some(url) if is_http(url) => Ok(Some(url.to_owned())),
        Some(_) => Err(setting.wrong(
            "an address that begins with https://HOST or http://HOST, without #, HOST in ASCII (xn--…)",
        )),
        None => Ok(None),
    }
}

/// Whether an address names a host that is spoken to over HTTP.
fn is_http(url: &str) -> bool {
    let names_host = |uri: Uri| uri.host().is_some_and(|host| !host.is_empty());
    (url.starts_with("http://") || url.starts_with("https://"))
        && !url.contains('#')
        && url.parse().is_ok_and(names_host)
}

/// Scheme, host and port of an address, as a browser sends them: nothing after them, no capitals, and no port
/// that the scheme has anyway. No browser sends a host with a star.
fn as_sent(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let is_sent = matches!(url.scheme(), "http" | "https") && !address.contains('*');
    is_sent.then(|| url.origin().ascii_serialization())
}

/// What is longer than any duration counts as the longest.
fn read_duration(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Some(Duration::try_from_secs_f64(number * seconds).unwrap_or(Duration::MAX))
}

fn read_size(text: &str) -> Option<usize> {
    let (number, unit) = number_and_unit(text)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "kib" | "k" => 1 << 10,
        "mb" => 1_000_000,
        "mib" | "m" => 1 << 20,
        "gb" => 1_000_000_000,
        "gib" | "g" => 1 << 30,
        _ => return None,
    };
    let bytes = number * factor as f64;
    // Above 2^53 a float no longer counts single bytes, and no machine has that many.
    (bytes.fract() == 0.0 && (1.0..9e15).contains(&bytes)).then_some(bytes as usize)
}

fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let read = |text| read_duration(text).map(|duration| duration.as_millis());
        assert_eq!(
            ["250ms", "30s", "1.5m", "2 h", "1d", "7"].map(read),
            [250, 30_000, 90_000, 7_200_000, 86_400_000, 7_000].map(Some)
        );
        assert_eq!(["", "s", "5 weeks", "-1s", "1e3"].map(read), [None; 5]);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            ["65536", "500kB", "64MiB", "1.5 GiB"].map(read_size),
            [65_536, 500_000, 67_108_864, 1_610_612_736].map(Some)
        );
        assert_eq!(["", "0", "0.5", "64 parsecs", "-1"].map(read_size), [None; 5]);
    }
}
