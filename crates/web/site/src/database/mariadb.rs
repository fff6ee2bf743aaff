//! The protocol of MariaDB and MySQL: prepared statements with binary values.
//!
//! Written here because the crate `mysql` (28) refuses logins by `unix_socket`, which the daemon `mariadb` of a study uses.

use std::collections::HashMap;

use super::packet::{self, ColumnKind, In};
use super::stream::Stream;
use super::{Address, Answer, Connection, DatabaseError, Engine, Place, Row, Value};

const COM_QUIT: u8 = 1;
const COM_QUERY: u8 = 3;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;

/// Long password, found rows, long flag, connect with database, protocol 4.1, transactions, secure connection, plugins.
const CAPABILITIES: u32 = 0x1 | 0x2 | 0x4 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const UTF8MB4: u8 = 45;
/// Result of the proof in `caching_sha2_password`.
const SHA2_PROOF_ACCEPTED: u8 = 3;
const SHA2_PASSWORD_WANTED: u8 = 4;
/// A packet of this size is continued by the next.
const LONGEST_PACKET_BYTES: usize = 0xff_ffff;
/// Maximum size of one `INSERT` statement; servers accept 16 MiB by default.
const INSERT_BYTES: usize = 1 << 20;

/// Ends an INSERT that returns the id of its row, from the column that follows.
const RETURNING_ID: &str = " RETURNING ";

struct Prepared {
    id: u32,
    parameters: usize,
}

/// A connection to MariaDB or MySQL.
pub(super) struct MariaDb {
    stream: Stream,
    /// MySQL has no `INSERT ... RETURNING`.
    lacks_returning: bool,
    sequence: u8,
    prepared: HashMap<String, Prepared>,
    packet: Vec<u8>,
}

/// First packet of an answer.
enum First {
    Done { affected: u64, last_id: u64 },
    Columns(usize),
}

/// What proves the password to an authentication plugin; `None` if the plugin is unknown.
fn prove(plugin: &str, password: Option<&str>, scramble: &[u8]) -> Option<Vec<u8>> {
    match (plugin, password) {
        ("unix_socket" | "auth_socket" | "mysql_native_password" | "caching_sha2_password", None) => {
            Some(Vec::new())
        }
        ("unix_socket" | "auth_socket", Some(_)) => Some(Vec::new()),
        ("mysql_native_password", Some(password)) => Some(packet::native_proof(password, scramble)),
        ("caching_sha2_password", Some(password)) => Some(packet::sha2_proof(password, scramble)),
        _ => None,
    }
}

impl MariaDb {
    pub(super) fn connect(address: &Address) -> Result<Self, DatabaseError> {
        let stream = Stream::connect(address)?;
        let mut this = MariaDb {
            stream,
            lacks_returning: false,
            sequence: 0,
            prepared: HashMap::new(),
            packet: Vec::new(),
        };
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
            .ok_or_else(|| self.stream.unexpected("the server's greeting is not of protocol 10"))?;
        self.lacks_returning = !greeting.version.contains("MariaDB");
        let password = address.password()?;
        let mut plugin = greeting.plugin;
        let proof = prove(&plugin, password.as_deref(), &greeting.scramble).unwrap_or_default();
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
        out.extend(plugin.as_bytes());
        out.push(0);
        self.send(&out)?;
        loop {
            self.receive()?;
            match (self.packet.first(), self.packet.get(1)) {
                (Some(0), _) => return Ok(()),
                (Some(0xff), _) => return Err(packet::server_error(&self.packet)),
                (Some(0xfe), _) => {
                    let mut body = In(&self.packet[1..]);
                    plugin = body.text();
                    let scramble = body.0.strip_suffix(&[0]).unwrap_or(body.0).to_vec();
                    let proof = prove(&plugin, password.as_deref(), &scramble).ok_or_else(|| {
                        self.stream.unexpected(format!(
                            "the server asks for authentication by {plugin}, expected unix_socket, mysql_native_password or \
                             caching_sha2_password: change the user's authentication"
                        ))
                    })?;
                    self.send(&proof)?;
                }
                (Some(1), Some(&SHA2_PROOF_ACCEPTED)) => {}
                (Some(1), Some(&SHA2_PASSWORD_WANTED)) => match (&address.place, &password) {
                    // A Unix socket cannot be read by others.
                    (Place::Socket(_), Some(password)) => self.send(&[password.as_bytes(), &[0]].concat())?,
                    _ => {
                        return Err(self.stream.unexpected(format!(
                            "the server has not cached the password of {} and asks for it in full, which is sent over a Unix \
                             socket only: log in once with socket=PATH, then this address works until the server restarts",
                            address.user
                        )));
                    }
                },
                _ => return Err(self.stream.unexpected("an unknown answer to the login")),
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
                let mut body = In(&self.packet[1..]);
                let (affected, last_id) = (body.length().unwrap_or(0), body.length().unwrap_or(0));
                Ok(First::Done { affected, last_id })
            }
            Some(0xff) => {
                let error = packet::server_error(&self.packet);
                self.stream.broken |= error.is_gone();
                Err(error)
            }
            Some(_) => match In(&self.packet).length() {
                Some(columns) => Ok(First::Columns(columns as usize)),
                None => Err(self.stream.unexpected("an answer of unknown kind")),
            },
            None => Err(self.stream.unexpected("an empty answer")),
        }
    }

