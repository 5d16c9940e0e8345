//! Archives from both sides: their outside, and what becomes of the orders to make them.

mod orders;
mod outside;
