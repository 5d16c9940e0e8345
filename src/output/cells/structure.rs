//! A struct column as JSON objects.
//!
//! Consecutive records mostly come from the same source, so when all members are dictionaries the text of the
//! row before is copied while its keys stay the same.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Fields;

use super::super::encoder::EncodeError;
use super::super::text::write_json_string;
use super::{Cells, Style, Values};

#[derive(Debug)]
pub(super) struct Structure {
    style: Style,
    members: Vec<Member>,
    /// The row that `last_text` was written for.
    last_row: Option<usize>,
    last_text: Vec<u8>,
    scratch: Vec<u8>,
    /// Whether rows can be compared by their members' keys.
    by_keys: bool,
}

#[derive(Debug)]
struct Member {
    /// The name as JSON, with what stands before and after it.
    name: Vec<u8>,
    cells: Cells,
}

impl Structure {
    pub(super) fn new(fields: &Fields, style: Style) -> Result<Self, EncodeError> {
        let member = |(index, field): (usize, &arrow::datatypes::FieldRef)| {
            let mut name = vec![if index == 0 { b'{' } else { b',' }];
            write_json_string(field.name(), &mut name);
            name.push(b':');
            Ok(Member {
                name,
                cells: Cells::new(field, Style::Json)?,
            })
        };
        let members: Vec<Member> = fields
            .iter()
            .enumerate()
            .map(member)
            .collect::<Result<_, EncodeError>>()?;
        let by_keys = !members.is_empty()
            && members
                .iter()
                .all(|member| matches!(member.cells.values, Values::Dictionary(_) | Values::Null));
        Ok(Self {
            style,
            members,
            scratch: Vec::new(),
            last_row: None,
            last_text: Vec::new(),
            by_keys,
        })
    }

    pub(super) fn load(&mut self, array: &ArrayRef) -> Result<(), EncodeError> {
        self.last_row = None;
        let structure = array.as_struct();
        self.members
            .iter_mut()
            .zip(structure.columns())
            .try_for_each(|(member, column)| member.cells.load(column))
    }

    /// Writes the object of a row that is not null.
    pub(super) fn write(&mut self, row: usize, out: &mut Vec<u8>) {
        if !self.by_keys {
            self.write_styled(row, out);
            return;
        }
        if !self.last_row.is_some_and(|last| self.same(last, row)) {
            let mut text = std::mem::take(&mut self.last_text);
            text.clear();
            self.write_styled(row, &mut text);
            self.last_text = text;
            self.last_row = Some(row);
        }
        out.extend_from_slice(&self.last_text);
    }

    fn write_styled(&mut self, row: usize, out: &mut Vec<u8>) {
        match self.style {
            Style::Json => self.write_members(row, out),
            Style::Field(style) => {
                let mut scratch = std::mem::take(&mut self.scratch);
                scratch.clear();
                self.write_members(row, &mut scratch);
                style.write(&scratch, out);
                self.scratch = scratch;
            }
        }
    }

    fn same(&self, one: usize, other: usize) -> bool {
        self.members.iter().all(|member| match &member.cells.values {
            Values::Dictionary(dictionary) => dictionary.key(one) == dictionary.key(other),
            _ => true,
        })
    }

    fn write_members(&mut self, row: usize, out: &mut Vec<u8>) {
        if self.members.is_empty() {
            out.push(b'{');
        }
        for member in &mut self.members {
            out.extend_from_slice(&member.name);
            member.cells.write_json(row, out);
        }
        out.push(b'}');
    }
}
