//! How long it takes to decide whether somebody may read, where the owner gave many grants.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run should stop")]
#![expect(
    clippy::disallowed_methods,
    reason = "people and shares of a benchmark may have any ids"
)]

use std::sync::Arc;
use std::time::Duration;

use almanac::auth::grants::Grants;
use almanac::auth::keys::SigningKey;
use almanac::auth::mint::{Minter, TokenOrder};
use almanac::auth::reach::Reach;
use almanac::auth::settings::{IdentitySettings, Provider};
use almanac::auth::tokens::{Reader, Verifier};
use almanac::catalog::Catalog;
use almanac::catalog::documents::{Change, Changed, Document, DocumentKind, Link};
use almanac::catalog::granting::SHARED_WITH_PERSON;
use almanac::model::clock::{Clock as _, SystemClock};
use almanac::model::ids::PersonId;
use almanac::model::registry::{Registry, TypeId};
use almanac::model::time::{Instant, TimeRange};
use almanac::people::sharing::terms::Terms;
use criterion::{Criterion, criterion_group, criterion_main};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

/// 2024-01-01 in microseconds.
const NEW_YEAR: i64 = 1_704_067_200_000_000;

/// Whether somebody may read, where the owner gave ten thousand grants.
fn decide(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let directory = TempDir::new().unwrap();
    let address = format!("sqlite://{}", directory.path().join("catalogue.db").display());
    let catalog = runtime
        .block_on(Catalog::open(&address, Arc::new(SystemClock)))
        .unwrap();
    let (owner, reader) = (PersonId(Uuid::now_v7()), PersonId(Uuid::now_v7()));
    let moment = Instant::from_micros(NEW_YEAR);
    let shares = (0..1_000).map(|number| {
        let terms = Terms {
            name: format!("share {number}"),
            data_types: vec!["HeartRate".to_owned(), "StepCount".to_owned()],
            ..Terms::default()
        };
        let with = |target: Uuid| Link {
            kind: SHARED_WITH_PERSON,
            target,
        };
        let mut links: Vec<Link> = (0..10).map(|_| with(Uuid::new_v4())).collect();
        if number == 500 {
            links.push(with(reader.0));
        }
        Change::Insert {
            document: Document {
                kind: DocumentKind::Share,
                id: Uuid::now_v7(),
                person: owner,
                name: None,
                body: serde_json::to_string(&terms).unwrap(),
                version: 1,
                created_at: moment,
                updated_at: moment,
                deleted_at: None,
            },
            links,
            limit: 1_000,
        }
    });
    let made = runtime.block_on(catalog.change_documents(shares.collect()));
    assert_eq!(made.unwrap(), Changed::Done);
    let grants = Grants::new(catalog, Arc::new(Registry::builtin().unwrap()));
    let readers = runtime.block_on(verified(&directory, [reader, PersonId(Uuid::now_v7())]));
    let range = TimeRange::new(moment, Instant::from_micros(i64::MAX)).unwrap();
    let heart_rate = TypeId::new("HeartRate");
    let mut group = criterion.benchmark_group("decide");
    for (name, who) in ["a reader", "a stranger"].into_iter().zip(&readers) {
        group.bench_function(name, |bencher| {
            bencher
                .to_async(&runtime)
                .iter(|| async { grants.windows(who, owner, &heart_rate, range).await.is_ok() });
        });
    }
    group.finish();
}

/// People with tokens.
async fn verified(directory: &TempDir, people: [PersonId; 2]) -> Vec<Reader> {
    let key = SigningKey::open_or_create(directory.path()).unwrap();
    let settings = IdentitySettings {
        provider: Provider::Embedded,
        issuer: None,
        audience: None,
        user_claim: "sub".to_owned(),
        subject_as_person: false,
        longest: Duration::MAX,
        leeway: Duration::ZERO,
    };
    let verifier = Verifier::embedded(&key, settings.clone(), Arc::new(SystemClock));
    let mut readers = Vec::new();
    for person in people {
        let order = TokenOrder {
            person,
            name: None,
            lifetime: Duration::from_hours(1),
            reach: Reach::default(),
        };
        let minter = Minter::new(key.clone(), settings.clone());
        let token = minter.token(&order, Uuid::now_v7(), SystemClock.now()).unwrap();
        readers.push(
            verifier
                .verify(Some(format!("Bearer {token}").as_bytes()))
                .await
                .unwrap(),
        );
    }
    readers
}

criterion_group!(benches, decide);
criterion_main!(benches);
