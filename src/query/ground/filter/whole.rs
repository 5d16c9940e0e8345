//! Compares fields of whole numbers with decimal numbers, by their exact values.
//!
//! Floats represent only some of the whole numbers beyond 2^53, so no number on either side may become one.
//! Pure.

use datafusion::logical_expr::{Expr, Operator, binary_expr, lit};

/// The most digits that a whole number of 64 bits has.
const MOST_DIGITS: usize = 19;

/// Where a decimal number is among the whole numbers of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    At(i64),
    /// Greater than this one and less than the next; `None`: less than all.
    After(Option<i64>),
}

impl Whole {
    /// Reads a decimal number, which may have a fraction and an exponent. `None`: it is none, or is beyond
    /// what fields of numbers hold.
    pub(super) fn read(text: &str) -> Option<Self> {
        text.parse::<f64>().ok().filter(|number| number.is_finite())?;
        let (is_negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (digits, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, saturated(exponent)),
            None => (unsigned, 0),
        };
        let (before_point, after_point) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{before_point}{after_point}");
        let significant = all.trim_start_matches('0');
        // How many of the significant digits precede the decimal point.
        let zeros = (all.len() - significant.len()) as i64;
        let point = exponent.saturating_add(before_point.len() as i64 - zeros);
        let significant = significant.trim_end_matches('0');
        if significant.is_empty() {
            return Some(Self::At(0));
        }
        let point = usize::try_from(point).unwrap_or(0);
        if point > MOST_DIGITS {
            return Some(Self::beyond(is_negative));
        }
        let has_fraction = significant.len() > point;
        let whole = significant.bytes().chain(std::iter::repeat(b'0')).take(point);
        let whole = whole.fold(0_i128, |whole, digit| whole * 10 + i128::from(digit - b'0'));
        let floor = match (is_negative, has_fraction) {
            (false, _) => whole,
            (true, false) => -whole,
            (true, true) => -whole - 1,
        };
        Some(match i64::try_from(floor) {
            Ok(floor) if has_fraction => Self::After(Some(floor)),
            Ok(whole) => Self::At(whole),
            Err(_) => Self::beyond(is_negative),
        })
    }

    const fn beyond(is_negative: bool) -> Self {
        Self::After(if is_negative { None } else { Some(i64::MAX) })
    }

    /// `field operator number`. Where the field is null, it does not hold.
    pub(super) fn compared(self, field: Expr, operator: Operator) -> Expr {
        match (self, operator) {
            (Self::At(number), _) => binary_expr(field, operator, lit(number)),
            (Self::After(Some(floor)), Operator::Lt | Operator::LtEq) => field.lt_eq(lit(floor)),
            (Self::After(Some(floor)), Operator::Gt | Operator::GtEq) => field.gt(lit(floor)),
            (Self::After(None), Operator::Gt | Operator::GtEq) | (Self::After(_), Operator::NotEq) => {
                field.is_not_null()
            }
            (Self::After(_), _) => lit(false),
        }
    }
}

/// An exponent; its digits may say more than anything could mean.
fn saturated(exponent: &str) -> i64 {
    let limit = if exponent.starts_with('-') {
        i64::MIN / 2
    } else {
        i64::MAX / 2
    };
    exponent.parse().unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rule_5_4_numbers_are_read_exactly() {
        for (text, expected) in [
            ("0", Whole::At(0)),
            ("-0.000", Whole::At(0)),
            ("0e99999999999999999999", Whole::At(0)),
            ("+12", Whole::At(12)),
            ("1e3", Whole::At(1000)),
            ("1000.0", Whole::At(1000)),
            ("120000e-4", Whole::At(12)),
            (".5e1", Whole::At(5)),
            ("5.", Whole::At(5)),
            ("2.5", Whole::After(Some(2))),
            ("-2.5", Whole::After(Some(-3))),
            ("0.001", Whole::After(Some(0))),
            ("-1e-300", Whole::After(Some(-1))),
            ("1e-99999999999999999999", Whole::After(Some(0))),
            ("9.007199254740993e15", Whole::At(9_007_199_254_740_993)),
            ("9007199254740992.5", Whole::After(Some(9_007_199_254_740_992))),
            ("9223372036854775807", Whole::At(i64::MAX)),
            ("9223372036854775807.5", Whole::After(Some(i64::MAX))),
            ("9223372036854775808", Whole::After(Some(i64::MAX))),
            ("1e300", Whole::After(Some(i64::MAX))),
            ("-9223372036854775808", Whole::At(i64::MIN)),
            ("-9223372036854775808.5", Whole::After(None)),
            ("-9223372036854775809", Whole::After(None)),
            ("-1e19", Whole::After(None)),
        ] {
            assert_eq!(Whole::read(text), Some(expected), "{text}");
        }
        for text in ["", "many", "0x1", " 1", "1e400", "inf", "NaN", "-", ".", "1e"] {
            assert_eq!(Whole::read(text), None, "{text:?}");
        }
    }

    proptest! {
        /// A number with its point moved, and moved back by an exponent, is the same number.
        #[test]
        fn rule_5_4_a_spelling_changes_nothing(number: i64, places in 1_usize..25) {
            let sign = if number < 0 { "-" } else { "" };
            let digits = format!("{:0>width$}", number.unsigned_abs(), width = places + 1);
            let (before, after) = digits.split_at(digits.len() - places);
            let scientific = format!("{sign}{before}.{after}e{places}");
            prop_assert_eq!(Whole::read(&scientific), Some(Whole::At(number)));
            prop_assert_eq!(Whole::read(&format!("{number}.000")), Some(Whole::At(number)));
        }
    }
}
