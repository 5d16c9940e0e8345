//! What every request passes on its way in and out, from the outside inwards: the frame (id, log, numbers,
//! headers), cross-origin rules, compression, how much an address may ask for, the wall where tokens are
//! checked, how much a person may ask for, what was asked before, what is told to others, whom a participant
//! stands for, and heads without bodies. Order matters and is fixed in [`crate::api::routes`].

pub mod arrival;
pub mod compression;
pub mod cors;
pub mod disclosure;
pub mod frame;
pub mod heads;
pub mod overload;
pub mod participants;
pub mod rates;
pub mod repeats;
pub mod shared;
pub mod wall;
