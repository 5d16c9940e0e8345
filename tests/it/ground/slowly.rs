//! A body that is sent when the test says so.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{Almanac, Person};

/// A request whose body is on its way.
pub(super) struct Sending {
    stream: TcpStream,
}

impl Sending {
    /// Opens a request for JSON lines of a type, `length` bytes of them.
    pub(super) async fn open(server: &Almanac, person: &Person, data_type: &str, length: usize) -> Self {
        let head = format!(
            "POST /ingest/v1/record/{data_type} HTTP/1.1\r\nHost: almanac\r\nConnection: \
             close\r\nAuthorization: Bearer {}\r\nContent-Type: application/x-jsonl\r\nContent-Length: \
             {length}\r\n\r\n",
            person.token()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        Self { stream }
    }

    /// Sends more of it. `false`: the other side does not want it any more.
    pub(super) async fn send(&mut self, part: &str) -> bool {
        self.stream.write_all(part.as_bytes()).await.is_ok()
    }

    /// The status of the answer, and all of it.
    pub(super) async fn answer(mut self) -> (u16, String) {
        let mut answer = Vec::new();
        // Whoever was refused early may see the connection reset behind the answer.
        drop(self.stream.read_to_end(&mut answer).await);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.get(9..12).and_then(|status| status.parse().ok());
        (status.unwrap_or(0), answer)
    }
}
