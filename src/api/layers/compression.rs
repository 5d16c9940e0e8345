//! Compresses answers that are text. Arrow and Parquet compress themselves, and short answers gain nothing. A
//! head whose body is not made does not say whether that would be compressed: its length decides.

use axum::http::header::{ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{And, Predicate, SizeAbove};

use crate::api::layers::heads::HeadAlone;

const SHORTEST_BODY: u64 = 1024;

/// The layer. It uses the fastest level, because answers are made while they are sent.
#[must_use]
pub fn layer() -> CompressionLayer<And<SizeAbove, IsText>> {
    CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(SHORTEST_BODY).and(IsText))
}

/// Says of every answer that may be compressed that it depends on what the client accepts, however long this
/// one is: a cache must know that of a head and of 304 too. The media type of a 304, which is there to tell,
/// is taken away.
#[must_use]
pub fn varied(mut response: Response) -> Response {
    let is_unchanged = response.status() == StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    if is_text(headers) {
        headers.append(VARY, HeaderValue::from_name(ACCEPT_ENCODING));
    }
    if is_unchanged {
        headers.remove(CONTENT_TYPE);
    }
    response
}

/// A client that refuses an uncompressed answer gets it anyway where it cannot be compressed: a write that
/// succeeded must not be answered with 406, as if nothing had happened.
pub fn overlook_refusals(headers: &mut HeaderMap) {
    let said = || {
        let values = headers.get_all(ACCEPT_ENCODING).iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        texts.flat_map(|value| value.split(','))
    };
    if !said().any(refuses) {
        return;
    }
    let left: Vec<&str> = said().filter(|part| !refuses(part)).collect();
    let left = (!left.is_empty()).then(|| HeaderValue::from_str(&left.join(",")));
    headers.remove(ACCEPT_ENCODING);
    if let Some(Ok(left)) = left {
        headers.insert(ACCEPT_ENCODING, left);
    }
}

/// Whether a part of `Accept-Encoding` refuses uncompressed answers: `identity;q=0`, `*;q=0`.
fn refuses(part: &str) -> bool {
    let Some((name, weight)) = part.split_once(';') else {
        return false;
    };
    let name = name.trim();
    let weight = weight.trim().split_once('=');
    let is_nothing = weight.is_some_and(|(letter, weight)| {
        letter.eq_ignore_ascii_case("q") && weight.trim().parse() == Ok(0.0_f32)
    });
    is_nothing && (name == "*" || name.eq_ignore_ascii_case("identity"))
}

/// True for answers with a body whose media type is a kind of text.
#[derive(Clone, Copy, Debug)]
pub struct IsText;

impl Predicate for IsText {
    fn should_compress<B>(&self, response: &axum::http::Response<B>) -> bool {
        response.extensions().get::<HeadAlone>().is_none() && is_text(response.headers())
    }
}

fn is_text(headers: &HeaderMap) -> bool {
    // An answer that is served in ranges must have the same bytes for everybody.
    if headers.contains_key(ACCEPT_RANGES) {
        return false;
    }
    let media_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim_end();
    media_type.starts_with("text/")
        || media_type.ends_with("json")
        || matches!(
            media_type,
            "application/x-jsonl"
                | "application/jsonl"
                | "application/openmetrics-text"
                | "application/javascript"
                | "image/svg+xml"
        )
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    #[test]
    fn nobody_is_refused_for_what_they_refuse() {
        let left = |said: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_str(said).unwrap());
            overlook_refusals(&mut headers);
            let left = headers.get(ACCEPT_ENCODING);
            left.map(|left| left.to_str().unwrap().trim().to_owned())
        };
        assert_eq!(left("identity;q=0"), None);
        assert_eq!(left("*; q=0.000"), None);
        assert_eq!(left("gzip;q=0, *;q=0").as_deref(), Some("gzip;q=0"));
        assert_eq!(left("br, Identity;Q=0").as_deref(), Some("br"));
        assert_eq!(left("gzip, zstd;q=0.5").as_deref(), Some("gzip, zstd;q=0.5"));
        assert_eq!(
            left("zstd, *;q=0.1, identity;q=x").as_deref(),
            Some("zstd, *;q=0.1, identity;q=x")
        );
    }

    #[test]
    fn what_may_be_compressed_says_so_and_304_says_nothing_else() {
        let told = |status: StatusCode, media_type: &'static str| {
            let made = (status, [(CONTENT_TYPE, media_type), (VARY, "accept")]).into_response();
            let varied = varied(made);
            let vary: Vec<HeaderValue> = varied.headers().get_all(VARY).iter().cloned().collect();
            (vary, varied.headers().contains_key(CONTENT_TYPE))
        };
        let arrow = "application/vnd.apache.arrow.stream";
        for (status, keeps) in [(StatusCode::OK, true), (StatusCode::NOT_MODIFIED, false)] {
            let text = told(status, "application/json");
            assert_eq!(
                text,
                (
                    vec!["accept".parse().unwrap(), "accept-encoding".parse().unwrap()],
                    keeps
                )
            );
            assert_eq!(told(status, arrow), (vec!["accept".parse().unwrap()], keeps));
        }
    }

    #[test]
    fn a_head_alone_does_not_say_that_a_body_is_compressed() {
        let mut head = ([(CONTENT_TYPE, "application/json")], "[]").into_response();
        assert!(IsText.should_compress(&head));
        head.extensions_mut().insert(HeadAlone);
        assert!(!IsText.should_compress(&head));
    }

    #[test]
    fn text_is_compressed_and_columns_are_not() {
        let compresses = |media_type: &str| {
            let response = axum::http::Response::builder()
                .header(CONTENT_TYPE, media_type)
                .body(axum::body::Body::empty())
                .unwrap();
            IsText.should_compress(&response)
        };
        for text in [
            "application/json",
            "application/problem+json",
            "text/csv; charset=utf-8",
            "application/x-ndjson",
        ] {
            assert!(compresses(text), "{text}");
        }
        for other in [
            "application/vnd.apache.arrow.stream",
            "application/vnd.apache.parquet",
            "application/octet-stream",
            "",
        ] {
            assert!(!compresses(other), "{other}");
        }
    }
}
