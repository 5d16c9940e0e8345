//! Rule 9.2c, for every question: what another reader is answered is what the owner of a copy would be
//! answered that holds only the cut rows.
//!
//! The copy is made by [`given::cut`], which knows nothing of operators. Rows of sleep are also resolved
//! there, moment by moment, because the recorded start decides who wins.

mod bench;
mod ends;
mod given;
mod laws;
mod names;
mod rules;
