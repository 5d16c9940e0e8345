//! The states of files as a machine: whatever is done in whatever order, the catalogue says what a model says
//! that is a few lines long.

use proptest::prelude::*;

use super::*;

const PLACES: [&str; 2] = ["a", "b"];

/// One thing that somebody does. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    Create {
        place: usize,
        size: usize,
        first: bool,
    },
    Upload {
        version: usize,
    },
    Send {
        version: usize,
        from: usize,
        length: usize,
    },
    /// Puts the bytes into the store, past the service.
    PutDirectly {
        version: usize,
    },
    Delete {
        version: usize,
    },
    Restore {
        version: usize,
    },
    Expire,
}

/// What a version is.
#[derive(Clone, Debug, PartialEq)]
struct Version {
    id: Uuid,
    place: usize,
    state: FileState,
    bytes: Vec<u8>,
    restored_from: Option<Uuid>,
    first: bool,
    received: usize,
    expired: bool,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2_usize, 0..9_usize, prop::bool::weighted(0.2))
            .prop_map(|(place, size, first)| Step::Create { place, size, first }),
        4 => (0..99_usize).prop_map(|version| Step::Upload { version }),
        4 => (0..99_usize, 0..9_usize, 1..6_usize)
            .prop_map(|(version, from, length)| Step::Send { version, from, length }),
        2 => (0..99_usize).prop_map(|version| Step::PutDirectly { version }),
        2 => (0..99_usize).prop_map(|version| Step::Delete { version }),
        2 => (0..99_usize).prop_map(|version| Step::Restore { version }),
        1 => Just(Step::Expire),
    ]
}

/// What the bytes of the `number`th file are.
fn bytes_of(number: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| (number * 16 + at) as u8).collect()
}

#[derive(Debug, Default)]
struct Model(Vec<Version>);

impl Model {
    fn live(&mut self, place: usize) -> Option<&mut Version> {
        let lives = |version: &&mut Version| version.place == place && version.state == FileState::Uploaded;
        self.0.iter_mut().find(lives)
    }

    /// The version at `index` takes its place; `false` where it may not.
    fn put_in_place(&mut self, index: usize) -> bool {
        let (place, first) = (self.0[index].place, self.0[index].first);
        if first && self.live(place).is_some() {
            return false;
        }
        if let Some(live) = self.live(place) {
            live.state = FileState::Archived;
        }
        self.0[index].state = FileState::Uploaded;
        true
    }

    fn takes_bytes(&self, index: usize) -> bool {
        self.0[index].state == FileState::Created && !self.0[index].expired
    }
}

/// A person's files beside what the model says of them.
struct Walk<'a> {
    bench: &'a Bench,
    model: Model,
}

