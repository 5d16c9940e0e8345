//! Where the members of a record that came wrapped were sent.
//!
//! Lives as long as the record. Knows ways and names; knows nothing of what stands there.

use super::wrapper::{DATA, METADATA};
use crate::ingest::body::RecordPosition;
use crate::model::faults::{Fault, LocPart};

/// The places of a record's members. Of those that are not named here it is `data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    wrapper: RecordPosition,
    /// The members that are not members of `data`, each with the way to it.
    beside: Vec<(String, Vec<String>)>,
    united: Vec<United>,
}

/// A list to whose texts others were added.
#[derive(Clone, Debug, PartialEq, Eq)]
struct United {
    name: String,
    /// How many texts it had before.
    own: usize,
    added: Vec<TextPlace>,
}

/// Where a text of a list was sent: the member of the metadata, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextPlace {
    pub(super) member: &'static str,
    pub(super) index: usize,
}

impl Places {
    /// For a wrapper that stands at this place of the body.
    pub(super) const fn new(wrapper: RecordPosition) -> Self {
        Self {
            wrapper,
            beside: Vec::new(),
            united: Vec::new(),
        }
    }

    /// Notes that a member stands at `way` in the wrapper.
    pub(super) fn put(&mut self, name: &str, way: &[&str]) {
        let way = way.iter().map(|part| (*part).to_owned()).collect();
        self.beside.push((name.to_owned(), way));
    }

    /// Notes what was added to a list, which had `own` texts if nothing had been added to it before.
    pub(super) fn unite(&mut self, name: &str, own: usize, added: Vec<TextPlace>) {
        match self.united.iter_mut().find(|united| united.name == name) {
            Some(united) => united.added.extend(added),
            None => self.united.push(United {
                name: name.to_owned(),
                own,
                added,
            }),
        }
    }

    /// The way to a member that is not a member of `data`.
    pub(super) fn way_to(&self, name: &str) -> Option<&[String]> {
        // A null gave way to the member that came later.
        let mut latest = self.beside.iter().rev();
        latest
            .find(|(member, _)| member == name)
            .map(|(_, way)| way.as_slice())
    }

    /// The place in the wrapper of what is wrong in a record.
    pub(super) fn place(&self, fault: &mut Fault) {
        let at = self.wrapper.loc().len();
        let Some(LocPart::Name(name)) = fault.loc.get(at) else {
            return;
        };
        let text = match fault.loc.get(at + 1) {
            Some(LocPart::Index(index)) => self.text(name, *index),
            _ => None,
        };
        let (way, replaced): (Vec<LocPart>, usize) = match (text, self.way_to(name)) {
            (Some(TextPlace { member, index }), _) => (vec![METADATA.into(), member.into(), index.into()], 2),
            (None, Some(way)) => (way.iter().map(|part| part.as_str().into()).collect(), 1),
            (None, None) => (vec![DATA.into()], 0),
        };
        fault.loc.splice(at..at + replaced, way);
    }

    /// Where the text of that index in a list was sent, if it was added to those before it.
    fn text(&self, name: &str, index: usize) -> Option<TextPlace> {
        let united = self.united.iter().find(|united| united.name == name)?;
        united.added.get(index.checked_sub(united.own)?).copied()
    }
}
