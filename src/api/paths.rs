//! Rewrites paths with ids of data types: these hold a slash, `Event/<uuid>`, and arrive with it raw or as
//! `%2F`. Routes know only the second form, so the first is converted to it.

use axum::extract::Request;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use uuid::Uuid;

/// The prefixes after which an id of a data type follows.
const PREFIXES: [&str; 5] = [
    "/data/v1/catalog/",
    "/data/v1alpha1/event/",
    "/data/v1alpha1/metric/",
    "/ingest/v1/record/",
    "/input/v1/data_type/",
];

/// The length of a UUID without its hyphens. Most paths are shorter after the prefix and need no further
/// check.
const SHORTEST_ID: usize = 32;

/// The request with the id of its data type as one segment of the path.
#[must_use]
pub(super) fn with_whole_type_ids(mut request: Request) -> Request {
    if let Some(uri) = rewritten(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

fn rewritten(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let prefix = PREFIXES.into_iter().find(|prefix| path.starts_with(prefix))?;
    let rest = path.get(prefix.len()..)?;
    if rest.len() < SHORTEST_ID {
        return None;
    }
    let rest = rest.replace("%2f", "%2F").replace("%2F", "/");
    let segments: Vec<&str> = rest.split('/').collect();
    let id = segments
        .iter()
        .position(|segment| Uuid::parse_str(segment).is_ok())?;
    let base = segments.get(id.checked_sub(1)?)?;
    // Some clients put the base before an id that already has it.
    if id > 1 && segments.iter().take(id).any(|segment| segment != base) {
        return None;
    }
    let (base, id, tail) = (
        *base,
        *segments.get(id)?,
        segments.get(id + 1..).unwrap_or_default(),
    );
    let joint = if prefix == "/input/v1/data_type/" {
        "/"
    } else {
        "%2F"
    };
    let mut path = format!("{prefix}{base}{joint}{id}");
    for segment in tail {
        path.push('/');
        path.push_str(segment);
    }
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0193b5a2-0000-7000-8000-000000000001";

    fn path(text: &str) -> String {
        let uri: Uri = text.replace("ID", ID).parse().unwrap();
        rewritten(&uri).unwrap_or(uri).to_string().replace(ID, "ID")
    }

    #[test]
    fn rule_5_5_a_type_id_arrives_raw_or_encoded() {
        assert_eq!(
            path("/data/v1alpha1/event/Event/ID?a=b"),
            "/data/v1alpha1/event/Event%2FID?a=b"
        );
        assert_eq!(
            path("/data/v1alpha1/event/Event%2fID"),
            "/data/v1alpha1/event/Event%2FID"
        );
        assert_eq!(
            path("/data/v1/catalog/Metric/ID/v1/schema"),
            "/data/v1/catalog/Metric%2FID/v1/schema"
        );
        assert_eq!(
            path("/ingest/v1/record/Event/Event/ID"),
            "/ingest/v1/record/Event%2FID"
        );
        assert_eq!(
            path("/input/v1/data_type/Event/Event%2FID"),
            "/input/v1/data_type/Event/ID"
        );
    }

    #[test]
    fn other_paths_stay_as_they_are() {
        for text in [
            "/data/v1alpha1/event/MomentAnnotation/latest",
            "/data/v0/ID/metric_samples",
            "/data/v1/catalog/HeartRate/v0",
            "/",
        ] {
            assert_eq!(path(text), text);
        }
    }
}
