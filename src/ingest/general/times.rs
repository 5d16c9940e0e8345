//! Determines when a record happened: its start and end, from whichever fields give them, and whether they
//! are possible.

use serde_json::Value;

use super::reading::{Given, Reading};
use crate::ingest::cells;
use crate::ingest::context::DecodeContext;
use crate::ingest::field_plan::Role;
use crate::ingest::json;
use crate::ingest::row::latest_start;
use crate::model::faults::{Fault, LocPart};
use crate::model::registry::TimeFields;
use crate::model::time::{Instant, parse_instant};

/// Start and end, each with the place it was read from.
struct Span {
    start: Instant,
    start_loc: Vec<LocPart>,
    end: Instant,
    end_loc: Vec<LocPart>,
}

impl Span {
    fn moment(at: Instant, loc: Vec<LocPart>) -> Self {
        Self {
            start: at,
            start_loc: loc.clone(),
            end: at,
            end_loc: loc,
        }
    }
}

impl<'a> Reading<'_, 'a> {
    /// Start and end, or faults that say why there are none.
    pub(super) fn times(&mut self, context: &DecodeContext) -> Option<(Instant, Instant)> {
        let span = if let Some((field, given)) = self.given_in(Role::RecordedAt) {
            self.recorded_at(self.field_loc(field), &given)?
        } else if let Some((field, given)) = self.given_in(Role::Moment) {
            let loc = self.field_loc(field);
            Span::moment(self.instant(&loc, given.raw)?, loc)
        } else if let Some((field, given)) = self.given_in(Role::Start) {
            self.start_and_end(self.field_loc(field), &given)?
        } else {
            return self.default_time(context);
        };
        let Span {
            start,
            start_loc,
            end,
            end_loc,
        } = span;
        if end < start {
            let message = format!("the end, {end}, lies before the start, {start}");
            self.faults.push(Fault::new(end_loc, "end_before_start", message));
            return None;
        }
        if self.compiled.must_have_happened() && start > latest_start(context.now) {
            let message = format!("{start} lies more than 24 hours ahead of now, {}", context.now);
            self.faults.push(Fault::new(start_loc, "future", message));
            return None;
        }
        let is_moment = self.compiled.holds_moments();
        Some((start, if is_moment { start } else { end }))
    }

    /// The current time, where the type lets the time be left out.
    fn default_time(&mut self, context: &DecodeContext) -> Option<(Instant, Instant)> {
        let missing = match &self.compiled.data_type.layout.times {
            TimeFields::Moment { optional: true, .. } => None,
            TimeFields::RecordedAt => self.given_in(Role::End).map(|_| "start_time".to_owned()),
            TimeFields::Moment { at: names, .. } | TimeFields::StartEnd { start: names, .. } => {
                names.first().cloned()
            }
        };
        let Some(name) = missing else {
            self.undated = true;
            return Some((context.now, context.now));
        };
        let message = format!("{name} is missing");
        self.fault([name.as_str()], "missing", message);
        None
    }

    fn start_and_end(&mut self, start_loc: Vec<LocPart>, given: &Given<'a>) -> Option<Span> {
        let start = self.instant(&start_loc, given.raw)?;
        let Some((field, given)) = self.given_in(Role::End) else {
            return Some(Span::moment(start, start_loc));
        };
        let end_loc = self.field_loc(field);
        let end = self.instant(&end_loc, given.raw)?;
        Some(Span {
            start,
            start_loc,
            end,
            end_loc,
        })
    }

    fn recorded_at(&mut self, loc: Vec<LocPart>, given: &Given<'a>) -> Option<Span> {
        let span = self.recorded_span(loc.clone(), given)?;
        // Rows as they are read contain both, so giving the time twice is fine as long as it is the same.
        for (role, said) in [(Role::Start, span.start), (Role::End, span.end)] {
            let Some((field, again)) = self.given_in(role) else {
                continue;
            };
            let place = self.field_loc(field);
            if self.instant(&place, again.raw)? != said {
                let message =
                    "the time is given twice, and differs; send recorded_at, or start_time and end_time";
                self.faults.push(Fault::new(loc, "duplicate", message));
                return None;
            }
        }
        Some(span)
    }

    fn recorded_span(&mut self, loc: Vec<LocPart>, given: &Given<'a>) -> Option<Span> {
        if !given.raw.starts_with('{') {
            return Some(Span::moment(self.instant(&loc, given.raw)?, loc));
        }
        let members = json::fields(given.raw.as_bytes()).unwrap_or_default();
        let start = self.member(&loc, &members, "start_time");
        let end = self.member(&loc, &members, "end_time");
        let ((start, start_loc), (end, end_loc)) = (start?, end?);
        // Where rows show only the start, the end is shown with the other members.
        let is_shown = start == end || self.compiled.shows_ends();
        let others = members.iter().filter(|member| match member.name.as_ref() {
            "start_time" => false,
            "end_time" => !is_shown,
            _ => true,
        });
        let rest: Vec<String> = others
            .map(|member| {
                format!(
                    "{}:{}",
                    Value::from(member.name.as_ref()),
                    cells::compact(member.raw)
                )
            })
            .collect();
        if !rest.is_empty() {
            self.keep_rest("recorded_at", &format!("{{{}}}", rest.join(",")));
        }
        Some(Span {
            start,
            start_loc,
            end,
            end_loc,
        })
    }

    /// The time that one member of a span gives, and its place.
    fn member(
        &mut self,
        span: &[LocPart],
        members: &[json::Field<'a>],
        name: &str,
    ) -> Option<(Instant, Vec<LocPart>)> {
        let mut loc = span.to_vec();
        loc.push(name.into());
        let mut found = members.iter().filter(|member| member.name == name);
        match (found.next(), found.next()) {
            (Some(only), None) => Some((self.instant(&loc, only.raw)?, loc)),
            (None, _) => {
                self.faults
                    .push(Fault::new(loc, "missing", format!("{name} is missing")));
                None
            }
            (Some(_), Some(_)) => {
                self.faults
                    .push(Fault::new(loc, "duplicate", format!("{name} is given twice")));
                None
            }
        }
    }

    fn instant(&mut self, loc: &[LocPart], raw: &str) -> Option<Instant> {
        let Some(text) = json::text(raw) else {
            self.faults.push(Fault::new(
                loc.to_vec(),
                "type",
                "expected a string with a date and time",
            ));
            return None;
        };
        parse_instant(&text)
            .inspect_err(|error| {
                self.faults
                    .push(Fault::new(loc.to_vec(), "format", error.to_string()).with_value(text.as_ref()));
            })
            .ok()
    }
}