    /// Reads definitions and the packet that ends them.
    fn definitions(&mut self, count: usize) -> Result<Vec<ColumnKind>, DatabaseError> {
        let mut columns = Vec::with_capacity(count.min(4096));
        for _ in 0..count {
            self.receive()?;
            let column = packet::column(&self.packet);
            columns.push(
                column.ok_or_else(|| self.stream.unexpected("a definition of a column that ends early"))?,
            );
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
            return Err(self.stream.unexpected("an answer to a preparation that ends early"));
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
        let (sql, returns_id) = match sql.rsplit_once(RETURNING_ID) {
            Some((insert, _)) if self.lacks_returning => (insert, true),
            _ => (sql, false),
        };
        if !self.prepared.contains_key(sql) {
            self.prepare(sql)?;
        }
        let Some(prepared) = self.prepared.get(sql) else {
            return Err(self.stream.unexpected("a statement that was just prepared is not there"));
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
            First::Done { affected, last_id } => {
                let id = returns_id.then(|| Row(vec![Value::Int(last_id as i64)]));
                return Ok(Answer { rows: id.into_iter().collect(), affected });
            }
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
            rows.push(row.ok_or_else(|| {
                self.stream.unexpected(format!("a row that does not match its column definitions: {sql}"))
            })?);
        }
        Ok(Answer { affected: rows.len() as u64, rows })
    }

    fn batch(&mut self, sql: &str) -> Result<(), DatabaseError> {
        for statement in sql.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            self.command(COM_QUERY, statement.as_bytes())?;
            if let First::Columns(count) = self.first()? {
                self.definitions(count)?;
                // The current packet ends the definitions; rows follow, then a packet that ends them.
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
                if let First::Done { affected, .. } = self.first()? {
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    const SCRAMBLE: &[u8; 20] = b"\x0a/JoKI\"0XLrJ%\x0d\x03PR\x02\x17\x15";

    fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
        [&[body.len() as u8, 0, 0, sequence], body].concat()
    }

    /// The greeting of a MySQL server, protocol 10, as MySQL 8.0 sends it.
    fn greeting() -> Vec<u8> {
        let parts: [&[u8]; 9] = [
            b"\x0a8.0.36\0",
            &[9, 0, 0, 0],
            &SCRAMBLE[..8],
            &[0],
            &[0xff, 0xff, 0xff, 2, 0, 0xff, 0xdf],
            &[21],
            &[0; 10],
            &SCRAMBLE[8..],
            b"\0caching_sha2_password\0",
        ];
        packet(0, &parts.concat())
    }

    fn read_packet(from: &mut impl Read) -> Vec<u8> {
        let mut head = [0; 4];
        from.read_exact(&mut head).unwrap();
        let mut body = vec![0; usize::from(head[0]) | usize::from(head[1]) << 8];
        from.read_exact(&mut body).unwrap();
        body
    }

    /// A server that imitates MySQL 8: it requests full authentication, then answers statements.
    fn mysql8(mut client: impl Read + Write) {
        const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
        client.write_all(&greeting()).unwrap();
        let login = read_packet(&mut client);
        let proof = packet::sha2_proof("secret", SCRAMBLE);
        assert!(login.windows(proof.len()).any(|found| found == proof), "{login:?}");
        client.write_all(&packet(2, &[1, SHA2_PASSWORD_WANTED])).unwrap();
        assert_eq!(read_packet(&mut client), b"secret\0");
        client.write_all(&packet(4, &OK)).unwrap();
        for _ in 0..2 {
            assert_eq!(read_packet(&mut client)[0], COM_QUERY);
            client.write_all(&packet(1, &OK)).unwrap();
        }
        let prepare = read_packet(&mut client);
        assert_eq!(prepare, [&[COM_STMT_PREPARE], b"INSERT INTO t (a) VALUES (1)".as_slice()].concat());
        client.write_all(&packet(1, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])).unwrap();
        assert_eq!(read_packet(&mut client)[0], COM_STMT_EXECUTE);
        client.write_all(&packet(1, &[0, 1, 42, 2, 0, 0, 0])).unwrap();
        assert_eq!(read_packet(&mut client), [COM_QUIT]);
    }

    #[test]
    fn mysql_8_gets_the_password_over_a_socket_and_gives_the_id_without_returning() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, password) = (folder.path().join("mysql.sock"), folder.path().join("password"));
        std::fs::write(&password, "secret\n").unwrap();
        std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o600)).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let server = thread::spawn(move || mysql8(listener.accept().unwrap().0));
        let address =
            format!("mysql:///tpcw?user=me&socket={}&password_file={}", socket.display(), password.display());
        let mut connection = MariaDb::connect(&address.parse().unwrap()).unwrap();
        let answer = connection.run("INSERT INTO t (a) VALUES (1) RETURNING id", &[]).unwrap();
        assert_eq!((answer.int().unwrap(), answer.affected), (42, 1));
        drop(connection);
        server.join().unwrap();
    }
}
