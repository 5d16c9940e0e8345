//! Looking through files for harm: over clamd's protocol, against a scanner made for the purpose, and against
//! clamd itself where it is installed.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{announce, download, file_path, get, put, upload};
use crate::exports::{archive, imported};
use crate::harness::{Almanac, Person, Setup, skip_without, until};

/// What both scanners take for harm.
pub(super) const HARM: &str = "ALMANAC-TEST-HARM-7b1d0c";

/// What the scanner thinks about for ever, and what makes it break off.
const RIDDLE: &str = "ALMANAC-TEST-RIDDLE";
const POISON: &str = "ALMANAC-TEST-POISON";

/// What the scanner finds harmful every second time.
const DOUBT: &str = "ALMANAC-TEST-DOUBT";
static DOUBTS: AtomicUsize = AtomicUsize::new(0);

/// A scanner that speaks the protocol and knows one kind of harm, until it is dropped.
pub(super) struct Scanner(tokio::task::JoinHandle<()>);

impl Scanner {
    pub(super) async fn listen(address: &str) -> (Self, String) {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(stream));
            }
        });
        (Self(task), address)
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn answer(mut stream: TcpStream) {
    let mut command = [0; 10];
    stream.read_exact(&mut command).await.unwrap();
    assert_eq!(&command, b"zINSTREAM\0");
    let mut bytes = Vec::new();
    loop {
        let length = stream.read_u32().await.unwrap() as usize;
        if length == 0 {
            break;
        }
        let begin = bytes.len();
        bytes.resize(begin + length, 0);
        stream.read_exact(&mut bytes[begin..]).await.unwrap();
        if bytes.len() > 10_000_000 {
            stream
                .write_all(b"INSTREAM size limit exceeded. ERROR\0")
                .await
                .unwrap();
            return;
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    if text.contains(RIDDLE) {
        std::future::pending::<()>().await;
    }
    if text.contains(POISON) {
        return;
    }
    let is_doubted = text.contains(DOUBT) && DOUBTS.fetch_add(1, Ordering::Relaxed) % 2 == 1;
    let verdict: &[u8] = if text.contains(HARM) || is_doubted {
        b"stream: Test.Harm FOUND\0"
    } else {
        b"stream: OK\0"
    };
    stream.write_all(verdict).await.unwrap();
}

pub(super) async fn until_scanned(person: &Person, file: &Value) -> Value {
    until(async || {
        let file = get(person, file).await;
        if file["scan_state"] == "pending" {
            Err(file.to_string())
        } else {
            Ok(file)
        }
    })
    .await
}

async fn clean_and_infected(server: &Almanac) {
    let person = server.person();
    let clean = put(&person, "/", "clean", b"tea").await;
    let scanned = until_scanned(&person, &clean).await;
    assert_eq!(scanned["scan_state"], "clean");
    assert!(scanned["last_scanned"].is_string());
    assert_eq!(download(&person, &clean).await.must_be(200).text(), "tea");

    let harm = format!("some text before\n{HARM}\nand after");
    let infected = put(&person, "/", "infected", harm.as_bytes()).await;
    assert_eq!(until_scanned(&person, &infected).await["scan_state"], "infected");
    let problem = download(&person, &infected).await.problem(403);
    assert!(
        problem["detail"].as_str().unwrap().contains("harmful"),
        "{problem}"
    );
    let restore = format!("{}/restore", file_path(&infected));
    let restored = person.call(Method::POST, &restore).await.must_be(200).json();
    download(&person, &restored).await.problem(403);
}

#[tokio::test]
async fn files_are_looked_through_before_they_are_handed_out() {
    let (_scanner, address) = Scanner::listen("127.0.0.1:0").await;
    let server = Setup::default().with("ALMANAC_CLAMD", &address).start();
    clean_and_infected(&server).await;
    let person = server.person();
    let large = put(&person, "/", "large", &vec![b'x'; 12_000_000]).await;
    assert_eq!(until_scanned(&person, &large).await["scan_state"], "failed");
    download(&person, &large).await.must_be(200);
}

#[tokio::test]
async fn a_file_that_the_scanner_cannot_end_with_holds_up_nobody_else() {
    let (_scanner, address) = Scanner::listen("127.0.0.1:0").await;
    let server = Setup::default().with("ALMANAC_CLAMD", &address).start();
    let (puzzled, poisoned, others) = (server.person(), server.person(), server.person());
    let riddle = put(&puzzled, "/", "riddle", RIDDLE.as_bytes()).await;
    let poison = put(&poisoned, "/", "poison", POISON.as_bytes()).await;
    for name in ["before", "after"] {
        let file = put(&others, "/", name, b"tea").await;
        assert_eq!(until_scanned(&others, &file).await["scan_state"], "clean");
    }
    assert_eq!(get(&puzzled, &riddle).await["scan_state"], "pending");
    assert_eq!(get(&poisoned, &poison).await["scan_state"], "pending");
}

#[tokio::test]
async fn what_comes_back_from_an_archive_is_looked_through_before_it_is_handed_out() {
    let folder = tempfile::tempdir().unwrap();
    let first = Setup::default().start();
    let person = first.person();
    let clean = put(&person, "/", "clean", b"tea").await;
    let infected = put(&person, "/", "infected", HARM.as_bytes()).await;
    download(&person, &infected).await.must_be(200);
    let taken = archive(&person, folder.path()).await;
    let (_scanner, address) = Scanner::listen("127.0.0.1:0").await;
    let second = Setup::default().with("ALMANAC_CLAMD", &address).start();
    let there = second.person_called(person.id);
    imported(&second, &taken, None);
    assert_eq!(until_scanned(&there, &clean).await["scan_state"], "clean");
    assert_eq!(download(&there, &clean).await.must_be(200).text(), "tea");
    assert_eq!(until_scanned(&there, &infected).await["scan_state"], "infected");
    download(&there, &infected).await.problem(403);
    // Once is enough.
    imported(&second, &taken, None);
    assert_eq!(get(&there, &clean).await["scan_state"], "clean");
}

#[tokio::test]
async fn an_archive_in_which_two_versions_with_the_same_bytes_have_different_verdicts_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (scanner, address) = Scanner::listen("127.0.0.1:0").await;
    drop(scanner);
    let server = Setup::default().with("ALMANAC_CLAMD", &address).start();
    let person = server.person();
    let first = put(&person, "/", "a", DOUBT.as_bytes()).await;
    let restore = format!("{}/restore", file_path(&first));
    let second = person.call(Method::POST, &restore).await.must_be(200).json();
    let tea = put(&person, "/", "tea", b"tea").await;
    let (_scanner, _) = Scanner::listen(&address).await;
    let mut verdicts = Vec::new();
    for file in [&first, &second] {
        verdicts.push(until_scanned(&person, file).await["scan_state"].clone());
    }
    verdicts.sort_by_key(Value::to_string);
    assert_eq!(verdicts, ["clean", "infected"]);
    assert_eq!(until_scanned(&person, &tea).await["scan_state"], "clean");
    let taken = archive(&person, folder.path()).await;
    let elsewhere = Setup::default().start();
    let there = elsewhere.person_called(person.id);
    for _ in 0..2 {
        imported(&elsewhere, &taken, None);
        for file in [&first, &second] {
            assert_eq!(get(&there, file).await["scan_state"], "infected");
            download(&there, file).await.problem(403);
        }
    }
    assert_eq!(download(&there, &tea).await.must_be(200).text(), "tea");
    assert!(elsewhere.run(&["check"]).status.success());
}

#[tokio::test]
async fn as_long_as_the_scanner_is_silent_files_wait() {
    let (scanner, address) = Scanner::listen("127.0.0.1:0").await;
    drop(scanner);
    let server = Setup::default().with("ALMANAC_CLAMD", &address).start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 3).await;
    assert_eq!(file["scan_state"], "not_scanned");
    assert_eq!(
        upload(&url, "tea").await.must_be(200).json()["scan_state"],
        "pending"
    );
    let problem = download(&person, &file).await.problem(409);
    assert!(
        problem["detail"].as_str().unwrap().contains("scanned"),
        "{problem}"
    );
    server.restart();
    assert_eq!(get(&person, &file).await["scan_state"], "pending");
    let (_scanner, _) = Scanner::listen(&address).await;
    assert_eq!(until_scanned(&person, &file).await["scan_state"], "clean");
    download(&person, &file).await.must_be(200);
}

