//! The pairs of backends that a suite can run on: the embedded one always, PostgreSQL with S3 where the
//! surroundings offer them.

use std::collections::BTreeMap;
use std::env;

use sqlx::{Connection as _, Executor as _};
use uuid::Uuid;

use super::surroundings::skip_without;

/// Where a server keeps its catalogue and objects; the default is the embedded pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backends {
    settings: BTreeMap<String, String>,
}

impl Backends {
    pub(crate) fn embedded() -> Self {
        Self::default()
    }

    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        self.settings.clone()
    }

    /// A database and a prefix of their own in the servers that `ALMANAC_TEST_POSTGRES_URL` and
    /// `ALMANAC_TEST_S3_ENDPOINT` name; `None` where these are not both set.
    pub(crate) fn networked() -> Option<Self> {
        let (postgres, s3) = ("ALMANAC_TEST_POSTGRES_URL", "ALMANAC_TEST_S3_ENDPOINT");
        let unset: Vec<&str> = [postgres, s3]
            .into_iter()
            .filter(|name| env::var(name).is_err())
            .collect();
        if !unset.is_empty() {
            let unset = unset.join(" and ");
            skip_without(&format!("there is no PostgreSQL with S3, for want of {unset}"));
            return None;
        }
        let postgres = env::var(postgres).expect("set, as was just seen");
        let name = format!("almanac_{}", Uuid::new_v4().simple());
        let database_url = create_database(&postgres, &name);
        let bucket = env::var("ALMANAC_TEST_S3_BUCKET").unwrap_or_else(|_| "almanac".to_owned());
        let mut settings = BTreeMap::from([
            ("ALMANAC_DATABASE_URL".to_owned(), database_url),
            ("ALMANAC_OBJECT_STORE".to_owned(), format!("s3://{bucket}/{name}")),
        ]);
        let given = |name: &str, otherwise: &str| env::var(name).unwrap_or_else(|_| otherwise.to_owned());
        settings.insert(
            "AWS_ENDPOINT_URL".to_owned(),
            given("ALMANAC_TEST_S3_ENDPOINT", ""),
        );
        settings.insert(
            "AWS_ACCESS_KEY_ID".to_owned(),
            given("ALMANAC_TEST_S3_ACCESS_KEY_ID", "test"),
        );
        settings.insert(
            "AWS_SECRET_ACCESS_KEY".to_owned(),
            given("ALMANAC_TEST_S3_SECRET_ACCESS_KEY", "testsecret"),
        );
        settings.insert(
            "AWS_REGION".to_owned(),
            given("ALMANAC_TEST_S3_REGION", "us-east-1"),
        );
        settings.insert("AWS_ALLOW_HTTP".to_owned(), "true".to_owned());
        Some(Self { settings })
    }

    /// Every pair there is.
    pub(crate) fn available() -> Vec<Self> {
        std::iter::once(Self::embedded())
            .chain(Self::networked())
            .collect()
    }

    /// This pair with one setting changed, to put something between the server and its backend.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn setting(&self, name: &str) -> &str {
        self.settings.get(name).map_or("", String::as_str)
    }
}

/// Creates the database `name` beside the one that `url` names; its url.
fn create_database(url: &str, name: &str) -> String {
    let (server, rest) = url.rsplit_once('/').expect("a database in the url");
    let parameters = rest.find('?').map_or("", |at| &rest[at..]);
    let statement = format!("CREATE DATABASE {name}");
    let (url_of_admin, made) = (url.to_owned(), format!("{server}/{name}{parameters}"));
    // A thread of its own: the caller may be inside a runtime already, or in none.
    let created = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let mut connection = sqlx::PgConnection::connect(&url_of_admin)
                .await
                .expect("the PostgreSQL server answers");
            connection
                .execute(sqlx::AssertSqlSafe(statement))
                .await
                .expect("a new database");
        });
    });
    created.join().expect("the database is created");
    made
}
