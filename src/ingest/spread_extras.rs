//! Puts the members of `extras` beside the others, where answers show them there: in records of a person's
//! own types. What is valid, and where it is stored, is then the same for both ways to send a member. Only
//! what its column, which is null beside the extras, cannot hold stays among them: so answers show what was
//! sent before its field was declared.
//!
//! Works on the text, so that later steps see nothing unusual. Ids that follow from the content agree with it
//! (`put_beside` in `natural`). Knows JSON and plans.

use std::borrow::Cow;

use ahash::{HashMap, HashMapExt, HashSet};
use arrow::datatypes::{DataType as ColumnType, Field as ColumnField, FieldRef};

use super::body::RecordPosition;
use super::cells;
use super::declared::DeclaredMembers;
use super::field_plan::{FieldPlan, KnownField, Role};
use super::given_once::{given_twice, is_any_given_twice};
use super::json::{self, Field};
use crate::model::columns::EXTRAS;
use crate::model::faults::{Fault, LocPart};
use crate::model::registry::Canonical;

/// How many extras may stand within each other. Each is read once for every one around it.
const DEEPEST_EXTRAS: usize = 4;

/// The names of the members that were sent among the extras.
#[derive(Debug, Default)]
pub(super) struct SentInExtras(HashSet<String>);

impl SentInExtras {
    /// The faults of the record at `place`, where its members were sent.
    pub(super) fn placed(&self, place: RecordPosition, mut faults: Vec<Fault>) -> Vec<Fault> {
        let at = place.loc().len();
        for fault in &mut faults {
            if let Some(LocPart::Name(name)) = fault.loc.get(at)
                && self.0.contains(name)
            {
                fault.loc.insert(at, EXTRAS.into());
            }
        }
        faults
    }
}

/// The record with the members of its extras beside the others, and which these are. A record that cannot be
/// read stays as it is: the decoder reports better what is wrong with it.
pub(super) fn spread<'a>(record: Cow<'a, [u8]>, plan: &FieldPlan) -> (Cow<'a, [u8]>, SentInExtras) {
    match spread_out(&record, plan) {
        Some((spread, sent)) => (Cow::Owned(spread), sent),
        None => (record, SentInExtras::default()),
    }
}

/// `None` if there is nothing to spread.
fn spread_out(record: &[u8], plan: &FieldPlan) -> Option<(Vec<u8>, SentInExtras)> {
    if !plan.spreads_extras || !may_have_extras(record) {
        return None;
    }
    let fields = json::fields(record).ok()?;
    let is_given = |field: &Field<'_>| is_extras(plan, field) && field.raw != "null";
    let at = fields.iter().position(is_given)?;
    let (before, after) = fields.split_at(at);
    let (extras, after) = after.split_first()?;
    // The decoder refuses what is given twice.
    let is_other = |again: &Field<'_>| is_given(again) && again.raw != extras.raw;
    if is_any_given_twice(&fields) || after.iter().any(is_other) {
        return None;
    }
    let mut members = Vec::new();
    gather(extras.raw, plan, DEEPEST_EXTRAS, &mut members)?;
    if members.is_empty() {
        return None;
    }
    let mut among = AmongExtras::of(&members, plan);
    let mut misfits = Vec::new();
    let mut besides = |fields| united_fields(fields, plan, &mut among, &mut misfits);
    let (before, after) = (besides(before), besides(after));
    let stay: HashSet<&str> = misfits.iter().map(|misfit| &*misfit.name).collect();
    let names = members.iter().map(|member| &*member.name);
    let sent: HashSet<String> = names
        .filter(|name| !stay.contains(name))
        .map(str::to_owned)
        .collect();
    // A schema that requires extras still finds them.
    let left = json::object(misfits.iter().copied().map(name_and_value));
    let left = String::from_utf8(left).ok()?;
    let is_left = !among.left().any(|member| is_extras(plan, member));
    let all = texts(&before)
        .chain(among.left().map(name_and_value))
        .chain(is_left.then_some((EXTRAS, left.as_str())))
        .chain(texts(&after));
    Some((json::object(all), SentInExtras(sent)))
}

