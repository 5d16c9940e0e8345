//! Where settings come from, which values they take, and that the pages tell of each.

use super::given::{Origin, Sources};
use super::table::{Entry, SETTINGS};
use super::*;

fn none(_: &str) -> Option<String> {
    None
}

fn file(text: &str) -> (PathBuf, String) {
    (PathBuf::from("almanac.toml"), text.to_owned())
}

fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let variable = |name: &str| {
        variables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    };
    Settings::from_given(&GivenSettings::gathered(&Sources {
        flag: &none,
        variable: &variable,
        file: None,
    })?)
}

#[test]
fn flags_beat_the_environment_and_the_environment_beats_the_file() {
    let say = |name: &'static str, value: &'static str| {
        move |asked: &str| (asked == name).then(|| value.to_owned())
    };
    let (flag, variable) = (say("listen", "127.0.0.1:1"), say("ALMANAC_LISTEN", "127.0.0.1:2"));
    let text = "listen = '127.0.0.1:3'";
    let origin = |sources: &Sources<'_>| {
        let given = GivenSettings::gathered(sources).unwrap();
        let setting = given.setting("listen").unwrap().clone();
        (
            Settings::from_given(&given).unwrap().interface.listen.port(),
            setting.origin,
        )
    };
    assert_eq!(
        origin(&Sources {
            flag: &flag,
            variable: &variable,
            file: Some(file(text))
        }),
        (1, Origin::Flag)
    );
    assert_eq!(
        origin(&Sources {
            flag: &none,
            variable: &variable,
            file: Some(file(text))
        }),
        (2, Origin::Environment)
    );
    assert_eq!(
        origin(&Sources {
            flag: &none,
            variable: &none,
            file: Some(file(text))
        }),
        (3, Origin::File("almanac.toml".into()))
    );
    assert_eq!(
        origin(&Sources {
            flag: &none,
            variable: &none,
            file: None
        }),
        (8080, Origin::Default)
    );
}

#[test]
fn an_unknown_key_in_the_file_is_an_error_that_names_it() {
    let error = GivenSettings::gathered(&Sources {
        flag: &none,
        variable: &none,
        file: Some(file("lissten = 'x'")),
    })
    .unwrap_err();
    assert!(error.to_string().contains("lissten"), "{error}");
}

#[test]
fn numbers_booleans_and_lists_in_the_file_are_values() {
    let text = "waiting_queries = 3\nupkeep = false\ncors_origins = ['http://a.example', 'http://b.example']";
    let settings = Settings::from_given(
        &GivenSettings::gathered(&Sources {
            flag: &none,
            variable: &none,
            file: Some(file(text)),
        })
        .unwrap(),
    )
    .unwrap();
    assert_eq!(settings.interface.waiting_queries, 3);
    assert!(!settings.upkeep.enabled);
    assert_eq!(
        settings.interface.cors_origins,
        ["http://a.example", "http://b.example"]
    );
}

#[test]
fn the_defaults_are_a_service_on_this_machine_alone() {
    let settings = settings(&[]).unwrap();
    assert_eq!(settings.interface.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.interface.public_url, "http://127.0.0.1:8080");
    assert_eq!(settings.interface.body_limit, 64 << 20);
    assert_eq!(settings.interface.cors_origins, [""; 0]);
    assert_eq!(settings.database_url, "sqlite://./almanac-data/catalogue.db");
    assert_eq!(
        settings.objects,
        ObjectStoreSettings::Local("./almanac-data/objects".into())
    );
    assert_eq!(settings.identity.provider, Provider::Embedded);
    assert_eq!(settings.identity.issuer.as_deref(), Some("almanac"));
    assert_eq!(settings.identity.user_claim, "svc_userid");
}

