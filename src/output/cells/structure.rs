//! Writes a struct column as JSON objects.
//!
//! Consecutive records mostly come from a few sources, so where members are dictionaries or lists of numbers,
//! the text of an earlier row with the same members is copied.

use std::ops::Range;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Fields;

use super::super::encoder::EncodeError;
use super::super::text::write_json_string;
use super::{Cells, Style};

/// How many texts are kept per batch. A row is compared with each of them at most.
const TEXTS_KEPT: usize = 4;

#[derive(Debug)]
pub(super) struct Structure {
    style: Style,
    members: Vec<Member>,
    /// Rows of the batch, each with the range of `texts` that was written for it.
    kept: Vec<(usize, Range<usize>)>,
    texts: Vec<u8>,
    scratch: Vec<u8>,
    /// Whether rows can be compared by their members.
    is_comparable: bool,
}

#[derive(Debug)]
struct Member {
    /// The name as JSON, with the punctuation before and after it.
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
        let is_comparable = !members.is_empty() && members.iter().all(|member| member.cells.is_comparable());
        Ok(Self {
            style,
            members,
            kept: Vec::with_capacity(TEXTS_KEPT),
            texts: Vec::new(),
            scratch: Vec::new(),
            is_comparable,
        })
    }

    pub(super) fn load(&mut self, array: &ArrayRef) -> Result<(), EncodeError> {
        self.kept.clear();
        self.texts.clear();
        let structure = array.as_struct();
        self.members
            .iter_mut()
            .zip(structure.columns())
            .try_for_each(|(member, column)| member.cells.load(column))
    }

    /// Whether the objects of all rows of the current batch are the same. None of them is null.
    pub(super) fn is_uniform(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.cells.is_uniform())
    }

    /// Writes the object of a row that is not null.
    pub(super) fn write(&mut self, row: usize, out: &mut Vec<u8>) {
        if !self.is_comparable {
            self.write_styled(row, out);
            return;
        }
        if let Some((_, text)) = self.kept.iter().find(|(one, _)| self.is_same(*one, row)) {
            out.extend_from_slice(&self.texts[text.clone()]);
            return;
        }
        let begin = out.len();
        self.write_styled(row, out);
        if self.kept.len() == TEXTS_KEPT {
            self.kept.clear();
            self.texts.clear();
        }
        let kept = self.texts.len();
        self.texts.extend_from_slice(&out[begin..]);
        self.kept.push((row, kept..self.texts.len()));
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

    fn is_same(&self, one: usize, other: usize) -> bool {
        self.members.iter().all(|member| member.cells.is_same(one, other))
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
