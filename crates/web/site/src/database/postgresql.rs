//! PostgreSQL's protocol, version 3 (PostgreSQL 15 documentation, chapter 55): extended queries with values as text.

use std::collections::HashMap;
use std::io;

use bytes::{BufMut as _, BytesMut};
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use postgres_protocol::{IsNull, Oid};

use super::message::{affected, column_types, copy_line, numbered, row, server_error};
use super::stream::Stream;
use super::{Address, Answer, Connection, DatabaseError, Engine, Row, Value};

/// Longer messages are refused.
const LONGEST_MESSAGE_BYTES: usize = 1 << 28;
const HEAD_BYTES: usize = 5;
const COPY_CHUNK_BYTES: usize = 64 << 10;

/// A prepared statement of the server.
struct Prepared {
    name: String,
    /// The type of each column of its result.
    columns: Vec<Oid>,
}

/// A connection to PostgreSQL.
pub(super) struct PostgreSql {
    stream: Stream,
    prepared: HashMap<String, Prepared>,
    message: BytesMut,
}

fn unwritable(error: io::Error) -> DatabaseError {
    DatabaseError::Protocol(format!("a message to the server cannot be written: {error}"))
}

impl PostgreSql {
    pub(super) fn connect(address: &Address) -> Result<Self, DatabaseError> {
        let stream = Stream::connect(address)?;
        let mut this = PostgreSql { stream, prepared: HashMap::new(), message: BytesMut::new() };
        let parameters = [
            ("user", address.user.as_str()),
            ("database", &address.database),
            ("client_encoding", "UTF8"),
            ("application_name", "weir"),
        ];
        let mut out = BytesMut::new();
        frontend::startup_message(parameters, &mut out).map_err(unwritable)?;
        this.stream.send(&out)?;
        this.authenticate(address)?;
        this.until_ready(|_| Ok(()))?;
        this.batch("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        Ok(this)
    }

    fn authenticate(&mut self, address: &Address) -> Result<(), DatabaseError> {
        let offered = match self.login_message()? {
            Message::AuthenticationOk => return Ok(()),
            Message::AuthenticationSasl(body) => body.mechanisms().map(|name| Ok(name.to_owned())).collect(),
            _ => {
                return Err(self.stream.unexpected(
                    "the server asks for an authentication that is not supported: set peer or scram-sha-256 in pg_hba.conf",
                ));
            }
        };
        let offered: Vec<String> = offered.map_err(|error| self.stream.unexpected(error.to_string()))?;
        if !offered.iter().any(|name| name == SCRAM_SHA_256) {
            return Err(self.stream.unexpected(format!(
                "the server offers {}, expected {SCRAM_SHA_256}: set password_encryption to scram-sha-256",
                offered.join(", ")
            )));
        }
        let password = address.password()?.ok_or_else(|| {
            DatabaseError::Protocol("the server asks for a password: give password_file=FILE".into())
        })?;
        let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
        let mut out = BytesMut::new();
        frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut out).map_err(unwritable)?;
        self.stream.send(&out.split())?;
        let unexpected = "the server does not go on with SCRAM";
        let Message::AuthenticationSaslContinue(body) = self.login_message()? else {
            return Err(self.stream.unexpected(unexpected));
        };
        scram.update(body.data()).map_err(|error| self.stream.unexpected(format!("SCRAM: {error}")))?;
        frontend::sasl_response(scram.message(), &mut out).map_err(unwritable)?;
        self.stream.send(&out)?;
        let Message::AuthenticationSaslFinal(body) = self.login_message()? else {
            return Err(self.stream.unexpected(unexpected));
        };
        scram.finish(body.data()).map_err(|error| {
            self.stream.unexpected(format!("the server did not prove that it knows the password: {error}"))
        })?;
        match self.login_message()? {
            Message::AuthenticationOk => Ok(()),
            _ => Err(self.stream.unexpected(unexpected)),
        }
    }

    /// The next message of a login that is neither a notice nor a parameter.
    fn login_message(&mut self) -> Result<Message, DatabaseError> {
        loop {
            match self.receive()? {
                Message::NoticeResponse(_) | Message::ParameterStatus(_) => {}
                Message::ErrorResponse(body) => return Err(server_error(&body)),
                message => return Ok(message),
            }
        }
    }

