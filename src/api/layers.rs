//! What every request passes on its way in and out, from the outside inwards: the frame (id, log, numbers,
//! headers), cross-origin rules, compression, and the wall where tokens are checked. Order matters and is
//! fixed in [`crate::api::routes`].

pub mod arrival;
pub mod compression;
pub mod cors;
pub mod disclosure;
pub mod frame;
pub mod participants;
pub mod wall;
