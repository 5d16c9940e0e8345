//! Permission to read, as a value.
//!
//! Code that answers questions about stored rows takes one of these instead of a person's id, so that no
//! question can be asked without a decision. A permit lives as long as the request it was given for. It is
//! bound to the `Authority` that decided: only a holder of such a value can make one, a permit can be neither
//! copied nor changed, and code written for one authority takes the permits of no other. Who the authority
//! is, and how it decides, is not known here.

use std::fmt;
use std::marker::PhantomData;

use uuid::Uuid;

use super::ids::PersonId;
use super::registry::TypeId;
use super::time::{Instant, TimeRange};

/// Spans of time in which rows may be read: sorted, not empty, not touching.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Windows(Vec<TimeRange>);

impl Windows {
    /// The windows that together cover the same time as `ranges`.
    pub fn new(ranges: impl IntoIterator<Item = TimeRange>) -> Self {
        let mut sorted: Vec<TimeRange> = ranges
            .into_iter()
            .filter(|range| range.start() < range.end())
            .collect();
        sorted.sort_by_key(|range| range.start());
        let mut windows: Vec<TimeRange> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match windows.last_mut() {
                Some(last) if range.start() <= last.end() => {
                    if let Some(joined) = TimeRange::new(last.start(), last.end().max(range.end())) {
                        *last = joined;
                    }
                }
                _ => windows.push(range),
            }
        }
        Self(windows)
    }

    #[must_use]
    pub fn as_slice(&self) -> &[TimeRange] {
        &self.0
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The part of `range` that they cover.
    #[must_use]
    pub fn within(&self, range: TimeRange) -> Self {
        let cut = |window: &TimeRange| {
            TimeRange::new(window.start().max(range.start()), window.end().min(range.end()))
        };
        Self::new(self.0.iter().filter_map(cut))
    }

    /// Whether one of them covers the whole of `range`.
    #[must_use]
    pub fn cover(&self, range: TimeRange) -> bool {
        self.0
            .iter()
            .any(|window| window.start() <= range.start() && range.end() <= window.end())
    }

    /// Whether they cover everything that `others` cover.
    #[must_use]
    pub fn cover_all(&self, others: &Self) -> bool {
        others.0.iter().all(|other| self.cover(*other))
    }

    /// Whether a moment lies in one of them.
    #[must_use]
    pub fn contain(&self, moment: Instant) -> bool {
        let after = self.0.partition_point(|window| window.start() <= moment);
        after
            .checked_sub(1)
            .and_then(|index| self.0.get(index))
            .is_some_and(|window| moment < window.end())
    }
}

/// Permission to read one person's rows of one type inside some windows.
pub struct ReadPermit<Authority> {
    owner: PersonId,
    data_type: TypeId,
    windows: Windows,
    /// Set when another person reads. Such a reader sees less: see [`ReadPermit::shared`].
    reader: Option<SharedWith>,
    given_by: PhantomData<fn() -> Authority>,
}

/// The two people of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerAndReader {
    pub owner: PersonId,
    pub reader: PersonId,
}

/// A person who reads what another person shares.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedWith {
    pub reader: PersonId,
    /// Where rows are cut: everything that was granted. The question may ask for less.
    pub edges: Windows,
    /// Whether the reader may learn whose rows they are.
    pub knows_owner: bool,
}

impl<Authority> ReadPermit<Authority> {
    /// A permit for the owner of the rows, given by `_authority`. Only a holder of the authority can decide.
    #[must_use]
    pub fn given(_authority: &Authority, owner: PersonId, data_type: TypeId, windows: Windows) -> Self {
        Self {
            owner,
            data_type,
            windows,
            reader: None,
            given_by: PhantomData,
        }
    }

    /// A permit for another person. Rows are cut to the windows, and what names devices, applications and
    /// tags of the owner is left out.
    #[must_use]
    pub fn shared(
        _authority: &Authority,
        OwnerAndReader { owner, reader }: OwnerAndReader,
        data_type: TypeId,
        windows: Windows,
    ) -> Self {
        let edges = windows.clone();
        Self {
            owner,
            data_type,
            windows,
            reader: Some(SharedWith {
                reader,
                edges,
                knows_owner: true,
            }),
            given_by: PhantomData,
        }
    }

