//! How many jobs may wait for somebody else at the same time, each with a connection of the catalogue's in
//! its hands.

/// Places for jobs that are committed individually, and for those that keep everybody else out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub alone: usize,
    pub held: usize,
}

impl Places {
    const MOST: Self = Self { alone: 8, held: 4 };

    /// `connections`: how many everybody shares who reads and writes, if they do. A job that keeps everybody
    /// else out is prepared over others than its own, so together they must leave some.
    pub(super) fn among(connections: Option<usize>) -> Self {
        let Some(connections) = connections else {
            return Self::MOST;
        };
        Self {
            alone: (connections / 2).clamp(1, Self::MOST.alone),
            held: (connections / 4).clamp(1, Self::MOST.held),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_hold_connections_leave_some_to_others() {
        assert_eq!(Places::among(None), Places::MOST);
        assert_eq!(Places::among(Some(16)), Places::MOST);
        // No setting allows fewer.
        for connections in 4..100 {
            let places = Places::among(Some(connections));
            assert!(places.alone > 0 && places.held > 0, "{places:?}");
            assert!(places.alone + places.held < connections, "{places:?}");
        }
    }
}
