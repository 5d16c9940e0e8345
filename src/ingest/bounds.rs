//! Limits the cost of one record, counted on its text before it is decoded.
//!
//! A few kilobytes of gzip are megabytes of `[0,0,…]`, which are gigabytes once each number is a value of its
//! own. So values are counted first and multiplied by the checks of a person's own schema. Knows JSON text;
//! knows nothing of records.

/// Most values of one record: a day of heart beats with three numbers each has half as many.
pub const MOST_VALUES: usize = 1 << 19;
/// About how many bytes one value takes while its record is decoded.
pub const VALUE_BYTES: usize = 64;
/// Most bytes of a source's name. A mebibyte of text may be a note, but not a name.
pub(super) const LONGEST_SOURCE: usize = 2048;
/// Most checks of one record against a person's own schema: less than a second of work.
const MOST_CHECKS: u64 = 1 << 26;

/// A record that would cost too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooMuch {
    #[error("the record has more than {MOST_VALUES} values; send it in parts")]
    Values,
    #[error(
        "the record has too many values for the schema of its type, which checks each of them up to {0} times"
    )]
    Checks(u64),
}

/// Whether `json` may be decoded, where the schema of its type checks one value up to `checks` times.
pub(super) fn admit(json: &[u8], checks: u64) -> Result<(), TooMuch> {
    let most = usize::try_from(MOST_CHECKS / checks.max(1)).map_or(MOST_VALUES, |most| most.min(MOST_VALUES));
    // No text has more values than bytes.
    if json.len() <= most || values(json, most) <= most {
        Ok(())
    } else if most < MOST_VALUES {
        Err(TooMuch::Checks(checks))
    } else {
        Err(TooMuch::Values)
    }
}

/// How many values `json` has, counting no further than one beyond `most`. Text that is not JSON is counted
/// as if it were.
pub(super) fn values(json: &[u8], most: usize) -> usize {
    let mut values = 1;
    let mut rest = json.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b',' | b'[' | b'{' => {
                values += 1;
                if values > most {
                    return values;
                }
            }
            b'"' => {
                while let Some(byte) = rest.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => {
                            rest.next();
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_not_what_stands_in_texts() {
        for (json, count) in [
            ("1", 1),
            ("[1,2,3]", 4),
            (r#"{"a":[1,{"b":2}],"c":"x,[{\",y\\"}"#, 6),
        ] {
            assert_eq!(values(json.as_bytes(), 100), count, "{json}");
        }
        assert_eq!(values(&[b'['; 1000], 10), 11);
    }

    #[test]
    fn a_record_has_a_limited_number_of_values() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count));
        assert_eq!(admit(list(MOST_VALUES - 2).as_bytes(), 1), Ok(()));
        assert_eq!(admit(list(MOST_VALUES).as_bytes(), 1), Err(TooMuch::Values));
        let text = format!("\"{}\"", ",".repeat(2 * MOST_VALUES));
        assert_eq!(admit(text.as_bytes(), 1), Ok(()));
    }

    #[test]
    fn a_schema_that_checks_much_takes_fewer_values() {
        let list = format!("[{}0]", "0,".repeat(20_000));
        assert_eq!(admit(list.as_bytes(), 1000), Ok(()));
        assert_eq!(admit(list.as_bytes(), 10_000), Err(TooMuch::Checks(10_000)));
    }
}
