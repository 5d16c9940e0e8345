//! An entry of the glossary, and how the documentation shows it.

use serde_json::{Value, json};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Parameter, ParameterBuilder};

/// One name of the interface: a parameter in a query, a path or a header.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub name: &'static str,
    /// Other names under which it may be sent.
    pub(super) aliases: &'static [&'static str],
    pub(super) description: &'static str,
    /// What its absence means, if it has no default.
    pub(super) absent: &'static str,
    pub(super) example: Example,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Example {
    Text(&'static str),
    Flag(bool),
    Whole(i64),
    Number(f64),
}

impl Entry {
    /// `parameter` with the entry's explanation. `many`: it may be repeated. `optional`: it may be left out,
    /// and has no default.
    #[must_use]
    pub fn explained(&self, parameter: Parameter, many: bool, optional: bool) -> Parameter {
        let mut description = self.description.to_owned();
        if optional && !self.absent.is_empty() {
            description.push_str(". Left out: ");
            description.push_str(self.absent);
        }
        let mut extensions = None;
        if !self.aliases.is_empty() {
            description.push_str(". May also be sent as ");
            description.push_str(&self.aliases.join(", "));
            extensions = Some(Extensions::from_iter([("x-aliases", json!(self.aliases))]));
        }
        let example = match self.example {
            Example::Text(text) => json!(text),
            Example::Flag(flag) => json!(flag),
            Example::Whole(number) => json!(number),
            Example::Number(number) => json!(number),
        };
        let example = if many {
            Value::Array(vec![example])
        } else {
            example
        };
        ParameterBuilder::from(parameter)
            .description(Some(description))
            .example(Some(example))
            .extensions(extensions)
            .build()
    }
}
