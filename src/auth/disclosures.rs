//! What one request was permitted to read of others.
//!
//! The decision notes here what it gave; it is used for what the answer says about itself, for the log, and
//! to check again while a long answer is being sent. Lives as long as the request.

use std::sync::{Mutex, OnceLock, PoisonError};

use uuid::Uuid;

use crate::model::ids::{ParticipantId, PersonId};
use crate::model::permit::{Opening, Windows};
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;
use crate::people::sharing::received::OpenedBySharer;
use crate::people::sharing::terms::{FileAge, Terms};

/// What was asked for, and what was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disclosure {
    pub owner: PersonId,
    pub subject: Subject,
    pub requested: TimeRange,
    /// The windows that may be read.
    pub windows: Windows,
    /// The ids of the grants behind it. Empty for a reader who owns the group.
    pub grants: Vec<Uuid>,
    /// The group whose owner asked in that role.
    pub group: Option<Uuid>,
}

/// What a decision is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Type(TypeId),
    /// A listing of what there is, without its contents.
    Listing(Vec<Opening>),
    File(String, FileAge),
    /// A listing of the files in a folder, and the terms under which they were shown.
    Folder(String, Vec<Terms>),
}

/// A person whom the reader knows only by a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participation {
    pub group: Uuid,
    pub participant: ParticipantId,
    pub(super) person: PersonId,
    pub(super) types: Vec<TypeId>,
    pub(super) window: TimeRange,
}

/// All disclosures of a request.
#[derive(Debug, Default)]
pub struct Disclosures {
    given: Mutex<Vec<Disclosure>>,
    /// The time that the request is about, where rows that are recorded around it are asked for as well.
    about: OnceLock<TimeRange>,
    participation: OnceLock<Participation>,
}

impl Disclosures {
    pub(super) fn note(&self, disclosure: Disclosure) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if !given.contains(&disclosure) {
            given.push(disclosure);
        }
    }

    /// What was given so far, in the order in which it was asked for.
    #[must_use]
    pub fn given(&self) -> Vec<Disclosure> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says that the request is about `range`, though permits for more are asked for.
    pub fn are_about(&self, range: TimeRange) {
        self.about.get_or_init(|| range);
    }

    /// What the answer and the log tell of what was given: the part that the request is about.
    #[must_use]
    pub fn told(&self) -> Vec<Disclosure> {
        let mut told = self.given();
        if let Some(about) = self.about.get() {
            for disclosure in &mut told {
                disclosure.requested = *about;
                disclosure.windows = disclosure.windows.within(*about);
            }
        }
        told
    }

    /// Notes that `owner` is among those whose shared types are listed beside the reader's own.
    pub fn note_listed(&self, owner: PersonId, opened: &OpenedBySharer) {
        let windows = opened.openings.iter();
        let windows = windows.flat_map(|opening| opening.windows.as_slice().iter().copied());
        self.note(Disclosure {
            owner,
            windows: Windows::new(windows),
            subject: Subject::Listing(opened.openings.clone()),
            requested: TimeRange::ALWAYS,
            grants: opened.grants.clone(),
            group: None,
        });
    }

    /// The participant that the request is about.
    #[must_use]
    pub fn participation(&self) -> Option<&Participation> {
        self.participation.get()
    }

    /// The person that the request is about, if it names `owner` or nobody.
    #[must_use]
    pub fn subject_of(&self, owner: Option<PersonId>) -> Option<PersonId> {
        self.participation()
            .map(|participation| participation.person)
            .or(owner)
    }

    /// Sets the participant; a request is about one participant only.
    pub(super) fn participate(&self, participation: Participation) -> &Participation {
        self.participation.get_or_init(|| participation)
    }
}
