//! How values of one unit become values of another. Knows nothing of which units there are.

use super::terms::Ratio;

/// The length of the longest list of codes.
pub(super) const MOST_CODES: usize = 8;

/// How values of one unit become values of another. Looked up once per unit and metric, then applied to every
/// row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Conversion {
    Same,
    Linear {
        times: f64,
        over: f64,
        plus: f64,
    },
    /// A spelling that some write for hundredths and others for fractions of one: values up to the limit are
    /// fractions.
    FractionUpTo {
        limit: f64,
    },
    /// For each code of another list, at that index, the type's code.
    Codes([f64; MOST_CODES]),
}

/// `value · times / over + plus`. A product may be too large where its quotient is not: then the division
/// comes first, whose last digit may differ.
#[inline]
#[must_use]
pub fn scaled(value: f64, times: f64, over: f64, plus: f64) -> f64 {
    let converted = value * times / over + plus;
    if converted.is_finite() {
        converted
    } else {
        value / over * times + plus
    }
}

/// By how much of itself a quantity may differ from another in which it was sent, and from which it was
/// converted: each conversion rounds.
const SAME_QUANTITY: f64 = 1e-9;

/// Whether two values in one unit are the same quantity, each converted from some unit. `between_zeros`: how
/// far the zeros of these units lie from that of the one. A value near zero is rounded as that distance is.
#[must_use]
pub fn is_same_quantity(one: f64, other: f64, between_zeros: f64) -> bool {
    let most = one.abs().max(other.abs()).max(between_zeros);
    most.is_finite() && (one - other).abs() <= SAME_QUANTITY * most
}

impl Conversion {
    #[must_use]
    pub fn apply(self, value: f64) -> f64 {
        match self {
            Self::Linear { times, over, plus } => scaled(value, times, over, plus),
            Self::FractionUpTo { limit } if value.abs() <= limit => value * 100.0,
            Self::Codes(codes) if value.fract() == 0.0 && value >= 0.0 => {
                codes.get(value as usize).copied().unwrap_or(f64::NAN)
            }
            Self::Codes(_) => f64::NAN,
            Self::Same | Self::FractionUpTo { .. } => value,
        }
    }

    /// What is added to a scaled value: where the zero of the unit lies that is converted from.
    #[must_use]
    pub const fn offset(self) -> f64 {
        match self {
            Self::Linear { plus, .. } => plus,
            Self::Same | Self::FractionUpTo { .. } | Self::Codes(_) => 0.0,
        }
    }

    /// Whether converting `value` to `converted` changed what was sent, so that the original is worth
    /// keeping. Another spelling of the type's unit changes nothing.
    #[must_use]
    pub const fn leaves_original(self, value: f64, converted: f64) -> bool {
        match self {
            Self::Same => false,
            Self::Linear { .. } | Self::Codes(_) => true,
            Self::FractionUpTo { .. } => value.to_bits() != converted.to_bits(),
        }
    }
}

/// What converting needs of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure<'u> {
    pub(super) dimension: &'u str,
    /// In base units of its dimension.
    pub(super) factor: Ratio,
    pub(super) zero: [i64; 2],
    /// Grams of one mole, if the unit tells.
    pub(super) grams_per_mole: Option<f64>,
}

/// `None` if the factor has too many digits.
pub(super) fn between(from: Measure<'_>, target: Measure<'_>, is_difference: bool) -> Option<Conversion> {
    let plus = if is_difference || from.zero == target.zero {
        0.0
    } else {
        let [from_zero, from_parts] = from.zero.map(i128::from);
        let [target_zero, target_parts] = target.zero.map(i128::from);
        let distance = from_zero * target_parts - target_zero * from_parts;
        let distance = distance * target.factor.denominator as i128;
        let parts = from_parts * target_parts * target.factor.numerator as i128;
        distance as f64 / parts as f64
    };
    Some(linear(from.factor.over(target.factor)?, plus))
}

/// Both parts of most fractions are exact as floats, because these are in lowest terms.
pub(super) fn linear(factor: Ratio, plus: f64) -> Conversion {
    if factor == Ratio::ONE && plus == 0.0 {
        return Conversion::Same;
    }
    Conversion::Linear {
        times: factor.numerator as f64,
        over: factor.denominator as f64,
        plus,
    }
}