/// clamd with a signature of our own and no database of anybody's.
struct Clamd(Child);

impl Clamd {
    fn start(home: &Path) -> Option<Self> {
        let named = std::env::var("ALMANAC_TEST_CLAMD").ok();
        let usual = ["/usr/sbin/clamd", "/usr/local/sbin/clamd"].map(str::to_owned);
        let mut programs = named.into_iter().chain(usual);
        let Some(program) = programs.find(|path| Path::new(path).exists()) else {
            skip_without("clamd is not installed, and ALMANAC_TEST_CLAMD does not say where it is");
            return None;
        };
        let socket = home.join("clamd.sock");
        let hexadecimal = HARM.bytes().fold(String::new(), |mut text, byte| {
            let _infallible = write!(text, "{byte:02x}");
            text
        });
        fs::write(
            home.join("own.ndb"),
            format!("Almanac.Test.Harm:0:*:{hexadecimal}\n"),
        )
        .unwrap();
        let settings = format!(
            "Foreground yes\nLocalSocket {}\nDatabaseDirectory {}\nOfficialDatabaseOnly no\n",
            socket.display(),
            home.display()
        );
        fs::write(home.join("clamd.conf"), settings).unwrap();
        let child = Command::new(program)
            .arg(format!("--config-file={}", home.join("clamd.conf").display()))
            .stdout(Stdio::null())
            .spawn()
            .expect("clamd starts");
        let clamd = Self(child);
        let deadline = Instant::now() + Duration::from_mins(1);
        while !socket.exists() {
            assert!(Instant::now() < deadline, "clamd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(clamd)
    }
}

impl Drop for Clamd {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test]
async fn clamd_itself_finds_a_signature_of_our_own() {
    let home = tempfile::tempdir().unwrap();
    let Some(_clamd) = Clamd::start(home.path()) else {
        return;
    };
    let socket = format!("unix:{}", home.path().join("clamd.sock").display());
    let server = Setup::default().with("ALMANAC_CLAMD", &socket).start();
    clean_and_infected(&server).await;
}
