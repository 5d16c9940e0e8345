//! Puts the members of `extras` beside the others, where answers show them there: in records of a person's
//! own types. What is valid, and where it is stored, is then the same for both ways to send a member. Only
//! what its column, which is null beside the extras, cannot hold stays among them: so answers show what was
//! sent before its field was declared.
//!
//! Works on the text, so that later steps see nothing unusual. Knows JSON and plans.

use std::borrow::Cow;

use arrow::datatypes::{DataType as ColumnType, Field as ColumnField, FieldRef};

use super::body::RecordPosition;
use super::cells;
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
pub(super) struct SentInExtras(Vec<String>);

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
    let names: Vec<String> = members
        .iter()
        .map(|member| member.name.clone().into_owned())
        .collect();
    let mut misfits = Vec::new();
    let mut besides = |fields| settled(fields, plan, &mut members, &mut misfits);
    let (before, after) = (besides(before), besides(after));
    let stays = |name: &String| misfits.iter().any(|misfit: &Field<'_>| misfit.name == *name);
    let sent = names.into_iter().filter(|name| !stays(name)).collect();
    // A schema that requires extras still finds them.
    let left = json::object(members_of(&misfits));
    let left = String::from_utf8(left).ok()?;
    let is_left = !members.iter().any(|member| is_extras(plan, member));
    let all = texts(&before)
        .chain(members_of(&members))
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

/// The fields without extras. Of what is among the `members` of the extras too there is one, if both can be
/// one. Else both stay, and the decoder refuses what is given twice. Null gives way to anything else but what
/// its column cannot hold: that becomes one of the `misfits`.
fn settled<'f, 'a>(
    fields: &'f [Field<'_>],
    plan: &FieldPlan,
    members: &mut Vec<Field<'a>>,
    misfits: &mut Vec<Field<'a>>,
) -> Vec<(&'f str, Cow<'f, str>)> {
    let mut settled = Vec::with_capacity(fields.len());
    for field in fields.iter().filter(|field| !is_extras(plan, field)) {
        let number = plan.field(&field.name);
        let is_same_field = |member: &Field<'_>| match number {
            Some(_) => plan.field(&member.name) == number,
            None => member.name == field.name,
        };
        let at = members.iter().position(is_same_field);
        let among = at.and_then(|at| members.get(at));
        let (Some(at), Some(among)) = (at, among) else {
            settled.push((field.name.as_ref(), Cow::Borrowed(field.raw)));
            continue;
        };
        if field.raw == "null" {
            if is_misfit(plan, among) {
                settled.push((field.name.as_ref(), Cow::Borrowed(field.raw)));
                misfits.push(members.remove(at));
            }
            continue;
        }
        let among = among.raw;
        let united = if among == "null" {
            Some(Cow::Borrowed(field.raw))
        } else {
            united_in_column(field, among, plan)
        };
        if united.is_some() {
            members.remove(at);
        }
        settled.push((field.name.as_ref(), united.unwrap_or(Cow::Borrowed(field.raw))));
    }
    settled
}

fn members_of<'f>(fields: &'f [Field<'_>]) -> impl Iterator<Item = (&'f str, &'f str)> {
    fields.iter().map(|member| (member.name.as_ref(), member.raw))
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
    let mut members: Vec<(&str, Cow<'_, str>)> = Vec::with_capacity(own.len());
    for member in &own {
        let other = others.iter().find(|other| other.name == member.name);
        let declared = columns.iter().find(|column| *column.name() == member.name);
        let raw = match other {
            None => Cow::Borrowed(member.raw),
            Some(other) if other.raw == "null" || other.raw == member.raw => Cow::Borrowed(member.raw),
            Some(other) if member.raw == "null" => Cow::Borrowed(other.raw),
            Some(other) => united(declared?, &Canonical::AsSent, member.raw, other.raw)?,
        };
        members.push((member.name.as_ref(), raw));
    }
    let is_new = |other: &&Field<'_>| own.iter().all(|member| member.name != other.name);
    let new = others.iter().filter(is_new);
    members.extend(new.map(|other| (other.name.as_ref(), Cow::Borrowed(other.raw))));
    String::from_utf8(json::object(texts(&members)))
        .ok()
        .map(Cow::Owned)
}
