//! Writes numbers as text: the shortest digits that read back as the same value, at most 17 significant ones.
//!
//! A whole float keeps its `.0`, so that a reader that guesses types from text sees one type in the whole
//! column. Very large and very small numbers have an exponent (`1e16`, `1.5e-7`), which JSON and every reader
//! of CSV allow. Numbers that are not finite have no text.

/// Below this, a float with six decimals has at most 15 significant digits.
const PLAIN_LIMIT: f64 = 1e9;
/// A number of fewer millionths has an exponent.
const LEAST_PLAIN_MILLIONTHS: u64 = 10;

pub(super) fn write_integer(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

pub(super) fn write_unsigned(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes a finite float. For any other, writes nothing and returns false.
pub(super) fn write_double(value: f64, out: &mut Vec<u8>) -> bool {
    if value.abs() < PLAIN_LIMIT && write_plain(value, out) {
        return true;
    }
    if value.is_finite() {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    }
    value.is_finite()
}

/// Like [`write_double`], with the shortest digits that read back as the same `f32`.
pub(super) fn write_single(value: f32, out: &mut Vec<u8>) -> bool {
    if value.is_finite() {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    }
    value.is_finite()
}

/// Writes a float with at most six decimals, as measurements and coordinates have, as the digits of an
/// integer.
///
/// With fewer than 16 significant digits, a decimal that reads back as `value` is the only one that short, so
/// it is also the shortest. The quotient is what it reads back as, since both numbers are exact.
#[expect(
    clippy::float_cmp,
    reason = "only values that are exactly such decimals are written here"
)]
fn write_plain(value: f64, out: &mut Vec<u8>) -> bool {
    let millionths = value * 1e6;
    let whole = (millionths + 0.5_f64.copysign(millionths)) as i64;
    // What the product may have lost. Others are spared the division, which takes longest.
    let is_near = (millionths - whole as f64).abs() <= millionths.abs() * (2.0 * f64::EPSILON);
    let digits = whole.unsigned_abs();
    let is_plain = digits >= LEAST_PLAIN_MILLIONTHS || (digits == 0 && value.is_sign_positive());
    if !is_near || !is_plain || whole as f64 / 1e6 != value {
        return false;
    }
    if whole < 0 {
        out.push(b'-');
    }
    write_unsigned(digits / 1_000_000, out);
    write_decimals((digits % 1_000_000) as u32, out);
    true
}

/// Writes millionths behind a point, without the zeros at the end, except in the first decimal.
fn write_decimals(millionths: u32, out: &mut Vec<u8>) {
    if millionths.is_multiple_of(100_000) {
        out.extend_from_slice(&[b'.', b'0' + (millionths / 100_000) as u8]);
        return;
    }
    let mut text = *b".000000";
    let mut rest = millionths;
    for digit in text.iter_mut().skip(1).rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    let zeros = text.iter().rev().take_while(|digit| **digit == b'0').count();
    out.extend_from_slice(&text[..text.len() - zeros]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn double(value: f64) -> Option<String> {
        let mut out = Vec::new();
        write_double(value, &mut out).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_float_keeps_its_point() {
        let shown = [
            72.0,
            0.0,
            -0.0,
            0.5,
            -0.125,
            72.1,
            0.001,
            -3.07,
            64.146_613,
            -21.942_6,
            0.000_01,
            0.000_001,
            999_999_999.999_999,
            1e9,
            1e15,
            1e16,
            1.5e-7,
            0.1 + 0.2,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
        ];
        let texts = shown.map(|value| double(value).unwrap());
        insta::assert_debug_snapshot!(texts, @r#"
        [
            "72.0",
            "0.0",
            "-0.0",
            "0.5",
            "-0.125",
            "72.1",
            "0.001",
            "-3.07",
            "64.146613",
            "-21.9426",
            "0.00001",
            "1e-6",
            "999999999.999999",
            "1000000000.0",
            "1000000000000000.0",
            "1e16",
            "1.5e-7",
            "0.30000000000000004",
            "1.7976931348623157e308",
            "2.2250738585072014e-308",
            "5e-324",
        ]
        "#);
    }

    #[test]
    fn what_is_not_finite_has_no_text() {
        assert_eq!(
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(double),
            [None, None, None]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn every_finite_double_reads_back_and_is_the_shortest(value in any::<f64>()) {
            let text = double(value).unwrap();
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
            let mut buffer = ryu::Buffer::new();
            prop_assert_eq!(text, buffer.format_finite(value));
        }

        #[test]
        fn every_measurement_reads_back_and_is_the_shortest(
            digits in -10_000_000_000_000_000i64..10_000_000_000_000_000,
            fewer in 0_u32..16,
            decimals in 0i32..9
        ) {
            let value = (digits / 10_i64.pow(fewer)) as f64 / 10f64.powi(decimals);
            let text = double(value).unwrap();
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
            let mut buffer = ryu::Buffer::new();
            prop_assert_eq!(text, buffer.format_finite(value));
        }
    }
}
