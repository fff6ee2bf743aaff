//! MariaDB's protocol: prepared statements with binary values.

use std::collections::HashMap;

use super::packet::{self, ColumnKind, In};
use super::stream::Stream;
use super::{Address, Answer, Connection, DatabaseError, Engine, Row, Value};

const COM_QUIT: u8 = 1;
const COM_QUERY: u8 = 3;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;

/// Long password, found rows, long flag, connect with database, protocol 4.1, transactions, secure connection, plugins.
const CAPABILITIES: u32 = 0x1 | 0x2 | 0x4 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const UTF8MB4: u8 = 45;
/// A packet of this size is continued by the next.
const LONGEST_PACKET_BYTES: usize = 0xff_ffff;
/// What one statement of `INSERT` may hold; servers take 16 MiB unless told otherwise.
const INSERT_BYTES: usize = 1 << 20;

struct Prepared {
    id: u32,
    parameters: usize,
}

/// A connection to MariaDB.
pub(super) struct MariaDb {
    stream: Stream,
    sequence: u8,
    prepared: HashMap<String, Prepared>,
    packet: Vec<u8>,
}

/// What the first packet of an answer says.
enum First {
    Done { affected: u64 },
    Columns(usize),
}

impl MariaDb {
    pub(super) fn connect(address: &Address) -> Result<Self, DatabaseError> {
        let stream = Stream::connect(address)?;
        let mut this = MariaDb { stream, sequence: 0, prepared: HashMap::new(), packet: Vec::new() };
        this.log_in(address)?;
        // Statements are as strict, and transactions as isolated, as in the other engine.
        this.batch(
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES'; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        )?;
        Ok(this)
    }

    fn log_in(&mut self, address: &Address) -> Result<(), DatabaseError> {
        self.receive()?;
        if self.packet.first() == Some(&0xff) {
            return Err(packet::server_error(&self.packet));
        }
        let greeting = packet::greeting(&self.packet)
            .ok_or_else(|| self.stream.strange("the server's greeting is not of protocol 10"))?;
        let password = address.password()?;
        let prove = |plugin: &str, scramble: &[u8]| match (plugin, &password) {
            ("mysql_native_password", Some(password)) => Some(packet::native_proof(password, scramble)),
            ("mysql_native_password", None) => Some(Vec::new()),
            ("unix_socket" | "auth_socket", _) => Some(Vec::new()),
            _ => None,
        };
        let proof = prove(&greeting.plugin, &greeting.scramble).unwrap_or_default();
        let mut out = CAPABILITIES.to_le_bytes().to_vec();
        out.extend((1u32 << 24).to_le_bytes());
        out.push(UTF8MB4);
        out.extend([0; 23]);
        out.extend(address.user.as_bytes());
        out.push(0);
        out.push(proof.len() as u8);
        out.extend(proof);
        out.extend(address.database.as_bytes());
        out.push(0);
        out.extend(greeting.plugin.as_bytes());
        out.push(0);
        self.send(&out)?;
        loop {
            self.receive()?;
            match self.packet.first() {
                Some(0) => return Ok(()),
                Some(0xff) => return Err(packet::server_error(&self.packet)),
                Some(0xfe) => {
                    let mut body = In(&self.packet[1..]);
                    let plugin = body.text();
                    let scramble = body.0.strip_suffix(&[0]).unwrap_or(body.0).to_vec();
                    let proof = prove(&plugin, &scramble).ok_or_else(|| {
                        self.stream.strange(format!(
                            "the server asks for authentication by {plugin}; unix_socket and mysql_native_password are \
                             supported"
                        ))
                    })?;
                    self.send(&proof)?;
                }
                _ => return Err(self.stream.strange("an answer to the login that is none")),
            }
        }
    }

    /// Reads a packet into `self.packet`.
    fn receive(&mut self) -> Result<(), DatabaseError> {
        self.packet.clear();
        loop {
            let mut head = [0; 4];
            self.stream.receive(&mut head)?;
            let length = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
            self.sequence = head[3].wrapping_add(1);
            let from = self.packet.len();
            self.packet.resize(from + length, 0);
            self.stream.receive(&mut self.packet[from..])?;
            if length < LONGEST_PACKET_BYTES {
                return Ok(());
            }
        }
    }

    fn send(&mut self, body: &[u8]) -> Result<(), DatabaseError> {
        if body.len() >= LONGEST_PACKET_BYTES {
            return Err(DatabaseError::Protocol(format!("a statement of {} bytes is too long", body.len())));
        }
        let mut bytes = Vec::with_capacity(body.len() + 4);
        bytes.extend(&(body.len() as u32).to_le_bytes()[..3]);
        bytes.push(self.sequence);
        bytes.extend(body);
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.send(&bytes)
    }

    fn command(&mut self, kind: u8, body: &[u8]) -> Result<(), DatabaseError> {
        self.sequence = 0;
        self.send(&[&[kind], body].concat())
    }

    fn first(&mut self) -> Result<First, DatabaseError> {
        self.receive()?;
        match self.packet.first() {
            Some(0) => {
                let affected = In(&self.packet[1..]).length().unwrap_or(0);
                Ok(First::Done { affected })
            }
            Some(0xff) => {
                let error = packet::server_error(&self.packet);
                self.stream.broken |= error.is_gone();
                Err(error)
            }
            Some(_) => match In(&self.packet).length() {
                Some(columns) => Ok(First::Columns(columns as usize)),
                None => Err(self.stream.strange("an answer of unknown kind")),
            },
            None => Err(self.stream.strange("an empty answer")),
        }
    }

    /// Reads definitions and the packet that ends them.
    fn definitions(&mut self, count: usize) -> Result<Vec<ColumnKind>, DatabaseError> {
        let mut columns = Vec::with_capacity(count.min(4096));
        for _ in 0..count {
            self.receive()?;
            let column = packet::column(&self.packet);
            columns
                .push(column.ok_or_else(|| self.stream.strange("a definition of a column that ends early"))?);
        }
        if count > 0 {
            self.receive()?;
        }
        Ok(columns)
    }

    fn is_end(&self) -> bool {
        self.packet.first() == Some(&0xfe) && self.packet.len() < 9
    }

    fn prepare(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.command(COM_STMT_PREPARE, sql.as_bytes())?;
        self.first()?;
        let mut body = In(self.packet.get(1..).unwrap_or_default());
        let parts = (body.int(4), body.int(2), body.int(2));
        let (Some(id), Some(columns), Some(parameters)) = parts else {
            return Err(self.stream.strange("an answer to a preparation that ends early"));
        };
        self.definitions(parameters as usize)?;
        self.definitions(columns as usize)?;
        let prepared = Prepared { id: id as u32, parameters: parameters as usize };
        self.prepared.insert(sql.to_owned(), prepared);
        Ok(())
    }
}

impl Connection for MariaDb {
    fn engine(&self) -> Engine {
        Engine::MariaDb
    }

    fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<Answer, DatabaseError> {
        if !self.prepared.contains_key(sql) {
            self.prepare(sql)?;
        }
        let Some(prepared) = self.prepared.get(sql) else {
            return Err(self.stream.strange("a statement that was just prepared is not there"));
        };
        if prepared.parameters != parameters.len() {
            return Err(DatabaseError::Protocol(format!(
                "{} parameters for a statement with {}: {sql}",
                parameters.len(),
                prepared.parameters
            )));
        }
        let mut out = prepared.id.to_le_bytes().to_vec();
        out.push(0);
        out.extend(1u32.to_le_bytes());
        packet::put_parameters(parameters, &mut out);
        self.command(COM_STMT_EXECUTE, &out)?;
        let columns = match self.first()? {
            First::Done { affected } => return Ok(Answer { rows: Vec::new(), affected }),
            First::Columns(count) => self.definitions(count)?,
        };
        let mut rows = Vec::new();
        loop {
            self.receive()?;
            if self.is_end() {
                break;
            }
            if self.packet.first() == Some(&0xff) {
                return Err(packet::server_error(&self.packet));
            }
            let row = packet::row(&self.packet, &columns);
            rows.push(
                row.ok_or_else(|| self.stream.strange(format!("a row that is not as described: {sql}")))?,
            );
        }
        Ok(Answer { affected: rows.len() as u64, rows })
    }

    fn batch(&mut self, sql: &str) -> Result<(), DatabaseError> {
        for statement in sql.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            self.command(COM_QUERY, statement.as_bytes())?;
            if let First::Columns(count) = self.first()? {
                self.definitions(count)?;
                // The packet at hand ends the definitions; rows follow, and another that ends them.
                loop {
                    self.receive()?;
                    if self.is_end() {
                        break;
                    }
                    if self.packet.first() == Some(&0xff) {
                        return Err(packet::server_error(&self.packet));
                    }
                }
            }
        }
        Ok(())
    }

    fn bulk(&mut self, table: &str, columns: &[&str], rows: &[Row]) -> Result<u64, DatabaseError> {
        let head = format!("INSERT INTO {table} ({}) VALUES ", columns.join(", ")).into_bytes();
        let mut sql = head.clone();
        let mut count = 0;
        for (place, row) in rows.iter().enumerate() {
            sql.push(if sql.len() == head.len() { b'(' } else { b',' });
            if sql.ends_with(b",") {
                sql.push(b'(');
            }
            for (place, value) in row.0.iter().enumerate() {
                if place > 0 {
                    sql.push(b',');
                }
                packet::put_literal(value, &mut sql);
            }
            sql.push(b')');
            if sql.len() >= INSERT_BYTES || place + 1 == rows.len() {
                self.command(COM_QUERY, &sql)?;
                if let First::Done { affected } = self.first()? {
                    count += affected;
                }
                sql.truncate(head.len());
            }
        }
        Ok(count)
    }

    fn is_broken(&self) -> bool {
        self.stream.broken
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        if !self.stream.broken {
            let _ = self.command(COM_QUIT, &[]);
        }
    }
}