#[test]
fn a_wrong_value_names_the_setting_its_origin_and_what_was_expected() {
    let error = settings(&[("ALMANAC_BODY_LIMIT", "huge")])
        .err()
        .unwrap()
        .to_string();
    for part in ["body_limit", "huge", "environment ALMANAC_BODY_LIMIT", "64MiB"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_duration_that_is_too_long_is_refused_with_the_longest() {
    for (name, value, longest) in [
        ("ALMANAC_GRACE_PERIOD", "200000000000000d", "at most 36525 days"),
        ("ALMANAC_COMMIT_WINDOW", "1h", "at most 10 seconds"),
    ] {
        let error = settings(&[(name, value)]).err().unwrap().to_string();
        assert!(error.contains(longest), "{error}");
    }
    assert!(
        settings(&[
            ("ALMANAC_GRACE_PERIOD", "36525d"),
            ("ALMANAC_COMMIT_WINDOW", "10s")
        ])
        .is_ok()
    );
}

#[test]
fn an_origin_that_no_browser_sends_is_refused_with_one_that_they_do() {
    for (origin, sent) in [
        ("https://a.example:443", "https://a.example"),
        ("http://[::1]:080", "http://[::1]"),
        ("https://Pages.example/", "https://pages.example"),
        ("https://tagebücher.example", "https://xn--tagebcher-u9a.example"),
    ] {
        let both = format!("http://localhost:3000, {origin}");
        let error = settings(&[("ALMANAC_CORS_ORIGINS", &both)]).err().unwrap();
        let expected = format!("expected {sent} instead of {origin}");
        assert!(error.to_string().contains(&expected), "{error}");
    }
    let error = settings(&[("ALMANAC_CORS_ORIGINS", "https://user:secret@a.example")]);
    let error = error.err().unwrap().to_string();
    let expected = "expected https://a.example instead of https://user:***@a.example";
    assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    let all = "*, http://localhost:3000, https://a.example, http://[::1]:8080";
    assert!(settings(&[("ALMANAC_CORS_ORIGINS", all)]).is_ok());
}

#[test]
fn a_value_that_is_nothing_is_shown_as_nothing() {
    let flag = |name: &str| (name == "listen").then(String::new);
    let given = GivenSettings::gathered(&Sources {
        flag: &flag,
        variable: &none,
        file: None,
    });
    let error = Settings::from_given(&given.unwrap()).err().unwrap().to_string();
    assert!(error.starts_with("listen is \"\" (flag --listen)"), "{error}");
}

#[test]
fn what_cannot_be_is_no_value() {
    for (name, value) in [
        ("ALMANAC_LISTEN", "localhost"),
        ("ALMANAC_UPKEEP", "maybe"),
        ("ALMANAC_ALGORITHMS", "HS256"),
        ("ALMANAC_LOG_FORMAT", "xml"),
        ("ALMANAC_LOG", "almanac=loud"),
        ("ALMANAC_LOG", "warning"),
        ("ALMANAC_LOG", "info,debgu"),
        ("ALMANAC_OBJECT_STORE", "s3://"),
        ("ALMANAC_OBJECT_STORE", "s3:/bucket"),
        ("ALMANAC_OBJECT_STORE", "s3:bucket"),
        ("ALMANAC_OBJECT_STORE", "file:/srv/place"),
        ("ALMANAC_OBJECT_STORE", "file://"),
        ("ALMANAC_DATABASE_CONNECTIONS", "3"),
        ("ALMANAC_DATABASE_CONNECTIONS", "4000000000"),
        ("ALMANAC_QUERY_THREADS", "1025"),
        ("ALMANAC_QUERY_THREADS", "20000"),
        ("ALMANAC_CONCURRENT_UPLOADS", "0"),
        ("ALMANAC_CONCURRENT_QUERIES", "18446744073709551616"),
        ("ALMANAC_PUBLIC_URL", "https://"),
        ("ALMANAC_PUBLIC_URL", "https:///path"),
        ("ALMANAC_PUBLIC_URL", "https://:8080"),
        ("ALMANAC_PUBLIC_URL", "https://almanac.example/?q=1"),
        ("ALMANAC_PUBLIC_URL", "https://almanac.example/#top"),
        ("ALMANAC_PUBLIC_URL", "https://almanac example"),
        ("ALMANAC_GEOCODER_URL", "https://"),
        ("ALMANAC_JWKS_URL", "https://"),
        ("ALMANAC_TRUSTED_PROXIES", "proxy"),
        ("ALMANAC_DATABASE_URL", "mysql://localhost/almanac"),
        ("ALMANAC_DATABASE_URL", "sqlite::memory:"),
        ("ALMANAC_DATABASE_URL", "postgres://localhost:port/almanac"),
        ("ALMANAC_SOURCE_PREFIX", "com almanac"),
        ("ALMANAC_SOURCE_PREFIX", "com..almanac"),
        ("ALMANAC_CORS_ORIGINS", "pages.example"),
        ("ALMANAC_CORS_ORIGINS", "https://pages.example/"),
        ("ALMANAC_CORS_ORIGINS", "https://Pages.example"),
        ("ALMANAC_CORS_ORIGINS", "https://"),
        ("ALMANAC_CORS_ORIGINS", "https://*.example"),
        ("ALMANAC_CORS_ORIGINS", "http://localhost:99999"),
        ("ALMANAC_CORS_ORIGINS", "https://a.example:443"),
        ("ALMANAC_CORS_ORIGINS", "https://me@a.example"),
        ("ALMANAC_SLOW_CLIENT_LIMIT", "200000000000000d"),
        ("ALMANAC_QUERY_DEADLINE", "999999999999999999999d"),
        ("ALMANAC_GRACE_PERIOD", "36525.1d"),
        ("ALMANAC_COMMIT_WINDOW", "9999999d"),
        ("ALMANAC_COMMIT_WINDOW", "11s"),
        ("ALMANAC_QUERY_DEADLINE", "0"),
        ("ALMANAC_TOKEN_LIFETIME_LIMIT", "0s"),
        ("ALMANAC_FRAME_LIFETIME", "0ms"),
        ("ALMANAC_JWKS_LIFETIME", "abc"),
        ("ALMANAC_JWKS_INTERVAL", "-1s"),
        ("ALMANAC_JWKS_STALE", "1 week"),
        ("ALMANAC_PERSON_KEYS", "ftp://keys"),
        ("AWS_ALLOW_HTTP", "maybe"),
        ("AWS_ENDPOINT_URL", "localhost:9000"),
    ] {
        let outside = ("ALMANAC_JWKS_URL", "http://127.0.0.1:1/jwks");
        assert!(settings(&[(name, value), outside]).is_err(), "{name}={value}");
        assert!(settings(&[(name, value)]).is_err(), "{name}={value}");
    }
}

#[test]
fn a_count_beyond_all_machines_is_no_limit() {
    let settings = settings(&[
        ("ALMANAC_CONNECTION_LIMIT", "4294967295"),
        ("ALMANAC_WAITING_QUERIES", "18446744073709551615"),
        ("ALMANAC_PERSON_QUERIES", "18446744073709551615"),
        ("ALMANAC_CONCURRENT_QUERIES", "18446744073709551615"),
        ("ALMANAC_CONCURRENT_UPLOADS", "18446744073709551615"),
    ])
    .unwrap();
    let InterfaceSettings {
        connection_limit,
        waiting_queries,
        person_queries,
        concurrent_queries,
        ..
    } = settings.interface;
    let counts = [
        connection_limit,
        waiting_queries,
        person_queries,
        concurrent_queries,
        settings.files.concurrent_uploads,
    ];
    assert_eq!(counts, [1_000_000_000; 5]);
}

#[test]
fn a_host_that_is_not_in_ascii_is_refused_with_how_to_write_it() {
    for name in ["ALMANAC_PUBLIC_URL", "ALMANAC_JWKS_URL"] {
        let error = settings(&[(name, "https://tagebücher.example")]).err().unwrap();
        assert!(error.to_string().contains("xn--"), "{error}");
        assert!(settings(&[(name, "https://xn--tagebcher-u9a.example")]).is_ok());
    }
}

#[test]
fn addresses_may_have_ports_and_paths_and_a_key_set_a_question() {
    for url in [
        "https://almanac.example",
        "http://[::1]:8080/almanac",
        "http://10.0.0.1",
    ] {
        let with_slash = format!("{url}/");
        let settings = settings(&[("ALMANAC_PUBLIC_URL", &with_slash)]).unwrap();
        assert_eq!(settings.interface.public_url, url);
    }
    let url = "https://identity.example/keys?policy=users";
    let Provider::Outside(provider) = settings(&[("ALMANAC_JWKS_URL", url)]).unwrap().identity.provider
    else {
        panic!("not an outside provider")
    };
    assert_eq!(provider.jwks_url, url);
}

#[test]
fn every_setting_with_a_form_is_read_whatever_the_others_are() {
    let takes_any_text = ["data_dir", "user_claim"];
    let formed = SETTINGS
        .iter()
        .filter(|entry| !entry.default.is_empty() && !takes_any_text.contains(&entry.name));
    for entry in formed {
        assert!(
            settings(&[(entry.variable, "no such value")]).is_err(),
            "{} is not read",
            entry.variable
        );
    }
}

#[test]
fn every_default_is_a_value() {
    assert!(settings(&[("ALMANAC_JWKS_URL", "http://127.0.0.1:1/jwks")]).is_ok());
}

#[test]
fn an_s3_store_takes_the_usual_variables() {
    let settings = settings(&[
        ("ALMANAC_OBJECT_STORE", "s3://bucket/prefix"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "key"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_DEFAULT_REGION", "eu-central-1"),
    ])
    .unwrap();
    let ObjectStoreSettings::S3 { url, options } = &settings.objects else {
        panic!("not S3")
    };
    assert_eq!(url, "s3://bucket/prefix");
    let option = |name: &str| {
        options
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(option("AWS_DEFAULT_REGION"), Some("eu-central-1"));
    assert_eq!(option("AWS_ALLOW_HTTP"), Some("true"));
    assert_eq!(option("AWS_SECRET_ACCESS_KEY"), Some("key"));
    assert_eq!(option("AWS_REGION"), None);
}

#[test]
fn a_store_without_tls_has_to_be_allowed() {
    let without = [
        ("ALMANAC_OBJECT_STORE", "s3://bucket"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000"),
    ];
    assert!(settings(&without).is_err_and(|error| error.to_string().contains("aws_allow_http")));
    let levels = settings(&[("ALMANAC_LOG", "INFO,almanac::store=debug,off")]);
    assert!(levels.is_ok());
}

#[test]
fn secrets_and_passwords_are_not_shown() {
    let variable = |name: &str| match name {
        "AWS_SECRET_ACCESS_KEY" => Some("topsecret".to_owned()),
        "ALMANAC_DATABASE_URL" => Some("postgres://me:topsecret@localhost/almanac".to_owned()),
        _ => None,
    };
    let shown = GivenSettings::gathered(&Sources {
        flag: &none,
        variable: &variable,
        file: None,
    })
    .unwrap()
    .to_string();
    assert!(!shown.contains("topsecret"), "{shown}");
    assert!(shown.contains("postgres://me:***@localhost/almanac"), "{shown}");
    assert!(shown.contains("environment ALMANAC_DATABASE_URL"), "{shown}");
}

#[test]
fn nothing_of_an_address_that_is_not_understood_is_shown() {
    for (name, value) in [
        (
            "ALMANAC_DATABASE_URL",
            "postgres://almanac:topsecret/1@localhost/almanac",
        ),
        (
            "ALMANAC_DATABASE_URL",
            "postgres:/almanac:topsecret@localhost/almanac",
        ),
        ("ALMANAC_DATABASE_URL", "almanac:topsecret@localhost/almanac"),
        ("ALMANAC_JWKS_URL", "identity.example/keys?code=topsecret"),
    ] {
        let said = settings(&[(name, value)]).err().unwrap().to_string();
        assert!(said.contains("(hidden)") && !said.contains("topsecret"), "{said}");
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn no_parameter_of_an_address_is_shown_that_may_be_a_secret() {
    for (name, value, shown) in [
        (
            "ALMANAC_DATABASE_URL",
            "postgres://me@localhost/a?sslmode=require&sslpasword=topsecret",
            "postgres://me@localhost/a?sslmode=require&sslpasword=***",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "https://o/?api=topsecret",
            "https://o/?api=***",
        ),
        ("ALMANAC_GEOCODER_URL", "https://o/?topsecret", "https://o/?***"),
    ] {
        let said = settings(&[(name, value)]).err().unwrap().to_string();
        assert!(said.contains(shown) && !said.contains("topsecret"), "{said}");
    }
}

#[test]
fn what_nobody_sets_shows_what_follows_from_the_rest() {
    let variable = |name: &str| (name == "ALMANAC_DATA_DIR").then(|| "/srv/almanac".to_owned());
    let given = GivenSettings::gathered(&Sources {
        flag: &none,
        variable: &variable,
        file: None,
    })
    .unwrap();
    let settings = Settings::from_given(&given).unwrap();
    let completed = given.completed(&settings);
    let shown = |name| {
        completed
            .setting(name)
            .map(|setting| (setting.shown(), setting.place()))
            .unwrap()
    };
    assert_eq!(
        shown("database_url"),
        (
            "sqlite:///srv/almanac/catalogue.db".to_owned(),
            "default, from data_dir".to_owned()
        )
    );
    assert_eq!(shown("public_url").0, "http://127.0.0.1:8080");
    assert_eq!(shown("jwks_url"), ("-".to_owned(), "default".to_owned()));
}

#[test]
fn the_page_for_operators_says_of_every_setting_what_its_help_says() {
    let page = include_str!("../../../docs/OPERATIONS.md");
    let (_, table) = page
        .split_once("| variable | default | meaning |\n|---|---|---|\n")
        .unwrap();
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    let row = |entry: &Entry| {
        let default = match entry.default {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        format!("| `{}` | {default} | {} |", entry.variable, entry.help)
    };
    let expected: Vec<String> = SETTINGS.iter().map(row).collect();
    assert_eq!(rows, expected);
}

#[test]
fn names_are_unique_and_flags_keep_secrets_out() {
    let mut names: Vec<&str> = SETTINGS.iter().map(|entry| entry.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SETTINGS.len());
    for entry in SETTINGS {
        let expected = if entry.secret {
            String::new()
        } else {
            entry.name.replace('_', "-")
        };
        assert_eq!(entry.flag, expected);
    }
}

#[test]
fn every_place_of_objects_is_read_the_same_way() {
    let local = |path: &str| ObjectStoreSettings::Local(path.into());
    for (text, place) in [
        ("/srv/place", local("/srv/place")),
        ("file:///srv/place", local("/srv/place")),
        ("./of:mine", local("./of:mine")),
    ] {
        let setting = settings(&[
            ("ALMANAC_OBJECT_STORE", text),
            ("ALMANAC_MASTER_KEY_FILE", "/etc/master.key"),
            ("ALMANAC_PERSON_KEYS", text),
        ])
        .unwrap();
        assert_eq!(setting.objects, place);
        assert_eq!(setting.encryption.unwrap().keys, place);
    }
    for name in ["ALMANAC_OBJECT_STORE", "ALMANAC_PERSON_KEYS"] {
        let setting = settings(&[
            ("ALMANAC_MASTER_KEY_FILE", "/etc/master.key"),
            (name, "gs://bucket"),
        ]);
        assert!(setting.is_err(), "{name}");
    }
}
