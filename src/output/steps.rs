//! Writes the rows of a batch as text: formats what differs for each row, and copies what does not from text
//! made once.
//!
//! Most of a record repeats the one before: its unit, the device that measured it, all fields left out. Knows
//! columns and styles; knows nothing of what surrounds a row.

use std::ops::Range;

use super::cells::{Cells, Style};

/// A column, by its place in the batch.
#[derive(Debug)]
pub(super) struct Column {
    pub index: usize,
    /// What precedes each of its values, after the comma.
    pub name: Vec<u8>,
    pub cells: Cells,
}

/// What to write for each row of a batch.
#[derive(Debug, Default)]
pub(super) struct Steps {
    list: Vec<Step>,
    /// The text after the last step.
    tail: Vec<u8>,
    /// Where in the current row the cell of each step was written.
    written: Vec<Range<usize>>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Step {
    /// The text between the previous step and this one.
    before: Vec<u8>,
    column: usize,
    /// An earlier step whose cell has the same text in every row.
    like: Option<usize>,
}

impl Steps {
    /// Plans the batch that `columns` have loaded, which has rows. `opening` precedes the first value.
    pub(super) fn plan(&mut self, columns: &mut [Column], style: Style, opening: &[u8]) {
        self.list.clear();
        let mut before = opening.to_vec();
        for place in 0..columns.len() {
            if place > 0 {
                before.push(b',');
            }
            let (earlier, rest) = columns.split_at_mut(place);
            let Some(column) = rest.first_mut() else { break };
            before.extend_from_slice(&column.name);
            if column.cells.is_uniform() {
                column.cells.write(0, style, &mut self.scratch, &mut before);
                continue;
            }
            let is_like = |step: &Step| {
                earlier
                    .get(step.column)
                    .is_some_and(|one| one.cells.is_like(&column.cells))
            };
            self.list.push(Step {
                like: self.list.iter().position(is_like),
                before: std::mem::take(&mut before),
                column: place,
            });
        }
        self.tail = before;
        self.written.clear();
        self.written.resize(self.list.len(), 0..0);
    }

    pub(super) fn write(&mut self, row: usize, columns: &mut [Column], style: Style, out: &mut Vec<u8>) {
        for (place, step) in self.list.iter().enumerate() {
            out.extend_from_slice(&step.before);
            let begin = out.len();
            match step.like {
                Some(like) => out.extend_from_within(self.written[like].clone()),
                None => columns[step.column]
                    .cells
                    .write(row, style, &mut self.scratch, out),
            }
            self.written[place] = begin..out.len();
        }
        out.extend_from_slice(&self.tail);
    }
}
