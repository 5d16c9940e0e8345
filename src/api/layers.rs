//! The layers that every request passes on its way in and out, from the outside inwards: the request log (id,
//! log, numbers, headers, bodies that stop arriving), cross-origin rules, compression, and for the interface
//! what [`passage`] lists. Order matters and is fixed in [`crate::api::routes`] and in the passage.

pub mod arrival;
pub mod authentication;
pub mod compression;
pub mod cors;
pub mod disclosure;
pub mod heads;
pub mod overload;
pub mod participants;
pub mod passage;
pub mod precondition;
pub mod rates;
pub mod repeats;
pub mod request_log;
pub mod shared;
