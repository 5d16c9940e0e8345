//! What a caller says about the form of an answer of rows: method, columns, compression.
//!
//! Every route that answers rows reads its parameters here, so that they mean the same everywhere.

use crate::api::query_params::Params;
use crate::output::{FrameCompression, OutputMethod, Packing, RowFormat};
use crate::query::columns::Columns;
use crate::query::explain::Explain;
use crate::query::shape::IdForm;

#[cfg(test)]
mod tests;

/// How an answer of rows is to look.
#[derive(Clone, Debug)]
pub struct AnswerForm {
    pub method: OutputMethod,
    /// Those that are wanted; all of them if none are named.
    pub columns: Option<Columns>,
    compression: Option<FrameCompression>,
    /// How the rows are found, in their place.
    pub explain: Option<Explain>,
}

impl AnswerForm {
    /// `output`, or an array of rows where the caller names none.
    pub fn read(params: &mut Params<'_>) -> Option<Self> {
        let method = params.choice_or("output", OutputMethod::Jstable);
        Self::besides(params, method)
    }

    /// `output`, which has to be named.
    pub fn required(params: &mut Params<'_>) -> Option<Self> {
        let method = params.required_choice("output");
        Self::besides(params, method)
    }

    /// `format`, or `output` in its place.
    pub fn of_records(params: &mut Params<'_>) -> Option<Self> {
        let format = params.choice::<RowFormat>("format").map(RowFormat::method);
        Self::in_place_of(params, format, RowFormat::Json.method())
    }

    /// `output` in the place of another parameter that named a method.
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
        Self::besides(params, Some(output.or(named).unwrap_or(otherwise)))
    }

    fn besides(params: &mut Params<'_>, method: Option<OutputMethod>) -> Option<Self> {
        let names = params.list("columns");
        let columns = if names.is_empty() {
            None
        } else {
            Columns::new(names)
                .map_err(|error| params.fault("columns", "value_error", error.to_string()))
                .ok()
        };
        let compression = params.choice("compression");
        let explain = params.choice("explain");
        let defuse = params.flag_or("defuse_formulas", false);
        let (method, defuse) = (method?, defuse?);
        Some(Self {
            method: if defuse { method.defused() } else { method },
            columns,
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
            compression: None,
            explain: None,
        }
    }

    /// Frames carry ids as text; encoders of text print the bytes themselves.
    #[must_use]
    pub const fn ids(&self) -> IdForm {
        if self.method.is_text() {
            IdForm::Bytes
        } else {
            IdForm::Text
        }
    }

    /// How the answer is packed. Only frames of Arrow are compressed as they are asked to be.
    #[must_use]
    pub fn packing(&self) -> Packing {
        let frame = self.compression.filter(|_| self.method.is_arrow());
        Packing {
            method: self.method,
            frame: frame.unwrap_or_default(),
        }
    }
}
