//! The ground: what was acknowledged stays, whatever happens to clocks, catalogues, neighbours and disks.

mod bounds;
mod commits;
mod fairness;
mod slowly;