    /// The same permission for a reader who must not learn whose rows they are.
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        if let Some(reader) = &mut self.reader {
            reader.knows_owner = false;
        }
        self
    }

    /// Whether the reader owns the rows, and may see them as they were recorded.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.reader.is_none()
    }

    /// The reader, if not the owner, and where rows are cut for them.
    #[must_use]
    pub const fn shared_with(&self) -> Option<&SharedWith> {
        self.reader.as_ref()
    }

    #[must_use]
    pub const fn owner(&self) -> PersonId {
        self.owner
    }

    /// This permission for less time. Rows that reach beyond `range` are selected like any others, and
    /// cut where they were cut before.
    #[must_use]
    pub fn within(&self, range: TimeRange) -> Self {
        Self {
            owner: self.owner,
            data_type: self.data_type.clone(),
            windows: self.windows.within(range),
            reader: self.reader.clone(),
            given_by: PhantomData,
        }
    }

    #[must_use]
    pub const fn data_type(&self) -> &TypeId {
        &self.data_type
    }

    /// Whether it covers rows that `owner` stored under `partition`: the partition of its type, those of
    /// types defined upon its type, or the one that holds the records of its definition.
    #[must_use]
    pub fn is_for(&self, owner: PersonId, partition: &TypeId) -> bool {
        self.owner == owner
            && (self.data_type == *partition
                || self.data_type.as_str() == partition.base()
                || self.data_type.base() == partition.as_str())
    }

    /// The definition whose records are all that it covers of `partition`, which holds those of others, too.
    /// `None` where it covers the whole partition.
    #[must_use]
    pub fn definition_within(&self, partition: &TypeId) -> Option<Uuid> {
        self.data_type
            .definition()
            .filter(|_| self.data_type != *partition)
    }

    #[must_use]
    pub const fn windows(&self) -> &Windows {
        &self.windows
    }
}

impl<Authority> fmt::Debug for ReadPermit<Authority> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ReadPermit")
            .field("owner", &self.owner)
            .field("data_type", &self.data_type)
            .field("windows", &self.windows)
            .field("reader", &self.reader)
            .finish()
    }
}

/// Permission to learn which types of one person have rows, and how many, without reading a row.
pub struct ListPermit<Authority> {
    owner: PersonId,
    visible: Visible,
    is_own: bool,
    given_by: PhantomData<fn() -> Authority>,
}

/// What a listing may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visible {
    /// Every type, in these windows.
    EveryType(Windows),
    /// What each of these shows, combined where several show the same type.
    Granted(Vec<Opening>),
}

/// What one grant shows in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// These types and all types defined upon them; `None` is every type.
    pub types: Option<Vec<TypeId>>,
    pub windows: Windows,
}

impl Opening {
    #[must_use]
    pub fn shows(&self, data_type: &TypeId) -> bool {
        self.types.as_ref().is_none_or(|types| {
            types
                .iter()
                .any(|shown| shown == data_type || shown.as_str() == data_type.base())
        })
    }
}

impl<Authority> ListPermit<Authority> {
    /// A permit for the owner, given by `_authority`.
    #[must_use]
    pub fn given(_authority: &Authority, owner: PersonId, visible: Visible) -> Self {
        Self {
            owner,
            visible,
            is_own: true,
            given_by: PhantomData,
        }
    }

    /// A permit for another person: records that reach beyond a window count with the part inside.
    #[must_use]
    pub fn shared(_authority: &Authority, owner: PersonId, visible: Visible) -> Self {
        Self {
            owner,
            visible,
            is_own: false,
            given_by: PhantomData,
        }
    }

