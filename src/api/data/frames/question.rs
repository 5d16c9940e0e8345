//! The question of a frame, as the address at which it is asked.
//!
//! Knows addresses; knows nothing of the routes there.

use axum::http::Uri;
use axum::http::uri::PathAndQuery;

use crate::api::problem::{ApiError, invalid};
use crate::auth::reach::READING;
use crate::output::OutputMethod;

/// The prefix of paths about frames themselves.
const FRAMES: &str = "/data/v1/frame";
/// The most bytes of a question: more than any address that clients can send.
const LONGEST_QUESTION: usize = 64 << 10;
/// Parameters about the form of an answer, which the frame sets itself.
const OF_FORM: [&str; 2] = ["output", "format"];

/// The address of the question in `text`, in the form of the frame.
pub(super) fn question_address(text: &str, public_url: &str, format: OutputMethod) -> Result<Uri, ApiError> {
    let refused = |message: &str| invalid(["body", "question"], message);
    if text.len() > LONGEST_QUESTION {
        return Err(refused("the question is longer than any address can be"));
    }
    let asked = text.strip_prefix(public_url).unwrap_or(text);
    if !asked.starts_with(READING) {
        return Err(refused(
            "expected the path and query of a read below /data/, such as /data/v1alpha1/metric/…",
        ));
    }
    let (path, query) = asked.split_once('?').unwrap_or((asked, ""));
    if path.starts_with(FRAMES) {
        return Err(refused("frames keep no answers about frames"));
    }
    let is_of_form = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default();
        OF_FORM.contains(&name)
    };
    let mut address = format!("{path}?output={}", format.name());
    for part in query
        .split('&')
        .filter(|part| !part.is_empty() && !is_of_form(part))
    {
        address.push('&');
        address.push_str(part);
    }
    let address = address.replace(' ', "%20");
    let parsed = PathAndQuery::try_from(address).map_err(|_| {
        refused(
            "this is not an address; percent-encode the characters that an address may not \
                              contain",
        )
    })?;
    Ok(Uri::from(parsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<String, u16> {
        question_address(text, "https://home.example/almanac", OutputMethod::Parquet)
            .map(|uri| uri.to_string())
            .map_err(|error| error.status().as_u16())
    }

    #[test]
    fn a_question_is_asked_in_the_form_of_the_frame_whatever_it_said_of_forms() {
        let expected = Ok("/data/v0/x/metric_samples?output=parquet&metric=HeartRate".to_owned());
        for text in [
            "/data/v0/x/metric_samples?metric=HeartRate",
            "/data/v0/x/metric_samples?output=csv&metric=HeartRate",
            "/data/v0/x/metric_samples?metric=HeartRate&format=json&",
            "https://home.example/almanac/data/v0/x/metric_samples?metric=HeartRate",
        ] {
            assert_eq!(asked(text), expected, "{text}");
        }
        assert_eq!(
            asked("/data/v0/metrics_catalog"),
            Ok("/data/v0/metrics_catalog?output=parquet".to_owned())
        );
    }

    #[test]
    fn what_is_no_read_is_no_question() {
        for text in [
            "",
            "HeartRate",
            "/user/v1alpha1/info",
            "/data/v1/frames?output=csv",
            "/data/v1/frame/ticket/answer.csv",
            "https://elsewhere.example/data/v0/x",
            "/data/\u{7f}",
        ] {
            assert_eq!(asked(text), Err(422), "{text}");
        }
    }
}