impl Walk<'_> {
    async fn take(&mut self, step: Step) {
        let count = self.model.0.len();
        let pick = |version: usize| version % count;
        match step {
            Step::Create { place, size, first } => self.create(place, size, first).await,
            _ if count == 0 => {}
            Step::Upload { version } => self.upload(pick(version)).await,
            Step::Send {
                version,
                from,
                length,
            } => self.send(pick(version), from, length).await,
            Step::PutDirectly { version } => self.put_directly(pick(version)).await,
            Step::Delete { version } => self.delete(pick(version)).await,
            Step::Restore { version } => self.restore(pick(version)).await,
            Step::Expire => {
                self.bench.pass(LIFETIME);
                for version in &mut self.model.0 {
                    version.expired |= version.state == FileState::Created;
                }
            }
        }
    }

    async fn create(&mut self, place: usize, size: usize, first: bool) {
        let announced = AnnouncedFile {
            must_be_first: first,
            ..announced(PLACES[place], size as u64)
        };
        let outcome = self.bench.announce(announced).await;
        if first && self.model.live(place).is_some() {
            assert!(matches!(outcome, Err(FilesError::Exists(_))), "{outcome:?}");
            return;
        }
        self.model.0.push(Version {
            id: outcome.unwrap(),
            place,
            state: FileState::Created,
            bytes: bytes_of(self.model.0.len(), size),
            restored_from: None,
            first,
            received: 0,
            expired: false,
        });
    }

    async fn upload(&mut self, index: usize) {
        let version = self.model.0[index].clone();
        let outcome = self.bench.upload(version.id, &version.bytes).await;
        if !self.model.takes_bytes(index) {
            assert!(matches!(outcome, Err(UploadError::Closed)), "{outcome:?}");
        } else if self.model.put_in_place(index) {
            assert!(matches!(outcome, Ok(Received::Whole(_))), "{outcome:?}");
        } else {
            assert!(is_taken(&outcome), "{outcome:?}");
            self.model.0[index].received = 0;
        }
    }

    async fn send(&mut self, index: usize, from: usize, length: usize) {
        let version = self.model.0[index].clone();
        let total = version.bytes.len();
        let from = from.min(total.saturating_sub(1));
        let until = (from + length).min(total);
        if from == until {
            return;
        }
        let said = range(from as u64, until as u64, total as u64);
        let outcome = self
            .bench
            .send(version.id, said, &version.bytes[from..until])
            .await;
        let there = if from <= version.received {
            until.max(version.received)
        } else {
            version.received
        };
        if !self.model.takes_bytes(index) {
            assert!(matches!(outcome, Err(UploadError::Closed)), "{outcome:?}");
        } else if there < total {
            assert_eq!(received(outcome), Some(there as u64));
            self.model.0[index].received = there;
        } else if self.model.put_in_place(index) {
            assert_eq!(received(outcome), None);
        } else {
            assert!(is_taken(&outcome), "{outcome:?}");
        }
    }

    /// Whoever looks next finds it, also when the time to send it is over.
    async fn put_directly(&mut self, index: usize) {
        let version = self.model.0[index].clone();
        self.bench.put_directly(version.id, &version.bytes).await;
        if version.state != FileState::Created {
            return;
        }
        if self.model.put_in_place(index) {
            self.model.0[index].expired = false;
        } else {
            self.model.0[index].received = 0;
        }
    }

    async fn delete(&mut self, index: usize) {
        let (files, person) = (&self.bench.files, self.bench.person);
        let version = &mut self.model.0[index];
        files.delete(person, version.id, |_| true).await.unwrap();
        if version.state == FileState::Created {
            // Nothing of it can come back.
            version.bytes.clear();
            version.expired = true;
        }
        version.state = FileState::Deleted;
    }

    async fn restore(&mut self, index: usize) {
        let earlier = self.model.0[index].clone();
        let outcome = self.bench.files.restore(self.bench.person, earlier.id).await;
        if earlier.state == FileState::Created || earlier.expired {
            assert!(matches!(outcome, Err(FilesError::NotUploaded)), "{outcome:?}");
            return;
        }
        self.model.0.push(Version {
            id: outcome.unwrap().id,
            restored_from: Some(earlier.id),
            first: false,
            ..earlier
        });
        assert!(self.model.put_in_place(self.model.0.len() - 1));
    }
}

fn is_taken(outcome: &Result<Received, UploadError<()>>) -> bool {
    matches!(outcome, Err(UploadError::Files(FilesError::Exists(_))))
}

async fn compare(bench: &Bench, model: &Model) {
    let mut found: Vec<_> = bench
        .everything()
        .await
        .files
        .into_iter()
        .map(|file| (file.id, file.name, file.state, file.restored_from))
        .collect();
    found.sort();
    let mut expected: Vec<_> = model
        .0
        .iter()
        .map(|version| {
            let name = PLACES[version.place].to_owned();
            (version.id, name, version.state, version.restored_from)
        })
        .collect();
    expected.sort();
    assert_eq!(found, expected);
    for version in &model.0 {
        let bytes = bench.bytes(version.id).await;
        match version.state {
            FileState::Created => assert!(matches!(bytes, Err(FilesError::NotUploaded))),
            FileState::Deleted => assert!(matches!(bytes, Err(FilesError::Deleted))),
            FileState::Uploaded | FileState::Archived => assert_eq!(bytes.unwrap(), version.bytes),
        }
    }
    let own = model.0.iter().filter(|version| version.restored_from.is_none());
    let taken: usize = own.map(|version| version.bytes.len()).sum();
    assert_eq!(bench.usage().await, taken as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// After any steps there is at each place what the last upload or restoration put there, and of every
    /// other version what the model says.
    #[test]
    fn files_are_what_was_done_to_them(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            for bench in Bench::all().await.into_iter().map(Bench::direct) {
                let mut walk = Walk { bench: &bench, model: Model::default() };
                for step in steps.clone() {
                    walk.take(step).await;
                    compare(&bench, &walk.model).await;
                }
            }
        });
    }
}