/// Whether what was sent among the extras has the name of a column that cannot hold it.
pub(super) fn is_misfit(plan: &FieldPlan, member: &Field<'_>) -> bool {
    column_of(plan, member).is_some_and(|column| cells::fill(member.raw, column).is_err())
}

/// Whether a record may have a member that is called extras. Most records need not be read for it.
fn may_have_extras(record: &[u8]) -> bool {
    let text = std::str::from_utf8(record);
    text.is_ok_and(|text| text.contains("\"extras\"") || text.contains("\\u"))
}

fn is_extras(plan: &FieldPlan, field: &Field<'_>) -> bool {
    known(plan, field).is_some_and(|known| known.role == Role::Extras)
}

fn known<'p>(plan: &'p FieldPlan, field: &Field<'_>) -> Option<&'p KnownField> {
    plan.fields.get(plan.field(&field.name)?)
}

/// Collects the members of the object `extras`, and of extras in it. `None` where these stand too deep within
/// each other: then the decoder refuses them.
fn gather<'a>(extras: &'a str, plan: &FieldPlan, deepest: usize, members: &mut Vec<Field<'a>>) -> Option<()> {
    let deepest = deepest.checked_sub(1)?;
    for member in json::fields(extras.as_bytes()).ok()? {
        if !is_extras(plan, &member) || !member.raw.starts_with(['{', 'n']) {
            members.push(member);
        } else if member.raw != "null" {
            gather(member.raw, plan, deepest, members)?;
        }
    }
    Some(())
}

/// What two members have in common that can be one: the number of their field, or a name that is no field.
#[derive(PartialEq, Eq, Hash)]
enum SameField<'n> {
    Known(usize),
    Undeclared(&'n str),
}

impl<'n> SameField<'n> {
    fn of(member: &'n Field<'_>, plan: &FieldPlan) -> Self {
        let number = plan.field(&member.name);
        number.map_or(Self::Undeclared(&member.name), Self::Known)
    }
}

/// The members of extras, of which each may become one with a field beside them. There may be as many of both
/// as a record can hold.
struct AmongExtras<'m, 'a> {
    members: &'m [Field<'a>],
    /// Where the first member of a field stands that is not taken,
    first: HashMap<SameField<'m>, usize>,
    /// and for each member where the next one of its field does.
    next: Vec<Option<usize>>,
    is_taken: Vec<bool>,
}

impl<'m, 'a> AmongExtras<'m, 'a> {
    fn of(members: &'m [Field<'a>], plan: &FieldPlan) -> Self {
        let mut first = HashMap::with_capacity(members.len());
        let mut next = vec![None; members.len()];
        for (place, (member, next)) in members.iter().zip(&mut next).enumerate().rev() {
            *next = first.insert(SameField::of(member, plan), place);
        }
        Self {
            members,
            first,
            next,
            is_taken: vec![false; members.len()],
        }
    }

    fn find(&self, same: &SameField<'m>) -> Option<&'m Field<'a>> {
        self.members.get(*self.first.get(same)?)
    }

    /// Takes the member that `find` finds.
    fn take(&mut self, same: SameField<'m>) {
        let Some(place) = self.first.remove(&same) else {
            return;
        };
        if let Some(is_taken) = self.is_taken.get_mut(place) {
            *is_taken = true;
        }
        if let Some(next) = self.next.get(place).copied().flatten() {
            self.first.insert(same, next);
        }
    }

    /// The members that nothing took.
    fn left(&self) -> impl Iterator<Item = &'m Field<'a>> {
        let members = self.members.iter().zip(&self.is_taken);
        members
            .filter(|(_, is_taken)| !**is_taken)
            .map(|(member, _)| member)
    }
}

