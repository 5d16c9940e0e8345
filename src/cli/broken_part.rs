//! Watches the parts of a running service that must not end before it does.

use futures::future::select_all;
use tokio::task::{JoinError, JoinHandle};

use super::failed::Failed;

/// Background work and its name.
pub(super) type NamedTask = (&'static str, JoinHandle<()>);

/// A part of the service that ended although it should have gone on.
pub(super) struct BrokenPart {
    part: &'static str,
    outcome: Result<(), JoinError>,
}

impl BrokenPart {
    /// A service that cannot write, whose tail grows without bound, or that keeps what was to be forgotten,
    /// must not keep running and report that it is well.
    pub(super) fn into_failure(self) -> Failed {
        let Self { part, outcome } = self;
        let reason = outcome
            .err()
            .map_or_else(|| "it ended".to_owned(), |error| error.to_string());
        tracing::error!(part, reason, "a part of the service failed; the service stops");
        Failed::because(format!("{part} failed: {reason}; start the service again"))
    }
}

/// Done when `stop` is, or when one of `parts` ends, without which the service must not go on.
pub(super) async fn wait_until_told_or_broken(
    stop: impl Future<Output = ()>,
    parts: impl IntoIterator<Item = (&'static str, &mut JoinHandle<()>)>,
) -> Option<BrokenPart> {
    let (names, ends): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    tokio::select! {
        () = stop => None,
        (outcome, place, _) = select_all(ends) => {
            let part = names.get(place).copied().unwrap_or_default();
            Some(BrokenPart { part, outcome })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn whichever_part_breaks_is_named() {
        let mut parts: Vec<NamedTask> = ["upkeep", "the access log", "the committing task"]
            .map(|name| (name, tokio::spawn(pending::<()>())))
            .into();
        let broken = wait_until_told_or_broken(async {}, named(&mut parts)).await;
        assert!(broken.is_none(), "nothing broke");
        parts[1].1 = tokio::spawn(async { panic!("for a test") });
        let broken = wait_until_told_or_broken(pending(), named(&mut parts)).await;
        let told = broken.unwrap().into_failure().to_string();
        assert!(told.starts_with("the access log failed"), "{told}");
        // What ends without a panic is missing just the same.
        parts[1].1 = tokio::spawn(pending::<()>());
        parts[2].1 = tokio::spawn(async {});
        let broken = wait_until_told_or_broken(pending(), named(&mut parts)).await;
        let told = broken.unwrap().into_failure().to_string();
        assert!(told.starts_with("the committing task failed"), "{told}");
    }

    fn named(parts: &mut [NamedTask]) -> impl Iterator<Item = (&'static str, &mut JoinHandle<()>)> {
        parts.iter_mut().map(|(name, task)| (*name, task))
    }
}
