//! Several nodes, one catalogue, one store, and everything that can befall them, under one seed.
//!
//! Tests only, above all rooms. Each operation on the database or the store waits until the simulation lets
//! it go on, one at a time, so that the same seed has the same events in the same order; a checker says
//! whether what was answered is explained by one order of what was acknowledged. On failure the seed, the
//! step and the last steps are told. `ALMANAC_SIMULATION_SEED` names the first seed,
//! `ALMANAC_SIMULATION_STEPS` how many steps to take; with `ALMANAC_SIMULATION_TELLS` every step is told at
//! once.

mod answer;
mod chance;
mod disasters;
mod gates;
mod history;
mod node;
mod records;
mod requests;
mod sharing;
mod trouble_rates;
mod world;

use std::sync::Arc;
use std::time::Instant as Moment;

use chance::Chance;
use gates::Stillness;
use trouble_rates::TroubleRates;
use world::{Told, World};

/// Steps of one world; a new one begins with nothing.
const WORLD: u64 = 2_000;
/// Steps of a run that nobody asked for more of.
const STEPS: u64 = if cfg!(debug_assertions) { 4_000 } else { 20_000 };

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// How the world of a seed comes again.
fn command(seed: u64) -> String {
    format!(
        "ALMANAC_SIMULATION_SEED={seed} ALMANAC_SIMULATION_STEPS={WORLD} cargo test --lib \
         simulation::no_order"
    )
}

fn world(seed: u64, steps: u64) -> Told {
    let stillness = Arc::new(Stillness::default());
    let parking = Arc::clone(&stillness);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .on_thread_park(move || parking.thread_parks())
        .build()
        .unwrap();
    let trouble = TroubleRates::of(seed, &mut Chance::of(seed ^ 0x6d6f_6f64));
    runtime
        .block_on(async { Box::pin(Box::pin(World::new(seed, trouble, stillness)).await.run(steps)).await })
}

#[test]
fn no_order_of_events_breaks_what_was_promised() {
    let first = number_in("ALMANAC_SIMULATION_SEED").unwrap_or(1);
    let steps = number_in("ALMANAC_SIMULATION_STEPS").unwrap_or(STEPS);
    let begun = Moment::now();
    let mut all = Told::default();
    let mut seed = first;
    while all.steps < steps {
        let told = world(seed, WORLD.min(steps - all.steps));
        all.steps += told.steps;
        all.writes += told.writes;
        all.reads += told.reads;
        all.jobs += told.jobs;
        all.faults += told.faults;
        all.disasters += told.disasters;
        all.longest = all.longest.max(told.longest);
        all.overtaken = all.overtaken.max(told.overtaken);
        seed += 1;
    }
    println!("seeds {first} to {}: {all:?} in {:?}", seed - 1, begun.elapsed());
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in [2, 9] {
        assert_eq!(world(seed, 500), world(seed, 500), "seed {seed}");
    }
}
