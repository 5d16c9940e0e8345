//! Stays: what one is, how long it takes to find them, and where it is certain that they begin.

mod by_definition;

use std::pin::pin;
use std::task::{Context, Waker};

use proptest::prelude::*;
use uuid::Uuid;

use super::beginning::Beginning;
use super::search::{Search, Stay};
use super::update::{LEAST_STAY, NEAR, Update};
use crate::model::geo::Position;
use crate::model::time::{MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::query::ground::turn::Turn;

/// An update in a minute, so many metres north of somewhere.
fn update(minute: f64, metres: f64) -> Update {
    Update {
        id: Uuid::from_u128((minute * 60.0) as u128),
        time: (minute * 60.0) as i64 * MICROS_PER_SECOND,
        position: Position::new(40.0 + metres / 111_195.08, 8.0),
        accuracy: Some(10.0),
    }
}

/// The stays, and how often the search gave way.
fn searched(updates: &[Update]) -> (Vec<Stay>, usize) {
    let (mut stays, mut polls) = (Vec::new(), 0);
    {
        let mut search = pin!(async {
            let (mut search, mut turn) = (Search::default(), Turn::new());
            for update in updates {
                search.take(*update, &mut stays, &mut turn).await;
            }
            search.finish(&mut stays);
        });
        let mut context = Context::from_waker(Waker::noop());
        while search.as_mut().poll(&mut context).is_pending() {
            polls += 1;
        }
    }
    (stays, polls)
}

fn found(updates: &[Update]) -> Vec<Stay> {
    searched(updates).0
}

fn spans(updates: &[(f64, f64)]) -> Vec<(i64, i64)> {
    let updates: Vec<Update> = updates
        .iter()
        .map(|(minute, metres)| update(*minute, *metres))
        .collect();
    let minutes = |micros: i64| micros / MICROS_PER_MINUTE;
    found(&updates)
        .iter()
        .map(|stay| (minutes(stay.from), minutes(stay.to)))
        .collect()
}

#[test]
fn a_stay_ends_with_the_first_update_elsewhere() {
    assert_eq!(
        spans(&[(0.0, 0.0), (5.0, 50.0), (10.0, 99.0), (12.0, 500.0)]),
        [(0, 12)]
    );
    assert_eq!(
        spans(&[(0.0, 0.0), (5.0, 50.0), (9.0, 101.0)]),
        [],
        "less than ten minutes"
    );
    assert_eq!(
        spans(&[(0.0, 0.0), (5.0, 50.0), (10.0, 101.0)]),
        [(0, 10)],
        "ten minutes are enough"
    );
    assert_eq!(
        spans(&[(0.0, 0.0), (5.0, 0.0), (10.0, 0.0)]),
        [(0, 10)],
        "it goes on as far as is known"
    );
    assert_eq!(spans(&[(0.0, 0.0)]), []);
    assert_eq!(spans(&[]), []);
}

#[test]
fn a_silence_of_more_than_a_quarter_of_an_hour_ends_a_stay_with_its_last_update() {
    assert_eq!(
        spans(&[(0.0, 0.0), (15.0, 0.0), (30.0, 0.0)]),
        [(0, 30)],
        "a quarter of an hour is none"
    );
    assert_eq!(
        spans(&[(0.0, 0.0), (12.0, 0.0), (28.0, 0.0), (40.0, 0.0)]),
        [(0, 12), (28, 40)]
    );
    assert_eq!(
        spans(&[(0.0, 0.0), (8.0, 0.0), (30.0, 900.0)]),
        [],
        "nobody knows where they were"
    );
}

#[test]
fn a_stay_may_begin_with_any_update() {
    // On the way for five minutes, then in one place.
    assert_eq!(
        spans(&[
            (0.0, 0.0),
            (2.0, 300.0),
            (4.0, 600.0),
            (5.0, 620.0),
            (10.0, 650.0),
            (16.0, 640.0),
            (17.0, 2000.0)
        ]),
        [(4, 17)]
    );
    assert_eq!(
        spans(&[
            (0.0, 0.0),
            (12.0, 0.0),
            (14.0, 500.0),
            (20.0, 500.0),
            (26.0, 510.0)
        ]),
        [(0, 14), (14, 26)],
        "half-open: one ends where the other begins"
    );
}

#[test]
fn the_place_is_the_middle_and_the_id_that_of_the_first() {
    let updates = [update(0.0, 0.0), update(5.0, 60.0), update(10.0, 30.0)];
    let stay = &found(&updates)[0];
    assert!(
        stay.position.distance_to(update(0.0, 30.0).position) < 0.01,
        "{stay:?}"
    );
    assert_eq!((stay.accuracy, stay.first), (Some(10.0), updates[0].id));
}

/// Updates of so many seconds after the previous one, so many metres north and east of it.
fn track(steps: &[(f64, f64, f64)]) -> Vec<Update> {
    let (mut micros, mut north, mut east) = (0, 0.0, 0.0);
    let updates = steps.iter().zip(1..).map(|(step, number)| {
        micros += (step.0 * 1e6) as i64;
        north += step.1;
        east += step.2;
        Update {
            id: Uuid::from_u128(number),
            time: micros,
            position: Position::new(40.0 + north / 111_195.08, 8.0 + east / 85_180.0),
            accuracy: (number % 3 > 0).then_some(number as f64 / 7.0),
        }
    });
    updates.collect()
}

/// Steps of somebody who stays, strolls, drives, loses the signal, or sends everything at once.
fn steps() -> impl Strategy<Value = Vec<(f64, f64, f64)>> {
    let step = |waits: Vec<f64>, metres: f64| {
        let steps = (prop::sample::select(waits), -metres..metres, -metres..metres);
        prop::collection::vec(steps, 0..120)
    };
    let legs = prop_oneof![
        step(vec![0.0, 1.0, 2.0], 3.0),
        step(vec![0.0, 1.0, 2.0], 20.0),
        step(vec![1.0, 30.0, 240.0], 30.0),
        step(vec![60.0, 300.0, 600.0, 840.0, 900.0, 901.0], 60.0),
        step(vec![1.0, 240.0, 900.0], 250.0),
        (0..100_usize, 0.0..4.0_f64, -2.0..2.0_f64)
            .prop_map(|(length, north, east)| { vec![(1.0, north, east); length] }),
    ];
    prop::collection::vec(legs, 0..8).prop_map(|legs| legs.concat())
}

#[test]
fn many_updates_at_once_and_one_elsewhere_take_little_time() {
    let mut at_once = vec![(0.0, 0.0, 0.0); 100_000];
    at_once.push((60.0, 5_000.0, 0.0));
    let (stays, polls) = searched(&track(&at_once));
    assert_eq!(stays, []);
    assert!((1..10).contains(&polls), "{polls}");
}

#[test]
fn whoever_moves_slowly_and_tells_it_often_takes_little_time() {
    // Three hundred metres in less than ten minutes: a third of all updates is near the first that waits.
    let drift = vec![(0.029, 0.015, 0.004); 20_000];
    let (stays, polls) = searched(&track(&drift));
    assert_eq!(stays, []);
    assert!(polls < 100, "{polls}");
}

#[test]
fn what_must_be_compared_one_by_one_gives_way() {
    // All are near all others, but not so near that boxes tell. The last one is only near every second.
    let mut steps = vec![(0.0, 0.0, 0.0)];
    for _ in 0..40_000 {
        steps.extend([(0.001, 99.995, 0.0), (0.001, -99.995, 0.0)]);
    }
    steps.push((0.001, 150.0, 0.0));
    let (stays, polls) = searched(&track(&steps));
    assert_eq!(stays, []);
    assert!(polls >= 2, "{polls}");
}

#[test]
fn a_move_or_a_silence_before_the_range_is_a_beginning() {
    let range = 60 * MICROS_PER_MINUTE;
    let is_found = |updates: &[(f64, f64)]| {
        let mut beginning = Beginning::new(range, 0);
        for (minute, metres) in updates {
            beginning.take(&update(*minute, *metres));
        }
        beginning.is_found()
    };
    assert!(is_found(&[(16.0, 0.0)]), "nothing is known before");
    assert!(!is_found(&[(15.0, 0.0), (30.0, 0.0), (45.0, 0.0), (60.0, 0.0)]));
    assert!(is_found(&[(15.0, 0.0), (30.0, 0.0), (46.0, 0.0)]), "a silence");
    assert!(is_found(&[(15.0, 0.0), (30.0, 302.0)]), "a leap");
    assert!(!is_found(&[(15.0, 0.0), (30.0, 299.0), (45.0, 0.0)]));
    assert!(
        is_found(&[(10.0, 0.0), (13.0, 110.0), (16.0, 220.0), (19.0, 330.0)]),
        "a move"
    );
    assert!(
        !is_found(&[(10.0, 0.0), (13.0, 110.0), (16.0, 220.0), (20.0, 330.0)]),
        "in ten minutes a stay may have begun"
    );
    let nearly: Vec<(f64, f64)> = (1..5).map(|number| (f64::from(number) * 14.0, 0.0)).collect();
    assert!(!is_found(&[&nearly[..], &[(61.0, 900.0)]].concat()), "too late");
    assert!(
        is_found(&[&nearly[..], &[(72.0, 0.0)]].concat()),
        "what ended before the range is over"
    );
}

proptest! {
    #[test]
    fn stays_do_not_overlap_and_are_long_enough_and_the_first_hundred_metres_hold(
        steps in prop::collection::vec((0.1..20.0_f64, 0.0..300.0_f64), 0..60),
    ) {
        let mut minute = 0.0;
        let updates: Vec<Update> = steps
            .iter()
            .map(|(wait, metres)| {
                minute += wait;
                update(minute, *metres)
            })
            .collect();
        let stays = found(&updates);
        for stay in &stays {
            prop_assert!(stay.to - stay.from >= LEAST_STAY);
            let first = updates
                .iter()
                .find(|update| update.time == stay.from)
                .unwrap();
            let inside = updates.iter().filter(|update| stay.from < update.time && update.time < stay.to);
            for update in inside {
                prop_assert!(update.position.distance_to(first.position) <= NEAR + 1e-6);
            }
        }
        prop_assert!(stays.windows(2).all(|pair| pair[0].to <= pair[1].from));
    }

    #[test]
    fn stays_are_those_of_the_definition(steps in steps()) {
        let updates = track(&steps);
        prop_assert_eq!(found(&updates), by_definition::found(&updates));
    }

    #[test]
    fn after_a_silence_or_a_move_stays_are_the_same_whatever_came_before(
        steps in steps(), known in 0.0..1.0_f64, begins in 0.0..1.0_f64
    ) {
        let updates = track(&steps);
        let length = updates.last().map_or(0, |last| last.time);
        let known = (known * length as f64) as i64;
        let range = known + (begins * (length - known) as f64) as i64;
        let read: Vec<Update> = updates.iter().copied().filter(|update| update.time >= known).collect();
        let mut beginning = Beginning::new(range, known);
        for update in &read {
            beginning.take(update);
            if update.time >= range {
                break;
            }
        }
        if beginning.is_found() {
            let of_range = |updates: &[Update]| {
                let stays = found(updates).into_iter().filter(|stay| stay.to > range);
                stays.collect::<Vec<Stay>>()
            };
            prop_assert_eq!(of_range(&read), of_range(&updates));
        }
    }
}