/// The fields without extras. Of what is `among` the extras too there is one, if both can be one. Else both
/// stay, and the decoder refuses what is given twice. Null gives way to anything else but what its column
/// cannot hold: that becomes one of the `misfits`.
fn united_fields<'m, 'a>(
    fields: &'m [Field<'_>],
    plan: &FieldPlan,
    among: &mut AmongExtras<'m, 'a>,
    misfits: &mut Vec<&'m Field<'a>>,
) -> Vec<(&'m str, Cow<'m, str>)> {
    let mut kept = Vec::with_capacity(fields.len());
    for field in fields.iter().filter(|field| !is_extras(plan, field)) {
        let same = SameField::of(field, plan);
        let Some(member) = among.find(&same) else {
            kept.push((field.name.as_ref(), Cow::Borrowed(field.raw)));
            continue;
        };
        if field.raw == "null" {
            if is_misfit(plan, member) {
                kept.push((field.name.as_ref(), Cow::Borrowed(field.raw)));
                misfits.push(member);
                among.take(same);
            }
            continue;
        }
        let united = if member.raw == "null" {
            Some(Cow::Borrowed(field.raw))
        } else {
            united_in_column(field, member.raw, plan)
        };
        if united.is_some() {
            among.take(same);
        }
        kept.push((field.name.as_ref(), united.unwrap_or(Cow::Borrowed(field.raw))));
    }
    kept
}

fn name_and_value<'f>(member: &'f Field<'_>) -> (&'f str, &'f str) {
    (member.name.as_ref(), member.raw)
}

fn texts<'f>(members: &'f [(&'f str, Cow<'f, str>)]) -> impl Iterator<Item = (&'f str, &'f str)> {
    members.iter().map(|(name, raw)| (*name, raw.as_ref()))
}

fn united_in_column<'f>(field: &'f Field<'_>, among: &str, plan: &FieldPlan) -> Option<Cow<'f, str>> {
    let (column, known) = (column_of(plan, field)?, known(plan, field)?);
    if given_twice(among).is_some() {
        return None;
    }
    united(column, &known.canonical, field.raw, among)
}

fn column_of<'p>(plan: &'p FieldPlan, field: &Field<'_>) -> Option<&'p FieldRef> {
    match known(plan, field)?.role {
        Role::Column(column) => plan.columns.get(column),
        _ => None,
    }
}

/// What two values of one column say together: what a column cannot hold of an object, answers in columns
/// show among the extras. `None` if they contradict each other.
fn united<'f>(
    column: &ColumnField,
    canonical: &Canonical,
    beside: &'f str,
    among: &str,
) -> Option<Cow<'f, str>> {
    let ColumnType::Struct(columns) = column.data_type() else {
        let cell = |raw: &str| {
            let filled = cells::fill(raw, column).ok()?;
            Some(cells::in_one_spelling(filled.cell.into_owned(), canonical))
        };
        return (cell(beside)? == cell(among)?).then_some(Cow::Borrowed(beside));
    };
    let (own, others) = (
        json::fields(beside.as_bytes()).ok()?,
        json::fields(among.as_bytes()).ok()?,
    );
    let declared = DeclaredMembers::new(columns, own.len());
    let other_values: HashMap<&str, &str> = others.iter().map(name_and_value).collect();
    let mut members: Vec<(&str, Cow<'_, str>)> = Vec::with_capacity(own.len());
    for member in &own {
        let raw = match other_values.get(&*member.name).copied() {
            None => Cow::Borrowed(member.raw),
            Some(other) if other == "null" || other == member.raw => Cow::Borrowed(member.raw),
            Some(other) if member.raw == "null" => Cow::Borrowed(other),
            Some(other) => {
                let (_, column) = declared.find(&member.name)?;
                united(column, &Canonical::AsSent, member.raw, other)?
            }
        };
        members.push((member.name.as_ref(), raw));
    }
    let own_names: HashSet<&str> = own.iter().map(|member| &*member.name).collect();
    let new = others.iter().filter(|other| !own_names.contains(&*other.name));
    members.extend(new.map(|other| (other.name.as_ref(), Cow::Borrowed(other.raw))));
    String::from_utf8(json::object(texts(&members)))
        .ok()
        .map(Cow::Owned)
}
