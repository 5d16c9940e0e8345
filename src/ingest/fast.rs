//! Decodes a record's text to a row the fast way, for records that look the way programs write them.
//!
//! Reads each byte once and consults no schema: fields with simple rules are checked by `scalar`, repeated
//! values are recognised by their text. At anything else, valid or not, it gives up without a fault, and the
//! complete way (`general`) decides. A row decoded here is the row that the complete way would have produced;
//! a property test verifies that.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::{DataType as ColumnType, Field};

use super::bounds::LONGEST_SOURCE;
use super::columns::Cell;
use super::compile::CompiledType;
use super::context::DecodeContext;
use super::extras::Extras;
use super::field_plan::{KnownField, Role};
use super::general::longest_extras;
use super::json;
use super::json_tokens::{NumberToken, Scanner};
use super::memo::{Memo, OF_NOBODY, RepeatedValue, SourceKey};
use super::naming::is_of_sources;
use super::origins::Origins;
use super::row::{Row, latest_start};
use super::scalar::{ScalarRule, Token};
use crate::model::floats::EXACT_INTEGERS_BELOW;
use crate::model::ids::RecordId;
use crate::model::registry::is_json_text;
use crate::model::sources::SourceFacts;
use crate::model::time::{Instant, parse_instant};
use crate::model::units::Conversion;

/// The row for `json`, or `None` if the complete way is needed.
pub(super) fn decode<'a>(
    compiled: &CompiledType,
    context: &DecodeContext,
    memo: &mut Memo,
    sources: &mut Origins,
    json: &'a [u8],
) -> Option<Row<'a>> {
    if !compiled.plan.fields_are_independent {
        return None;
    }
    let text = std::str::from_utf8(json).ok()?;
    memo.begin_record();
    let cells: Vec<(usize, Cell<'a>)> = std::mem::take(&mut memo.spare);
    let mut record = FastRecord {
        compiled,
        text_limit: context.text_limit,
        memo,
        scanner: Scanner::new(text),
        seen: 0,
        nulls: 0,
        cells,
        source_key: OF_NOBODY,
        id: None,
        start: None,
        end: None,
        last_instant: None,
        value: None,
        unit: None,
        extras: Extras::default(),
        rests: Vec::new(),
        facts: SourceFacts::default(),
    };
    record.fields()?;
    record.row(context, sources)
}