    fn receive(&mut self) -> Result<Message, DatabaseError> {
        let mut head = [0; HEAD_BYTES];
        self.stream.receive(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..LONGEST_MESSAGE_BYTES).contains(&length) {
            return Err(self.stream.unexpected(format!("a message of {length} bytes")));
        }
        self.message.clear();
        self.message.put_slice(&head);
        self.message.resize(1 + length, 0);
        self.stream.receive(&mut self.message[HEAD_BYTES..])?;
        match Message::parse(&mut self.message) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(self.stream.unexpected("a message that ends early")),
            Err(error) => Err(self.stream.unexpected(error.to_string())),
        }
    }

    /// Reads up to `ReadyForQuery`, and passes messages other than errors and notices to `each`. The first error is
    /// returned once the server is ready again.
    fn until_ready(
        &mut self,
        mut each: impl FnMut(Message) -> Result<(), &'static str>,
    ) -> Result<(), DatabaseError> {
        let mut failed = None;
        loop {
            match self.receive()? {
                Message::ReadyForQuery(_) => return failed.map_or(Ok(()), Err),
                Message::ErrorResponse(body) => {
                    let error = server_error(&body);
                    // The server sends nothing after these.
                    if error.is_gone() {
                        self.stream.broken = true;
                        return Err(error);
                    }
                    failed.get_or_insert(error);
                }
                Message::NoticeResponse(_) => {}
                message => each(message).map_err(|problem| self.stream.unexpected(problem))?,
            }
        }
    }

    fn prepare(&mut self, sql: &str) -> Result<(), DatabaseError> {
        let name = format!("s{}", self.prepared.len());
        let mut out = BytesMut::new();
        frontend::parse(&name, &numbered(sql), [], &mut out).map_err(unwritable)?;
        frontend::describe(b'S', &name, &mut out).map_err(unwritable)?;
        frontend::sync(&mut out);
        self.stream.send(&out)?;
        let mut columns = Vec::new();
        self.until_ready(|message| {
            if let Message::RowDescription(body) = message {
                columns = column_types(&body).map_err(|_| "a description of rows that ends early")?;
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
        let Some(prepared) = self.prepared.remove(sql) else {
            return Err(self.stream.unexpected("a statement that was just prepared is not there"));
        };
        let answer = self.execute(&prepared, parameters);
        self.prepared.insert(sql.to_owned(), prepared);
        answer
    }

    fn batch(&mut self, sql: &str) -> Result<(), DatabaseError> {
        let mut out = BytesMut::new();
        frontend::query(sql, &mut out).map_err(unwritable)?;
        self.stream.send(&out)?;
        self.until_ready(|_| Ok(()))
    }

    fn bulk(&mut self, table: &str, columns: &[&str], rows: &[Row]) -> Result<u64, DatabaseError> {
        let sql = format!("COPY {table} ({}) FROM STDIN", columns.join(", "));
        let mut text = Vec::new();
        rows.iter().for_each(|row| copy_line(row, &mut text));
        // Written in one go: a server that refuses the statement discards what follows it.
        let mut out = BytesMut::new();
        frontend::query(&sql, &mut out).map_err(unwritable)?;
        for chunk in text.chunks(COPY_CHUNK_BYTES) {
            frontend::CopyData::new(chunk).map_err(unwritable)?.write(&mut out);
        }
        frontend::copy_done(&mut out);
        self.stream.send(&out)?;
        let mut count = 0;
        self.until_ready(|message| {
            if let Message::CommandComplete(body) = message {
                count = body.tag().map_or(0, affected);
            }
            Ok(())
        })?;
        Ok(count)
    }

    fn is_broken(&self) -> bool {
        self.stream.broken
    }
}

impl PostgreSql {
    fn execute(&mut self, prepared: &Prepared, parameters: &[Value]) -> Result<Answer, DatabaseError> {
        let mut out = BytesMut::new();
        let text = |parameter: &Value, to: &mut BytesMut| {
            match parameter {
                Value::Null => return Ok(IsNull::Yes),
                Value::Int(number) => to.put_slice(number.to_string().as_bytes()),
                Value::Text(text) => to.put_slice(text.as_bytes()),
            }
            Ok(IsNull::No)
        };
        frontend::bind("", &prepared.name, [], parameters, text, [], &mut out).map_err(|_| {
            DatabaseError::Protocol("more or longer parameters than a message can hold".into())
        })?;
        frontend::execute("", 0, &mut out).map_err(unwritable)?;
        frontend::sync(&mut out);
        self.stream.send(&out)?;
        let mut answer = Answer::default();
        self.until_ready(|message| {
            match message {
                Message::DataRow(body) => {
                    let row = row(&body, &prepared.columns).ok_or("a row that is not as described")?;
                    answer.rows.push(row);
                }
                Message::CommandComplete(body) => answer.affected = body.tag().map_or(0, affected),
                _ => {}
            }
            Ok(())
        })?;
        Ok(answer)
    }
}

impl Drop for PostgreSql {
    fn drop(&mut self) {
        if !self.stream.broken {
            let mut out = BytesMut::new();
            frontend::terminate(&mut out);
            let _ = self.stream.send(&out);
        }
    }
}
