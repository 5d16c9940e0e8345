//! What a caller says about the form of an answer of rows: method, columns, number of rows, compression.
//!
//! Every route that answers with rows reads its parameters here, so that they mean the same everywhere.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use crate::api::query_params::Params;
use crate::output::{BufferCompression, OutputMethod, Packing, RowFormat};
use crate::query::columns::Columns;
use crate::query::explain::Explain;
use crate::query::shape::IdForm;

#[cfg(test)]
mod tests;

/// The form of an answer of rows.
#[derive(Clone, Debug)]
pub struct AnswerForm {
    pub method: OutputMethod,
    /// The columns that are wanted; all if none are named.
    pub columns: Option<Columns>,
    /// The most rows that are wanted.
    pub limit: Option<usize>,
    /// Where the page begins, if answers come in pages.
    pub cursor: Option<String>,
    compression: Option<BufferCompression>,
    /// Whether to answer with how the rows are found instead of with the rows.
    pub explain: Explain,
}

impl AnswerForm {
    /// Reads `output`; without it, an array of rows.
    pub fn read(params: &mut Params<'_>) -> Option<Self> {
        let method = params.choice_or("output", OutputMethod::Jstable);
        Self::with_method(params, method)
    }

    /// Reads `output`, which is required.
    pub fn required(params: &mut Params<'_>) -> Option<Self> {
        let method = params.required_choice("output");
        Self::with_method(params, method)
    }

    /// Reads where the page begins, and with `read` the rest of the form.
    pub fn paged(
        params: &mut Params<'_>,
        read: impl FnOnce(&mut Params<'_>) -> Option<Self>,
    ) -> Option<Self> {
        let cursor = params.text("cursor");
        read(params).map(|form| Self { cursor, ..form })
    }

    /// Reads `format`, or `output` in its place.
    pub fn of_records(params: &mut Params<'_>) -> Option<Self> {
        let format = params.choice::<RowFormat>("format").map(RowFormat::method);
        Self::in_place_of(params, format, RowFormat::Json.method())
    }

    /// Reads `output`, which replaces another parameter that named a method.
    pub fn in_place_of(
        params: &mut Params<'_>,
        named: Option<OutputMethod>,
        otherwise: OutputMethod,
    ) -> Option<Self> {
        let output: Option<OutputMethod> = params.choice("output");
        if let (Some(named), Some(output)) = (named, output)
            && named != output
        {
            params.fault(
                "output",
                "value_error",
                "output and format differ; send one of them",
            );
        }
        Self::with_method(params, Some(output.or(named).unwrap_or(otherwise)))
    }

    fn with_method(params: &mut Params<'_>, method: Option<OutputMethod>) -> Option<Self> {
        let names = params.list("columns");
        let columns = if names.is_empty() {
            None
        } else {
            Columns::new(names)
                .map_err(|error| params.fault("columns", "value_error", error.to_string()))
                .ok()
        };
        let limit = row_limit(params);
        let compression = params.choice("compression");
        let explain = params.choice_or("explain", Explain::No);
        let defuse = params.flag_or("defuse_formulas", false);
        let (method, defuse, explain) = (method?, defuse?, explain?);
        Some(Self {
            method: if defuse { method.defused() } else { method },
            columns,
            limit,
            cursor: None,
            compression,
            explain,
        })
    }

    /// This form, with all columns.
    #[must_use]
    pub const fn of_method(method: OutputMethod) -> Self {
        Self {
            method,
            columns: None,
            limit: None,
            cursor: None,
            compression: None,
            explain: Explain::No,
        }
    }

    /// Arrow frames carry ids as text; encoders of text print the bytes themselves.
    #[must_use]
    pub const fn ids(&self) -> IdForm {
        if self.method.is_text() {
            IdForm::Bytes
        } else {
            IdForm::Text
        }
    }

    /// How the answer is packed for the client that sent `headers`. Only Arrow streams are compressed
    /// internally, if the client asks for it or names a compression that its Arrow reader can undo in
    /// `Accept`. A content coding that its HTTP client can undo says nothing about that.
    #[must_use]
    pub fn packing(&self, headers: &HeaderMap) -> Packing {
        let buffers = if self.method.is_arrow() {
            self.compression
                .or_else(|| accepted_compression(self.method.media_type(), headers))
        } else {
            None
        };
        Packing {
            method: self.method,
            buffers: buffers.unwrap_or_default(),
        }
    }

    /// Whether the packing of the answer depends on `Accept`.
    #[must_use]
    pub const fn varies(&self) -> bool {
        self.method.is_arrow() && self.compression.is_none()
    }
}

/// The compression that `Accept` names for the media type with the greatest weight, the first of equals:
/// `…; codecs="zstd, lz4"; q=0.5`.
fn accepted_compression(media_type: &str, headers: &HeaderMap) -> Option<BufferCompression> {
    let lines = headers.get_all(ACCEPT);
    let lines = lines.iter().filter_map(|line| line.to_str().ok());
    let mut wanted: Option<(f64, BufferCompression)> = None;
    for range in lines.flat_map(|line| parts(line, ',')) {
        let named = parts(range, ';').next().unwrap_or_default();
        if !named.eq_ignore_ascii_case(media_type) {
            continue;
        }
        let known = |name: &str| name.trim().to_ascii_lowercase().parse().ok();
        let codec = parameter(range, "codecs").and_then(|codecs| codecs.split(',').find_map(known));
        if let (Some(codec), Some(weight)) = (codec, weight(range))
            && wanted.is_none_or(|(greatest, _)| weight > greatest)
        {
            wanted = Some((weight, codec));
        }
    }
    wanted.map(|(_, codec)| codec)
}

/// How much a range of `Accept` is wanted; `None` if it is refused, or nobody can tell.
fn weight(range: &str) -> Option<f64> {
    let weight = parameter(range, "q").map_or(Some(1.0), |text| text.parse().ok())?;
    (weight > 0.0 && weight <= 1.0).then_some(weight)
}

/// The value of a parameter of a range of `Accept`.
fn parameter<'a>(range: &'a str, name: &str) -> Option<&'a str> {
    parts(range, ';').skip(1).find_map(|parameter| {
        let (found, value) = parameter.split_once('=')?;
        found
            .trim()
            .eq_ignore_ascii_case(name)
            .then(|| value.trim().trim_matches('"'))
    })
}

/// The parts between separators that are not quoted.
fn parts(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |letter| {
        quoted ^= letter == '"';
        letter == separator && !quoted
    })
    .map(str::trim)
}

/// `limit`: the most rows that are wanted.
fn row_limit(params: &mut Params<'_>) -> Option<usize> {
    let limit = params.integer("limit", (1, i64::MAX))?;
    // More rows than memory has addresses are all rows.
    usize::try_from(limit).ok()
}
