//! The binary under test as a process.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use uuid::Uuid;

use super::program::program;
use super::{Backends, Metrics, Person, until};

/// Generous: a loaded machine that runs every test at once.
const START_LIMIT: Duration = Duration::from_mins(1);

/// How a server is to be started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    settings: BTreeMap<String, String>,
    backends: Backends,
    data_dir: Option<PathBuf>,
    contained: bool,
}

impl Setup {
    /// One setting by its environment name.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn on(mut self, backends: Backends) -> Self {
        self.backends = backends;
        self
    }

    /// Upkeep that never rests, so that flushing, compaction and collection happen while a test looks.
    pub(crate) fn busy_upkeep(self) -> Self {
        self.with("ALMANAC_FLUSH_AGE", "50ms")
            .with("ALMANAC_UPKEEP_INTERVAL", "50ms")
            .with("ALMANAC_GRACE_PERIOD", "1s")
    }

    /// Upkeep that does not come, so that what is accepted stays in the tail.
    pub(crate) fn no_upkeep(self) -> Self {
        self.with("ALMANAC_UPKEEP", "false")
    }

    /// A data directory that outlives the server.
    pub(crate) fn in_dir(mut self, dir: &Path) -> Self {
        self.data_dir = Some(dir.to_owned());
        self
    }

    /// In a numbering of processes of its own, in which it is process 1, as in a container.
    pub(crate) fn in_container(mut self) -> Self {
        self.contained = true;
        self
    }

    pub(crate) fn start(self) -> Almanac {
        let almanac = self.prepare();
        almanac.launch();
        almanac
    }

    /// A server that is set up but not running, for the commands.
    pub(crate) fn prepare(self) -> Almanac {
        let home = TempDir::new().expect("a temporary directory");
        let data_dir = self.data_dir.unwrap_or_else(|| home.path().join("data"));
        let mut settings = self.settings;
        let port = free_port();
        settings.insert("ALMANAC_LISTEN".to_owned(), format!("127.0.0.1:{port}"));
        settings.insert("ALMANAC_DATA_DIR".to_owned(), data_dir.display().to_string());
        settings.extend(self.backends.settings());
        Almanac {
            port,
            data_dir,
            settings,
            contained: self.contained,
            running: Mutex::new(None),
            home: Arc::new(home),
        }
    }
}

/// Whether this process may do what a namespace of users would let it do, which not every machine grants.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// One data directory and, between `launch` and `stop` or `kill`, the process that serves it.
#[derive(Debug)]
pub(crate) struct Almanac {
    port: u16,
    data_dir: PathBuf,
    settings: BTreeMap<String, String>,
    contained: bool,
    running: Mutex<Option<Running>>,
    home: Arc<TempDir>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// Ends the server and removes its directory when this process dies without running destructors.
    guard: Child,
}

impl Almanac {
    pub(crate) fn start() -> Self {
        Setup::default().start()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// What the process wrote to its standard output and error since the first launch.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.home.path().join("log")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running
            .lock()
            .expect("lock")
            .as_ref()
            .expect("a running server")
            .child
            .id()
    }

    /// Starts the process and returns when it says that it is ready.
    pub(crate) fn launch(&self) {
        if let Err(status) = self.try_launch() {
            panic!("the server ended with {status}:\n{}", self.log());
        }
    }

    /// Starts the process; returns when it says that it is ready, or how it ended instead.
    pub(crate) fn try_launch(&self) -> Result<(), ExitStatus> {
        let deadline = Instant::now() + START_LIMIT;
        let mut running = self.spawn();
        while !is_ready(self.port) {
            if let Some(status) = running.child.try_wait().expect("the state of the server") {
                release(&mut running);
                // Another process may have taken the port since it was found free, or the old one may not
                // have left it yet.
                if !self.log().contains("in use") || Instant::now() > deadline {
                    return Err(status);
                }
                running = self.spawn();
            }
            assert!(
                Instant::now() < deadline,
                "the server was not ready in time:\n{}",
                self.log()
            );
            thread::sleep(Duration::from_millis(10));
        }
        *self.running.lock().expect("lock") = Some(running);
        Ok(())
    }

    fn spawn(&self) -> Running {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .expect("a log file");
        let errors = log.try_clone().expect("a second handle");
        let child = self
            .command(&["serve"])
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .expect("the server starts");
        let guard = Command::new("sh")
            .args(["-c", "cat >/dev/null; kill -9 $0 2>/dev/null; rm -rf \"$1\""])
            .arg(child.id().to_string())
            .arg(self.home.path())
            .stdin(Stdio::piped())
            .spawn()
            .expect("the guard starts");
        Running { child, guard }
    }

