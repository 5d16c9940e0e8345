//! Compression of what is text. Arrow and Parquet compress themselves, and what is short is not worth it.

use axum::http::header::{ACCEPT_RANGES, CONTENT_TYPE};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{And, Predicate, SizeAbove};

const SHORTEST: u64 = 1024;

/// The layer. The fastest level, because answers are made while they are sent.
#[must_use]
pub fn layer() -> CompressionLayer<And<SizeAbove, IsText>> {
    CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(SHORTEST).and(IsText))
}

/// Holds for answers whose media type is a kind of text.
#[derive(Clone, Copy, Debug)]
pub struct IsText;

impl Predicate for IsText {
    fn should_compress<B>(&self, response: &axum::http::Response<B>) -> bool {
        // What can be had in ranges is the same bytes for everybody.
        if response.headers().contains_key(ACCEPT_RANGES) {
            return false;
        }
        let media_type = response
            .headers()
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