    /// Whether the reader is the owner.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.is_own
    }

    #[must_use]
    pub const fn owner(&self) -> PersonId {
        self.owner
    }

    /// Where rows of `data_type` may be counted; `None` when its existence must not be revealed.
    #[must_use]
    pub fn windows_of(&self, data_type: &TypeId) -> Option<Windows> {
        match &self.visible {
            Visible::EveryType(windows) => Some(windows.clone()),
            Visible::Granted(openings) => {
                let mut shown = openings
                    .iter()
                    .filter(|opening| opening.shows(data_type))
                    .peekable();
                shown.peek()?;
                Some(Windows::new(
                    shown.flat_map(|opening| opening.windows.as_slice().iter().copied()),
                ))
            }
        }
    }
}

impl<Authority> fmt::Debug for ListPermit<Authority> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ListPermit")
            .field("owner", &self.owner)
            .field("visible", &self.visible)
            .field("is_own", &self.is_own)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::new(Instant::from_micros(start), Instant::from_micros(end)).unwrap()
    }

    #[test]
    fn windows_are_sorted_joined_and_never_empty() {
        let windows = Windows::new([
            range(30, 40),
            range(0, 10),
            range(5, 20),
            range(20, 25),
            range(50, 50),
        ]);
        assert_eq!(windows.as_slice(), [range(0, 25), range(30, 40)]);
    }

    #[test]
    fn a_permit_for_less_time_never_covers_more() {
        let windows = Windows::new([range(0, 10), range(20, 30)]);
        assert_eq!(
            windows.within(range(5, 25)).as_slice(),
            [range(5, 10), range(20, 25)]
        );
        assert!(windows.within(range(10, 20)).is_empty());
        assert_eq!(windows.within(range(-5, 50)), windows);
    }

    #[test]
    fn rule_9_2c_a_narrower_question_does_not_move_where_rows_are_cut() {
        let (reader, owner) = (PersonId(Uuid::from_u128(1)), PersonId(Uuid::from_u128(2)));
        let windows = Windows::new([range(0, 10), range(20, 30)]);
        let permit = ReadPermit::shared(
            &(),
            OwnerAndReader { owner, reader },
            TypeId::new("HeartRate"),
            windows.clone(),
        );
        let narrower = permit.within(range(5, 25));
        assert!(!narrower.is_own());
        assert_eq!(narrower.windows().as_slice(), [range(5, 10), range(20, 25)]);
        assert_eq!(
            narrower.shared_with(),
            Some(&SharedWith {
                reader,
                edges: windows,
                knows_owner: true,
            })
        );
        let unnamed = narrower.anonymous().within(range(5, 9));
        assert!(unnamed.shared_with().is_some_and(|shared| !shared.knows_owner));
        let own = ReadPermit::given(&(), owner, TypeId::new("HeartRate"), unnamed.windows().clone());
        assert!(own.is_own() && own.shared_with().is_none());
    }

    #[test]
    fn rule_9_2_a_permit_for_a_definition_covers_its_records_alone() {
        let (definition, owner) = (Uuid::from_u128(3), PersonId(Uuid::from_u128(2)));
        let (base, upon_it) = (TypeId::new("Base"), TypeId::of_definition("Base", definition));
        let within = |permitted: &TypeId, partition: &TypeId| {
            let permit = ReadPermit::given(&(), owner, permitted.clone(), Windows::default());
            assert!(permit.is_for(owner, partition));
            permit.definition_within(partition)
        };
        assert_eq!(within(&upon_it, &base), Some(definition));
        for (permitted, partition) in [(&upon_it, &upon_it), (&base, &base), (&base, &upon_it)] {
            assert_eq!(within(permitted, partition), None, "{permitted} in {partition}");
        }
    }

    #[test]
    fn a_window_contains_its_start_and_not_its_end() {
        let windows = Windows::new([range(0, 10), range(20, 30)]);
        let inside: Vec<bool> = [-1, 0, 9, 10, 20, 30]
            .map(|micros| windows.contain(Instant::from_micros(micros)))
            .into();
        assert_eq!(inside, [false, true, true, false, true, false]);
    }
}