/// The emptied vector, for cells that borrow from another line: collecting in place keeps its memory.
pub(super) fn empty(mut cells: Vec<(usize, Cell<'_>)>) -> Vec<(usize, Cell<'static>)> {
    cells.clear();
    cells
        .into_iter()
        .map(|(column, _)| (column, Cell::Null))
        .collect()
}

struct FastRecord<'c, 'm, 'a> {
    compiled: &'c CompiledType,
    text_limit: usize,
    memo: &'m mut Memo,
    scanner: Scanner<'a>,
    /// One bit for each known field.
    seen: u64,
    /// The same for what was given as null, which is as if it were absent.
    nulls: u64,
    cells: Vec<(usize, Cell<'a>)>,
    /// The numbers of the values in the source columns.
    source_key: SourceKey,
    id: Option<RecordId>,
    start: Option<Instant>,
    end: Option<Instant>,
    last_instant: Option<(&'a str, Instant)>,
    /// A metric's value as written, and its column.
    value: Option<(NumberToken<'a>, usize)>,
    /// Unit of a metric with a fixed one.
    unit: Option<&'a str>,
    extras: Extras<'a>,
    /// What columns cannot hold of their values, each with the field.
    rests: Vec<(usize, Arc<str>)>,
    /// What extras say of the source.
    facts: SourceFacts<'a>,
}

/// The name of a member.
#[derive(Clone, Copy)]
enum Name<'a> {
    Field(usize),
    Undeclared(&'a str),
}

impl<'a> FastRecord<'_, '_, 'a> {
    fn fields(&mut self) -> Option<()> {
        self.scanner.skip_blanks();
        if !self.scanner.take(b'{') {
            return None;
        }
        let mut position = 0;
        while self.scanner.has_item(b'}', position == 0)? {
            match self.name(position)? {
                Name::Field(field) => self.value(field)?,
                Name::Undeclared(name) => self.undeclared(name)?,
            }
            position += 1;
        }
        self.scanner.skip_blanks();
        self.scanner.rest().is_empty().then_some(())
    }

    /// The member that is named next; also consumes what precedes its value. Records of a body tend to name
    /// their members in the same order.
    fn name(&mut self, position: usize) -> Option<Name<'a>> {
        if let Some(announced) = self.memo.order.get(position)
            && self.scanner.rest().starts_with(&announced.text)
        {
            let (length, field) = (announced.text.len(), announced.field);
            let Some(field) = field else {
                let name = self.scanner.string()?;
                self.scanner.colon()?;
                return Some(Name::Undeclared(name));
            };
            self.scanner.advance(length);
            self.scanner.skip_blanks();
            return Some(Name::Field(field));
        }
        let name = self.scanner.string()?;
        self.scanner.colon()?;
        let field = self.compiled.plan.field(name);
        self.memo.learn_order(position, name, field);
        Some(field.map_or(Name::Undeclared(name), Name::Field))
    }

    /// What the type does not declare is kept as it is, where nothing is asked of it.
    fn undeclared(&mut self, name: &'a str) -> Option<()> {
        if is_of_sources(name) || !self.compiled.plan.is_free(name) {
            return None;
        }
        let raw = self.scanner.any_value()?;
        // It leaves nothing behind by which it could be found that its name comes twice.
        if raw == "null" && self.compiled.plan.null_is_absent {
            return None;
        }
        self.extra(name, raw)
    }

    fn extra(&mut self, name: &'a str, raw: &'a str) -> Option<()> {
        if raw.len() > self.text_limit || !self.extras.add(name, raw) {
            return None;
        }
        self.mark(name, raw)
    }

    /// Notes what a member of extras says of the source.
    fn mark(&mut self, name: &str, raw: &str) -> Option<()> {
        let rules = self.compiled.source_rules();
        if rules.is_mark(name) {
            rules.mark(&mut self.facts, name, &serde_json::from_str(raw).ok()?);
        }
        Some(())
    }

    /// The object in the field `field`, whose members become extras.
    fn members_of_extras(&mut self, field: usize) -> Option<()> {
        let compiled = self.compiled;
        let plan = &compiled.plan;
        if !plan.fields.get(field)?.takes_every_object || !self.scanner.take(b'{') {
            return None;
        }
        let mut is_first = true;
        while self.scanner.has_item(b'}', is_first)? {
            let name = self.scanner.string()?;
            self.scanner.colon()?;
            let known = plan.field(name).and_then(|field| plan.fields.get(field));
            if plan.spreads_extras {
                // It stands for a member beside the others.
                if known.is_some() {
                    return None;
                }
                self.undeclared(name)?;
            } else {
                if known.is_some_and(|known| known.in_extras) {
                    return None;
                }
                let raw = self.scanner.any_value()?;
                self.extra(name, raw)?;
            }
            is_first = false;
        }
        Some(())
    }

    fn value(&mut self, field: usize) -> Option<()> {
        let known = self.compiled.plan.fields.get(field)?;
        let rule = known.rule?;
        let column = match known.role {
            Role::Column(column) => Some(column),
            _ => None,
        };
        if self.scanner.peek() == Some(b'n') {
            if !self.scanner.take_word("null") {
                return None;
            }
            // For an id, a time or extras null means absent; in a column it is a value.
            return match column {
                None => self.see_null(field),
                Some(_) if rule.allows(Token::Null) => self.see(field),
                Some(_) => None,
            };
        }
        self.see(field)?;
        match known.role {
            Role::Column(column) => self.column(field, column, &rule),
            Role::Id => {
                self.id = Some(self.text(&rule)?.parse().ok()?);
                Some(())
            }
            Role::Start | Role::Moment => {
                self.start = Some(self.instant(&rule)?);
                Some(())
            }
            Role::End => {
                self.end = Some(self.instant(&rule)?);
                Some(())
            }
            Role::Unit => {
                self.unit = Some(self.text(&rule)?);
                Some(())
            }
            Role::Extras => self.members_of_extras(field),
            Role::RecordedAt | Role::Computed => None,
        }
    }

    /// Marks a field as given; `None` if it was given before.
    fn see(&mut self, field: usize) -> Option<()> {
        self.seen |= self.new_bit(field)?;
        Some(())
    }

    /// Marks a field as given as null; `None` if it was given before.
    fn see_null(&mut self, field: usize) -> Option<()> {
        self.nulls |= self.new_bit(field)?;
        Some(())
    }

    /// The bit of a field that was not given before.
    const fn new_bit(&self, field: usize) -> Option<u64> {
        let bit = 1_u64 << field;
        if (self.seen | self.nulls) & bit == 0 {
            Some(bit)
        } else {
            None
        }
    }

    fn text(&mut self, rule: &ScalarRule) -> Option<&'a str> {
        let limit = self.text_limit;
        let text = self.scanner.string()?;
        (rule.allows(Token::Text) && text.len() <= limit).then_some(text)
    }

    /// A text that may have escapes.
    fn any_text(&mut self, rule: &ScalarRule) -> Option<Cow<'a, str>> {
        let raw = self.scanner.escaped_string()?;
        let plain = raw.get(1..raw.len() - 1)?;
        let text = if plain.contains('\\') {
            json::text(raw)?
        } else {
            Cow::Borrowed(plain)
        };
        (rule.allows(Token::Text) && text.len() <= self.text_limit).then_some(text)
    }

    /// A record that begins and ends at the same moment repeats the text.
    fn instant(&mut self, rule: &ScalarRule) -> Option<Instant> {
        if let Some((last, instant)) = self.last_instant
            && rule.allows(Token::Text)
            && self.scanner.take_string(last)
        {
            return Some(instant);
        }
        let text = self.text(rule)?;
        let instant = parse_instant(text).ok()?;
        self.last_instant = Some((text, instant));
        Some(instant)
    }

    /// Each cell is created in place: creating it elsewhere and moving it costs more than reading it.
    fn column(&mut self, field: usize, column: usize, rule: &ScalarRule) -> Option<()> {
        let stored: &Field = self.compiled.plan.columns.get(column)?;
        match stored.data_type() {
            ColumnType::Float64 => {
                let number = self.number(rule)?;
                if self.compiled.plan.value == Some(field) {
                    // The unit may come later, and bounds apply to the value in the type's unit.
                    self.value = Some((number, column));
                    return Some(());
                }
                let stored = self.compiled.plan.fields.get(field)?.stored(number.value);
                rule.allows_number(number.value)
                    .then(|| self.cells.push((column, Cell::Float(stored))))
            }
            ColumnType::Int64 => {
                let number = self.number(rule)?;
                if self.compiled.plan.value == Some(field) && self.compiled.plan.unit.is_some() {
                    return None;
                }
                let value = number
                    .raw
                    .parse()
                    .ok()
                    .filter(|value: &i64| value.unsigned_abs() < EXACT_INTEGERS_BELOW)?;
                rule.allows_number(number.value)
                    .then(|| self.cells.push((column, Cell::Int(value))))
            }
            ColumnType::Boolean if rule.allows(Token::Bool) => {
                let is_true = self.scanner.take_word("true");
                let is_given = is_true || self.scanner.take_word("false");
                is_given.then(|| self.cells.push((column, Cell::Bool(is_true))))
            }
            ColumnType::Timestamp(..) => {
                let instant = self.instant(rule)?;
                self.cells.push((column, Cell::Time(instant.micros())));
                Some(())
            }
            ColumnType::Utf8 | ColumnType::Dictionary(..) if !rule.formatted && !is_json_text(stored) => {
                let text = self.any_text(rule)?;
                // What names a source has a limit of its own, which the complete way tells.
                if text.len() > LONGEST_SOURCE && stored.name() == "source_id" {
                    return None;
                }
                self.cells.push((column, Cell::Text(text)));
                Some(())
            }
            ColumnType::Struct(_) | ColumnType::List(_) => {
                let RepeatedValue { number, rest } = self.known(column)?;
                self.rests.extend(rest.map(|rest| (field, rest)));
                if let Some(place) = self
                    .compiled
                    .plan
                    .source_columns
                    .iter()
                    .position(|source| *source == Some(column))
                {
                    *self.source_key.get_mut(place)? = number;
                }
                self.cells.push((column, Cell::Known(number)));
                Some(())
            }
            _ => None,
        }
    }

    fn number(&mut self, rule: &ScalarRule) -> Option<NumberToken<'a>> {
        let token = |number: &NumberToken<'_>| {
            if number.is_integer {
                Token::Integer
            } else {
                Token::Number
            }
        };
        self.scanner.number().filter(|number| rule.allows(token(number)))
    }

    /// A struct or list that occurred before.
    fn known(&mut self, column: usize) -> Option<RepeatedValue> {
        if let Some((length, value)) = self.memo.last(column, self.scanner.rest()) {
            self.scanner.advance(length);
            return Some(value);
        }
        let raw = self.scanner.composite()?;
        self.memo.value(column, raw)
    }

    fn row(mut self, context: &DecodeContext, sources: &mut Origins) -> Option<Row<'a>> {
        let required = self.compiled.plan.required;
        if self.seen & required != required {
            return None;
        }
        self.convert()?;
        self.keep_rests()?;
        let (start, end) = match (self.start, self.end) {
            (Some(start), Some(end)) => (start, end),
            (Some(start), None) => (start, start),
            // Defaults are left to the complete way.
            (None, _) => return None,
        };
        if end < start || (self.compiled.must_have_happened() && start > latest_start(context.now)) {
            return None;
        }
        let is_moment = end != start && self.compiled.holds_moments();
        let end = if is_moment { start } else { end };
        let extras = self.extras.into_text();
        let most = longest_extras(context);
        if extras.as_ref().is_some_and(|extras| extras.len() > most) {
            return None;
        }
        self.source_key[3] = self.facts.marks();
        let source = match self.memo.source(&self.source_key) {
            Some(known) => known,
            // The complete way could teach nothing here.
            None if self.source_key == OF_NOBODY => {
                let nobody = sources.of_nobody(self.compiled);
                self.memo.learn_source(self.source_key, nobody.clone());
                nobody
            }
            None => return None,
        };
        Some(Row {
            id: self.id,
            start,
            end,
            undated: false,
            cells: self.cells,
            source,
            extras,
        })
    }

    /// Puts what columns cannot hold into extras, in the order of the fields.
    fn keep_rests(&mut self) -> Option<()> {
        self.rests.sort_by_key(|(field, _)| *field);
        for (field, rest) in std::mem::take(&mut self.rests) {
            let compiled = self.compiled;
            let name = &compiled.plan.fields.get(field)?.name;
            if !self.extras.add(name.clone(), &rest) {
                return None;
            }
            self.mark(name, &rest)?;
        }
        Some(())
    }

    /// Puts the value into its column in the type's unit, and the original into extras.
    fn convert(&mut self) -> Option<()> {
        let Some((number, column)) = self.value else {
            return self.unit.is_none().then_some(());
        };
        let compiled = self.compiled;
        let rule = compiled
            .plan
            .value
            .and_then(|field| compiled.plan.fields.get(field))
            .and_then(|known: &KnownField| known.rule)?;
        let traits = compiled.data_type.metric.as_ref()?;
        let mut value = number.value;
        if let Some(unit) = self.unit.filter(|unit| traits.unit.as_deref() != Some(*unit)) {
            let conversion = self.memo.conversion(unit, || {
                compiled
                    .units()
                    .conversion(unit, traits, compiled.data_type.id.as_str())
                    .ok()
            })?;
            if matches!(conversion, Conversion::Codes(_)) {
                return None;
            }
            let converted = conversion.apply(value);
            if conversion.leaves_original(value, converted) {
                if !converted.is_finite() || !rule.allows(Token::Number) {
                    return None;
                }
                if !self.extras.add_original(number.raw, unit) {
                    return None;
                }
                value = converted;
            }
        }
        if !rule.allows_number(value) {
            return None;
        }
        self.cells.push((column, Cell::Float(value)));
        Some(())
    }
}
