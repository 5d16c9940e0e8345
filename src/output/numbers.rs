//! Writes numbers as text: the shortest digits that read back as the same value, at most 17 significant ones.
//!
//! A whole float keeps its `.0`, so that a reader that guesses types from text sees one type in the whole
//! column. Very large and very small numbers have an exponent (`1e16`, `1.5e-7`), which JSON and every reader
//! of CSV allow. Numbers that are not finite have no text.

/// Below this, a float times a thousand is exact enough to decide whether it has at most three decimals.
const PLAIN_LIMIT: f64 = 1e12;

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

/// Writes a float with at most three decimals, as most measurements have, by the digits of an integer.
///
/// With fewer than 16 significant digits, a decimal that reads back as `value` is the only one that short, so
/// it is also the shortest.
#[expect(
    clippy::float_cmp,
    reason = "only values that are exactly such decimals are written here"
)]
fn write_plain(value: f64, out: &mut Vec<u8>) -> bool {
    let thousandths = value * 1000.0;
    let whole = thousandths as i64;
    let exact = whole as f64 == thousandths && whole as f64 / 1000.0 == value;
    if !exact || (whole == 0 && value.is_sign_negative()) {
        return false;
    }
    if whole < 0 {
        out.push(b'-');
    }
    let digits = whole.unsigned_abs();
    write_unsigned(digits / 1_000, out);
    let rest = (digits % 1_000) as u16;
    let [tenths, hundredths, thousandths] =
        [rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit as u8);
    // Trailing zeros are dropped, except in the first decimal.
    if rest.is_multiple_of(100) {
        out.extend_from_slice(&[b'.', tenths]);
    } else if rest.is_multiple_of(10) {
        out.extend_from_slice(&[b'.', tenths, hundredths]);
    } else {
        out.extend_from_slice(&[b'.', tenths, hundredths, thousandths]);
    }
    true
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
            digits in -10_000_000_000i64..10_000_000_000,
            decimals in 0i32..6
        ) {
            let value = digits as f64 / 10f64.powi(decimals);
            let text = double(value).unwrap();
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
            let mut buffer = ryu::Buffer::new();
            prop_assert_eq!(text, buffer.format_finite(value));
        }
    }
}
