//! Reads timestamps whose seconds are left out.
//!
//! `TIMESTAMP '2024-05-01 10:30'` is a moment in SQL, but none to the engine, which asks for the seconds.
//! Knows expressions only.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{DataType, Expr, Value, VisitorMut};

/// Adds the seconds that are left out.
pub(super) struct WithSeconds;

impl VisitorMut for WithSeconds {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Some(text) = timestamp(expr)
            && let Some(whole) = with_seconds(text)
        {
            *text = whole;
        }
        ControlFlow::Continue(())
    }
}

/// The text that `expr` takes for a timestamp.
fn timestamp(expr: &mut Expr) -> Option<&mut String> {
    let (data_type, value) = match expr {
        Expr::TypedString(typed) => (&typed.data_type, &mut typed.value.value),
        Expr::Cast { expr, data_type, .. } => match expr.as_mut() {
            Expr::Value(value) => (&*data_type, &mut value.value),
            _ => return None,
        },
        _ => return None,
    };
    match (data_type, value) {
        (DataType::Timestamp(..), Value::SingleQuotedString(text)) => Some(text),
        _ => None,
    }
}

/// The text with its seconds, if it gives a date, hours and minutes, and nothing else but an offset.
fn with_seconds(text: &str) -> Option<String> {
    const SHAPE: &str = "0000-00-00 00:00";
    let (minute, rest) = text.split_at_checked(SHAPE.len())?;
    let mut bytes = minute.bytes().zip(SHAPE.bytes());
    let is_minute = bytes.all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        b' ' => matches!(byte, b' ' | b'T' | b't'),
        separator => byte == separator,
    });
    let ends = rest.is_empty() || rest.starts_with(['Z', 'z', '+', '-', ' ']);
    (is_minute && ends).then(|| format!("{minute}:00{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_seconds_that_are_left_out_are_added() {
        for (text, expected) in [
            ("2024-05-01 10:30", Some("2024-05-01 10:30:00")),
            ("2024-05-01T10:30+02:00", Some("2024-05-01T10:30:00+02:00")),
            ("2024-05-01T10:30Z", Some("2024-05-01T10:30:00Z")),
            ("2024-05-01 10:30:15", None),
            ("2024-05-01 10:3", None),
            ("2024-05-01 10.30", None),
            ("2024-05-01", None),
            ("zweitausend-ä 1:0", None),
        ] {
            assert_eq!(with_seconds(text).as_deref(), expected, "{text}");
        }
    }
}