    /// The binary with this server's settings and nothing of the surroundings' own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = if self.contained {
            let mut command = Command::new("unshare");
            if !is_root() {
                command.args(["--user", "--map-root-user"]);
            }
            command.args(["--pid", "--fork", "--kill-child"]).arg(program());
            command
        } else {
            Command::new(program())
        };
        for (name, _) in std::env::vars() {
            if name.starts_with("ALMANAC_") || name.starts_with("AWS_") || name.starts_with("OTEL_") {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .current_dir(self.home.path())
            .envs(&self.settings);
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the command runs")
    }

    fn take_running(&self) -> Running {
        let mut running = self.running.lock().expect("lock");
        running.take().expect("a running server")
    }

    /// The power goes: no destructor runs, nothing is flushed.
    pub(crate) fn kill(&self) {
        let mut running = self.take_running();
        running.child.kill().expect("SIGKILL");
        release(&mut running);
    }

    /// Asks the process to end, and waits until it did.
    pub(crate) fn stop(&self) -> ExitStatus {
        let mut running = self.take_running();
        signal(&running.child, "TERM");
        let status = running.child.wait().expect("the exit status");
        release(&mut running);
        status
    }

    /// Asks the process to end and does not wait.
    pub(crate) fn ask_to_stop(&self) {
        signal(
            &self
                .running
                .lock()
                .expect("lock")
                .as_ref()
                .expect("a running server")
                .child,
            "TERM",
        );
    }

    pub(crate) fn restart(&self) {
        self.stop();
        self.launch();
    }

    /// A new person with a token.
    pub(crate) fn person(&self) -> Person {
        self.person_called(Uuid::new_v4())
    }

    pub(crate) fn person_called(&self, person: Uuid) -> Person {
        Person::new(&self.url(), person, self.token(person))
    }

    pub(crate) fn token(&self, person: Uuid) -> String {
        if !self.data_dir.join("signing.key").exists() {
            let made = self.run(&["init"]);
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
        let output = self.run(&["token", "--user", &person.to_string()]);
        assert!(
            output.status.success(),
            "almanac token: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout)
            .expect("a token is text")
            .trim()
            .to_owned()
    }

    /// Somebody who shows no token.
    pub(crate) fn nobody(&self) -> Person {
        Person::without_token(&self.url())
    }

    pub(crate) async fn metrics(&self) -> Metrics {
        Metrics::parse(self.nobody().get("/metrics").await.must_be(200).text())
    }

    /// The Parquet objects in the data directory.
    pub(crate) fn objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect_objects(&self.data_dir, &mut found);
        found.sort();
        found
    }

    /// Waits until `holds`. The test fails with `complaint` and the log if that takes too long.
    pub(crate) async fn until(&self, complaint: &str, holds: impl AsyncFn() -> bool) {
        until(async || {
            if holds().await {
                return Ok(());
            }
            Err(format!("{complaint}:\n{}", self.log()))
        })
        .await;
    }

    /// Waits until the data directory holds at least `count` Parquet objects.
    pub(crate) async fn until_objects(&self, count: usize) -> Vec<PathBuf> {
        until(async || {
            let objects = self.objects();
            if objects.len() >= count {
                return Ok(objects);
            }
            let there = objects.len();
            Err(format!(
                "{there} of {count} objects were written:\n{}",
                self.log()
            ))
        })
        .await
    }

    /// Waits until nothing is in the tail any more.
    pub(crate) async fn until_no_tail(&self) {
        self.until("the tail is never flushed", async || {
            let metrics = self.metrics().await;
            metrics.has(&["almanac_store_tail_rows"]) && metrics.sum(&["almanac_store_tail_rows"]) == 0.0
        })
        .await;
    }

    /// The greatest resident memory since the start or the last `forget_peak`, in MiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the status of the process");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .expect("a peak");
        let kilobytes: u64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|number| number.parse().ok())
            .expect("a number");
        kilobytes / 1024
    }

    pub(crate) fn forget_peak(&self) {
        fs::write(format!("/proc/{}/clear_refs", self.pid()), "5").expect("the peak is reset");
    }
}

impl Drop for Almanac {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.lock().ok().and_then(|mut running| running.take()) {
            drop(running.child.kill());
            release(&mut running);
        }
        if thread::panicking() {
            // Shown only for tests that fail, where it is what one wants to see.
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!(
                "--- end of the server's log\n{}",
                lines[lines.len().saturating_sub(30)..].join("\n")
            );
        }
    }
}

/// Waits for the dead server, and lets the guard go without the removal that it would do.
fn release(running: &mut Running) {
    drop(running.child.wait());
    drop(running.guard.kill());
    drop(running.guard.wait());
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(child.id().to_string())
        .status()
        .expect("kill runs");
    assert!(status.success(), "the signal was delivered");
}

/// Below the range from which outgoing connections get theirs, so that only another server can take it.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = (std::process::id() % 600) as u16 * 20;
    loop {
        let port = 20_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn is_ready(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    drop(stream.set_read_timeout(Some(Duration::from_secs(5))));
    if stream
        .write_all(b"GET /health/ready HTTP/1.1\r\nHost: almanac\r\nConnection: close\r\n\r\n")
        .is_err()
    {
        return false;
    }
    let mut answer = [0_u8; 12];
    std::io::Read::read_exact(&mut stream, &mut answer).is_ok() && answer.ends_with(b"200")
}

fn collect_objects(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect_objects(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            found.push(path);
        }
    }
}

/// A process that ends with the test at the latest.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
