//! Archives from all sides: their outside, how they are written, and what becomes of the orders to make them.

mod orders;
mod outside;
mod writing;
