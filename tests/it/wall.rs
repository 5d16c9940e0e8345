//! The wall: nobody gets in, and nobody in it can stop the others.

mod connections;
mod costs;
mod fuzz;
mod identity;
mod limits;
mod operations;
mod tls;
