//! Refuses to work by a clock that cannot be right. What would be written has times, and ids in their order.

use crate::model::time::Instant;

use super::failed::Failed;

/// Refuses a clock that shows a time before 1970, which is as far back as ids and tokens reach, or beyond
/// 9999, which is as far as the headers of answers reach.
pub(super) fn refuse(now: Instant) -> Result<(), Failed> {
    if (Instant::from_micros(0)..=Instant::MAX).contains(&now) {
        return Ok(());
    }
    Err(Failed::because(format!(
        "the clock of this machine shows {now}, and nothing can be stored with times before 1970 or beyond \
         9999: set it first"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_or_beyond_9999_is_refused() {
        let told = refuse(Instant::from_micros(-1)).unwrap_err().to_string();
        assert!(told.contains("1969-12-31"), "{told}");
        assert!(refuse(Instant::from_micros(0)).is_ok());
        assert!(refuse(Instant::MAX).is_ok());
        assert!(refuse(Instant::from_micros(Instant::MAX.micros() + 1)).is_err());
    }
}
