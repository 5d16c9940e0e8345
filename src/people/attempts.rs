//! Changes that are attempted again where another one came first.
//!
//! An attempt reads what it is to replace, decides, and writes only if nothing of that has changed since. So
//! it is overtaken only where another change succeeded, and of as many changes at once as there are attempts,
//! all succeed. Knows nothing of what is changed.

/// How often a change is attempted: more often than a client has requests in progress, which are at most
/// twenty.
pub(super) const ATTEMPTS: usize = 32;

/// Why a change failed, which may be that another one came first.
pub(super) trait MayBeOvertaken {
    fn is_overtaken(&self) -> bool;
}

/// What comes of `attempt`, which is repeated while another change comes first, up to [`ATTEMPTS`] in all.
/// Nothing passes from one attempt to the next, so each of them has to read everything anew.
pub(super) async fn repeat_while_overtaken<T, E, F>(attempt: impl Fn() -> F) -> Result<T, E>
where
    E: MayBeOvertaken,
    F: Future<Output = Result<T, E>>,
{
    let mut made = 0;
    loop {
        made += 1;
        match attempt().await {
            Err(error) if error.is_overtaken() && made < ATTEMPTS => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Failure {
        Overtaken,
        Other,
    }

    impl MayBeOvertaken for Failure {
        fn is_overtaken(&self) -> bool {
            *self == Self::Overtaken
        }
    }

    /// The outcome where `others` changes come first and then `last` does, and how many attempts it took.
    async fn after(others: usize, last: Result<(), Failure>) -> (Result<(), Failure>, usize) {
        let made = AtomicUsize::new(0);
        let outcome = repeat_while_overtaken(|| async {
            if made.fetch_add(1, Ordering::Relaxed) < others {
                Err(Failure::Overtaken)
            } else {
                last.clone()
            }
        });
        (outcome.await, made.into_inner())
    }

    #[tokio::test]
    async fn a_change_is_repeated_until_no_other_comes_first() {
        assert_eq!(after(0, Ok(())).await, (Ok(()), 1));
        assert_eq!(after(ATTEMPTS - 1, Ok(())).await, (Ok(()), ATTEMPTS));
    }

    #[tokio::test]
    async fn the_last_attempt_that_is_overtaken_is_the_outcome() {
        assert_eq!(after(ATTEMPTS, Ok(())).await, (Err(Failure::Overtaken), ATTEMPTS));
    }

    #[tokio::test]
    async fn no_other_failure_is_repeated() {
        assert_eq!(after(1, Err(Failure::Other)).await, (Err(Failure::Other), 2));
    }
}
