//! Why a query is refused, and where in its text. Knows the grammar only.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::Spanned;
use datafusion::sql::sqlparser::tokenizer::Location;

/// Why a query is refused, and what its place is known by.
#[derive(Debug)]
pub(super) struct Refusal {
    pub message: String,
    pub place: Where,
}

/// What a place is known by: the parser keeps the places of names and values, and of few other words.
#[derive(Clone, Copy, Debug)]
pub(super) enum Where {
    At(Location),
    /// The first such word from there on, or there.
    From(Location, &'static str),
    /// The last such word before that, or there.
    Before(Location, &'static str),
}

pub(super) fn start(part: &impl Spanned) -> Location {
    part.span().start
}

pub(super) fn because(message: impl Into<String>, place: Where) -> ControlFlow<Refusal> {
    let message = message.into();
    ControlFlow::Break(Refusal { message, place })
}

pub(super) fn refused(clause: &str, place: Where) -> ControlFlow<Refusal> {
    because(format!("{clause} is not allowed"), place)
}

/// Refuses the first clause that is present. Its words come after the beginning of `whole`.
pub(super) fn refuse_any<const N: usize>(
    clauses: [(&'static str, bool); N],
    whole: &impl Spanned,
) -> ControlFlow<Refusal> {
    match clauses.into_iter().find(|(_, is_there)| *is_there) {
        Some((clause, _)) => {
            let is_word =
                |word: &&str| word.len() > 1 && !word.contains(|letter: char| letter.is_ascii_lowercase());
            let place = match clause.split([' ', ',']).find(is_word) {
                Some(word) => Where::From(start(whole), word),
                None => Where::At(start(whole)),
            };
            refused(clause, place)
        }
        None => ControlFlow::Continue(()),
    }
}
