//! How rough a world is. Each kind of trouble has worlds of its own, in which nothing else can be to blame,
//! and there are worlds with all of them.

use super::chance::Chance;

/// One in so many steps brings this; 0: none does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TroubleRates {
    /// Of what is done, so much goes wrong.
    pub faults: usize,
    pub crashes: usize,
    /// Minutes or hours pass at once.
    pub long_times: usize,
    /// A clock jumps.
    pub clocks: usize,
    /// A bit flips, or is put right.
    pub damages: usize,
    /// The database loses what it did last.
    pub failovers: usize,
    /// Of the moments at which nothing is under way, so many bring a backup, a restore, or a lost catalogue.
    pub disasters: usize,
    /// Bodies take their time.
    pub slow_clients: bool,
    /// What nothing names is looked for most of the time.
    pub searches: bool,
    /// Nearly all requests are small writes.
    pub busy: bool,
    /// A node that is much faster than the others.
    pub favourite: Option<usize>,
    /// Nearly everything happens there, to one person, whom others write large bodies for at the same time.
    pub crowd: bool,
    /// Steps between two moments at which nothing is under way.
    pub pauses: u64,
    /// Numbers of records that small writes use.
    pub records: usize,
}

impl TroubleRates {
    pub(super) const fn calm() -> Self {
        Self {
            faults: 0,
            crashes: 0,
            long_times: 0,
            clocks: 0,
            damages: 0,
            failovers: 0,
            disasters: 0,
            slow_clients: false,
            searches: false,
            busy: false,
            favourite: None,
            crowd: false,
            pauses: 350,
            records: 24,
        }
    }

    /// The rates of the world of this number, so that all kinds come in turn.
    pub(super) fn of(number: u64, chance: &mut Chance) -> Self {
        let calm = Self {
            records: *chance.pick(&[6, 24, 40]),
            ..Self::calm()
        };
        match number % 10 {
            0 => Self {
                favourite: Some(0),
                crowd: true,
                pauses: 1_950,
                ..calm
            },
            1 => Self { faults: 12, ..calm },
            2 => Self {
                crashes: 60,
                faults: 40,
                ..calm
            },
            3 => Self {
                long_times: 25,
                slow_clients: true,
                searches: true,
                clocks: 60,
                ..calm
            },
            4 => Self {
                damages: 25,
                busy: true,
                favourite: Some(0),
                ..calm
            },
            5 => Self {
                failovers: 20,
                ..calm
            },
            6 => Self {
                clocks: 40,
                crashes: 80,
                ..calm
            },
            7 => Self {
                disasters: 1,
                crashes: 150,
                ..calm
            },
            8 => Self {
                slow_clients: true,
                favourite: Some(1),
                records: 40,
                ..calm
            },
            _ => Self {
                faults: 30,
                crashes: 120,
                long_times: 100,
                clocks: 100,
                damages: 80,
                failovers: 80,
                disasters: 3,
                slow_clients: chance.one_in(2),
                favourite: Some(2).filter(|_| chance.one_in(2)),
                ..calm
            },
        }
    }
}
