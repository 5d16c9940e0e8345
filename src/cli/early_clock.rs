//! Refuses to work by a clock that was never set. What would be written has times, and ids in their order.

use crate::model::time::Instant;

use super::failed::Failed;

/// Refuses a clock that shows a time before 1970, which is as far back as ids and tokens reach.
pub(super) fn refuse(now: Instant) -> Result<(), Failed> {
    if now >= Instant::from_micros(0) {
        return Ok(());
    }
    Err(Failed::because(format!(
        "the clock of this machine shows {now}, and nothing can be stored with times before 1970: set it \
         first"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_is_refused() {
        let told = refuse(Instant::from_micros(-1)).unwrap_err().to_string();
        assert!(told.contains("1969-12-31"), "{told}");
        assert!(refuse(Instant::from_micros(0)).is_ok());
    }
}
