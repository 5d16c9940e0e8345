//! Speaks the part of clamd's protocol that is needed: a stream of bytes goes in, a verdict comes out.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use tokio::io::{self, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::failed::{Failed, Silent};
use crate::store::StoreError;

/// How long the scanner may take to accept a connection or a piece.
const TRANSFER_LIMIT: Duration = Duration::from_secs(30);
/// How long it may take to decide on a file.
const VERDICT_LIMIT: Duration = Duration::from_mins(15);
/// Bytes of one piece.
const PIECE: usize = 256 << 10;
/// The most bytes of an answer.
const LONGEST_ANSWER: u64 = 4096;

/// Where clamd listens: `host:port`, or `unix:/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClamdAddress {
    Tcp(String),
    Unix(PathBuf),
}

/// The scanner's verdict on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Clean,
    /// Harmful, with the name of the malware.
    Infected(String),
    /// The scanner could not decide.
    Unknown(String),
}

impl FromStr for ClamdAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.starts_with('/') {
                Ok(Self::Unix(path.into()))
            } else {
                Err(())
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or(())?;
        let port: u16 = port.parse().map_err(|_| ())?;
        if host.is_empty() || port == 0 {
            Err(())
        } else {
            Ok(Self::Tcp(text.to_owned()))
        }
    }
}

/// Has `bytes` scanned.
pub(super) async fn scan(
    address: &ClamdAddress,
    bytes: impl Stream<Item = Result<Bytes, StoreError>> + Unpin,
) -> Result<Verdict, Failed> {
    match address {
        ClamdAddress::Tcp(address) => converse(in_time(TcpStream::connect(address)).await?, bytes).await,
        ClamdAddress::Unix(path) => converse(in_time(UnixStream::connect(path)).await?, bytes).await,
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    mut bytes: impl Stream<Item = Result<Bytes, StoreError>> + Unpin,
) -> Result<Verdict, Failed> {
    let (answers, mut questions) = io::split(stream);
    in_time(questions.write_all(b"zINSTREAM\0")).await?;
    let mut refused = None;
    'sending: while let Some(some) = bytes.next().await {
        let some = some.map_err(Failed::Store)?;
        for piece in some.chunks(PIECE) {
            if let Err(Failed::Silent(silent)) = in_time(send(&mut questions, piece)).await {
                // The scanner ended the stream early; its answer says why.
                refused = Some(silent);
                break 'sending;
            }
        }
    }
    if refused.is_none() {
        refused = match in_time(send(&mut questions, &[])).await {
            Err(Failed::Silent(silent)) => Some(silent),
            _ => None,
        };
    }
    let mut answer = Vec::new();
    let read = timeout(
        VERDICT_LIMIT,
        answers.take(LONGEST_ANSWER).read_to_end(&mut answer),
    )
    .await;
    let text = String::from_utf8_lossy(&answer);
    let text = text.trim_end_matches(['\0', '\n']);
    match (understood(text), refused, read) {
        (Some(verdict), ..) => Ok(verdict),
        (None, Some(silent), _) => Err(Failed::Silent(silent)),
        (None, None, Ok(Ok(_))) => Err(Failed::Silent(Silent(format!("it said {text:?}")))),
        (None, None, Ok(Err(error))) => Err(Failed::Silent(Silent(error.to_string()))),
        (None, None, Err(_)) => Ok(Verdict::Unknown("the scanner took too long".to_owned())),
    }
}

/// Sends a piece after its length. An empty piece ends the stream.
async fn send(questions: &mut (impl AsyncWrite + Unpin), piece: &[u8]) -> io::Result<()> {
    questions.write_all(&(piece.len() as u32).to_be_bytes()).await?;
    questions.write_all(piece).await?;
    questions.flush().await
}

fn understood(answer: &str) -> Option<Verdict> {
    if let Some(name) = answer
        .strip_prefix("stream: ")
        .and_then(|rest| rest.strip_suffix(" FOUND"))
    {
        return Some(Verdict::Infected(name.to_owned()));
    }
    if answer == "stream: OK" {
        return Some(Verdict::Clean);
    }
    answer
        .strip_suffix("ERROR")
        .map(|reason| Verdict::Unknown(reason.trim_end().to_owned()))
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> Result<T, Failed> {
    let silent = |reason: String| Failed::Silent(Silent(reason));
    match timeout(TRANSFER_LIMIT, work).await {
        Ok(done) => done.map_err(|error| silent(error.to_string())),
        Err(_) => Err(silent("it takes too long".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_host_with_a_port_or_a_socket() {
        let tcp = |text: &str| Ok(ClamdAddress::Tcp(text.to_owned()));
        assert_eq!("clamd:3310".parse(), tcp("clamd:3310"));
        assert_eq!("[::1]:3310".parse(), tcp("[::1]:3310"));
        let socket = ClamdAddress::Unix("/run/clamd.sock".into());
        assert_eq!("unix:/run/clamd.sock".parse(), Ok(socket));
        for wrong in [
            "",
            "clamd",
            ":3310",
            "clamd:0",
            "clamd:x",
            "unix:clamd.sock",
            "/run/clamd.sock",
        ] {
            assert_eq!(wrong.parse::<ClamdAddress>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn what_the_scanner_says_is_understood_or_is_nothing() {
        assert_eq!(understood("stream: OK"), Some(Verdict::Clean));
        let infected = Verdict::Infected("Test.Signature".to_owned());
        assert_eq!(understood("stream: Test.Signature FOUND"), Some(infected));
        let unknown = Verdict::Unknown("INSTREAM size limit exceeded.".to_owned());
        assert_eq!(understood("INSTREAM size limit exceeded. ERROR"), Some(unknown));
        for nothing in ["", "OK", "stream: ", "PONG"] {
            assert_eq!(understood(nothing), None, "{nothing:?}");
        }
    }
}
