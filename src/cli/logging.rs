//! The log: to standard error, as text or JSON, filtered as the settings say.

use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::failed::Failed;
use super::settings::{LogFormat, LogSettings};

/// Libraries that log parts of people's queries at detailed levels.
const INDISCREET_LIBRARIES: [&str; 2] = ["sqlparser", "datafusion"];

/// The part of a library that reads the address of a database and the file of its passwords.
const READER_OF_PASSWORDS: &str = "sqlx_postgres::options";
/// The fields in which it quotes them.
const QUOTES: [&str; 2] = ["line", "value"];

/// Whether a line reveals nothing that people ask, and no password, whatever the filter says.
fn is_discreet(line: &Metadata<'_>) -> bool {
    let target = line.target();
    let is_detailed = *line.level() > Level::INFO;
    let quotes = |name: &&str| line.fields().field(name).is_some();
    let tells_queries = is_detailed && INDISCREET_LIBRARIES.iter().any(|name| target.starts_with(name));
    let tells_passwords = target.starts_with(READER_OF_PASSWORDS) && QUOTES.iter().any(quotes);
    !tells_queries && !tells_passwords
}

/// Starts the log of this process.
pub(super) fn start(settings: &LogSettings) -> Result<(), Failed> {
    let filter = EnvFilter::try_new(&settings.filter).map_err(Failed::from_error)?;
    // A line that cannot be written is lost. Reporting that on the same standard error would end the thread
    // that logged it.
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let discreet = filter_fn(is_discreet);
    let started = match settings.format {
        LogFormat::Text => subscriber.with_ansi(false).finish().with(discreet).try_init(),
        LogFormat::Json => subscriber
            .json()
            .flatten_event(true)
            .finish()
            .with(discreet)
            .try_init(),
    };
    started.map_err(|error| Failed::because(format!("the log could not be started: {error}")))?;
    std::panic::set_hook(Box::new(|panic| {
        // The location only: the message may quote what somebody sent or stored.
        let location = panic.location().map(ToString::to_string);
        tracing::error!(location, "a panic");
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_tells_queries_or_passwords() {
        let subscriber = tracing_subscriber::registry().with(filter_fn(is_discreet));
        tracing::subscriber::with_default(subscriber, || {
            assert!(tracing::enabled!(target: "sqlparser::parser", Level::INFO));
            assert!(!tracing::enabled!(target: "sqlparser::parser", Level::DEBUG));
            assert!(!tracing::enabled!(target: "sqlx_postgres::options::parse", Level::WARN, value));
            assert!(!tracing::enabled!(target: "sqlx_postgres::options::pgpass", Level::WARN, line));
            assert!(tracing::enabled!(target: "sqlx_postgres::options::pgpass", Level::WARN, path));
            assert!(tracing::enabled!(target: "almanac::store", Level::DEBUG, value));
        });
    }
}
