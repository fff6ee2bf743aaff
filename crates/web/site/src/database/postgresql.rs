//! PostgreSQL's protocol, version 3 (PostgreSQL 15 documentation, chapter 55): extended queries with values as text.

use std::collections::HashMap;

use super::message::{In, Out, affected, column_types, copy_line, numbered, row, server_error};
use super::scram::Scram;
use super::stream::Stream;
use super::{Address, Answer, Connection, DatabaseError, Engine, Row, Value};

const VERSION_3_0: i32 = 196_608;
/// No message that is understood here comes near it.
const LONGEST_MESSAGE_BYTES: usize = 1 << 28;
const COPY_CHUNK_BYTES: usize = 64 << 10;

/// A statement that the server knows.
struct Prepared {
    name: String,
    /// The type of each column of its result, by OID.
    columns: Vec<u32>,
}

/// A connection to PostgreSQL.
pub(super) struct PostgreSql {
    stream: Stream,
    prepared: HashMap<String, Prepared>,
    message: Vec<u8>,
}

impl PostgreSql {
    pub(super) fn connect(address: &Address) -> Result<Self, DatabaseError> {
        let stream = Stream::connect(address)?;
        let mut this = PostgreSql { stream, prepared: HashMap::new(), message: Vec::new() };
        let mut start = Out::new().raw(&[0; 4]).long(VERSION_3_0);
        for (key, value) in [
            ("user", address.user.as_str()),
            ("database", &address.database),
            ("client_encoding", "UTF8"),
            ("application_name", "weir"),
        ] {
            start = start.text(key).text(value);
        }
        let start = start.raw(&[0]).end();
        this.stream.send(&start.bytes)?;
        this.authenticate(address)?;
        this.until_ready(|_, _, _| Ok(()))?;
        this.batch("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        Ok(this)
    }

    fn authenticate(&mut self, address: &Address) -> Result<(), DatabaseError> {
        let mut scram: Option<Scram> = None;
        loop {
            let kind = self.receive()?;
            let message = std::mem::take(&mut self.message);
            let mut body = In(&message);
            match kind {
                b'E' => return Err(server_error(&message)),
                b'N' | b'S' => continue,
                b'R' => {}
                other => {
                    return Err(self
                        .stream
                        .strange(format!("message {:?} while logging in", char::from(other))));
                }
            }
            match (body.long(), &mut scram) {
                (Some(0), _) => return Ok(()),
                (Some(10), _) => {
                    let password = address.password()?.ok_or_else(|| {
                        DatabaseError::Protocol(
                            "the server asks for a password: give password_file=FILE".into(),
                        )
                    })?;
                    let mut offered = String::from_utf8_lossy(body.0).into_owned();
                    offered.retain(|letter| letter != '\0');
                    if !offered.contains("SCRAM-SHA-256") {
                        return Err(self.stream.strange(format!("the server offers only {offered}")));
                    }
                    let state = Scram::new(password, &nonce());
                    let first = state.first();
                    let out = Out::new().begin(b'p').text("SCRAM-SHA-256").long(first.len() as i32);
                    self.stream.send(&out.raw(first.as_bytes()).end().bytes)?;
                    scram = Some(state);
                }
                (Some(11), Some(state)) => {
                    let answer = state.answer(&String::from_utf8_lossy(body.0));
                    let answer = answer.map_err(|reason| self.stream.strange(reason))?;
                    self.stream.send(&Out::new().begin(b'p').raw(answer.as_bytes()).end().bytes)?;
                }
                (Some(12), Some(state)) => {
                    if !state.verify(&String::from_utf8_lossy(body.0)) {
                        return Err(self
                            .stream
                            .strange("the server does not know the password that it asked for"));
                    }
                }
                (method, _) => {
                    return Err(self.stream.strange(format!(
                        "the server asks for authentication {method:?}; peer and scram-sha-256 are supported"
                    )));
                }
            }
        }
    }

    /// Reads a message into `self.message`; returns its kind.
    fn receive(&mut self) -> Result<u8, DatabaseError> {
        let mut head = [0; 5];
        self.stream.receive(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..LONGEST_MESSAGE_BYTES).contains(&length) {
            return Err(self.stream.strange(format!("a message of {length} bytes")));
        }
        self.message.resize(length - 4, 0);
        self.stream.receive(&mut self.message)?;
        Ok(head[0])
    }

    /// Reads up to `ReadyForQuery`, and hands what is neither an error nor a notice to `each`. The first error is returned once
    /// the server is ready again.
    fn until_ready(
        &mut self,
        mut each: impl FnMut(&mut Stream, u8, &[u8]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let mut failed = None;
        loop {
            match self.receive()? {
                b'Z' => return failed.map_or(Ok(()), Err),
                b'E' => {
                    let error = server_error(&self.message);
                    // After these the server says no more.
                    if error.is_gone() {
                        self.stream.broken = true;
                        return Err(error);
                    }
                    failed.get_or_insert(error);
                }
                b'N' | b'S' | b'K' => {}
                kind => each(&mut self.stream, kind, &self.message)?,
            }
        }
    }

    fn prepare(&mut self, sql: &str) -> Result<(), DatabaseError> {
        let name = format!("s{}", self.prepared.len());
        let out = Out::new().begin(b'P').text(&name).text(&numbered(sql)).short(0).end();
        let out = out.begin(b'D').raw(b"S").text(&name).end().bare(b'S');
        self.stream.send(&out.bytes)?;
        let mut columns = Vec::new();
        self.until_ready(|stream, kind, body| {
            if kind == b'T' {
                columns = column_types(body)
                    .ok_or_else(|| stream.strange("a description of rows that ends early"))?;
            }
            Ok(())
        })?;
        self.prepared.insert(sql.to_owned(), Prepared { name, columns });
        Ok(())
    }
}

impl Connection for PostgreSql {
    fn engine(&self) -> Engine {
        Engine::PostgreSql
    }

    fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<Answer, DatabaseError> {
        if !self.prepared.contains_key(sql) {
            self.prepare(sql)?;
        }
        let Some(Prepared { name, columns }) = self.prepared.remove(sql) else {
            return Err(self.stream.strange("a statement that was just prepared is not there"));
        };
        let mut out = Out::new().begin(b'B').text("").text(&name).short(0).short(parameters.len());
        for parameter in parameters {
            out = match parameter {
                Value::Null => out.long(-1),
                Value::Int(number) => {
                    let text = number.to_string();
                    out.long(text.len() as i32).raw(text.as_bytes())
                }
                Value::Text(text) => out.long(text.len() as i32).raw(text.as_bytes()),
            };
        }
        let out = out.short(0).end().begin(b'E').text("").long(0).end().bare(b'S');
        let mut answer = Answer::default();
        let done = self.stream.send(&out.bytes).and_then(|()| {
            self.until_ready(|stream, kind, body| {
                match kind {
                    b'D' => {
                        let row = row(body, &columns)
                            .ok_or_else(|| stream.strange("a row that is not as described"))?;
                        answer.rows.push(row);
                    }
                    b'C' => answer.affected = affected(body),
                    _ => {}
                }
                Ok(())
            })
        });
        self.prepared.insert(sql.to_owned(), Prepared { name, columns });
        done.map(|()| answer)
    }

    fn batch(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.stream.send(&Out::new().begin(b'Q').text(sql).end().bytes)?;
        self.until_ready(|_, _, _| Ok(()))
    }

    fn bulk(&mut self, table: &str, columns: &[&str], rows: &[Row]) -> Result<u64, DatabaseError> {
        let sql = format!("COPY {table} ({}) FROM STDIN", columns.join(", "));
        let mut text = Vec::new();
        rows.iter().for_each(|row| copy_line(row, &mut text));
        // Written in one go: a server that refuses the statement discards what follows it.
        let mut out = Out::new().begin(b'Q').text(&sql).end();
        for chunk in text.chunks(COPY_CHUNK_BYTES) {
            out = out.begin(b'd').raw(chunk).end();
        }
        self.stream.send(&out.bare(b'c').bytes)?;
        let mut count = 0;
        self.until_ready(|_, kind, body| {
            if kind == b'C' {
                count = affected(body);
            }
            Ok(())
        })?;
        Ok(count)
    }

    fn is_broken(&self) -> bool {
        self.stream.broken
    }
}

impl Drop for PostgreSql {
    fn drop(&mut self) {
        if !self.stream.broken {
            let _ = self.stream.send(&Out::new().bare(b'X').bytes);
        }
    }
}

/// A nonce of SCRAM: 144 random bits in printable characters.
fn nonce() -> String {
    use rand::{TryRng, rngs::SysRng};
    let mut bytes = [0u8; 18];
    // Without a source of random numbers the time is left, which is as unique if less secret.
    if SysRng.try_fill_bytes(&mut bytes).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes[..16].copy_from_slice(&now.as_nanos().to_le_bytes());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
