//! Database addresses: `ENGINE://USER@HOST:PORT/DATABASE?password_file=FILE`, or
//! `ENGINE:///DATABASE?user=USER&socket=PATH`.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{DatabaseError, Engine};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A Unix socket, or the folder of PostgreSQL's.
    Socket(PathBuf),
    /// A host and a port of TCP.
    Host(String, u16),
}

/// A database and its user. A password is read only from a file that no other user can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Its engine.
    pub engine: Engine,
    /// Where it listens.
    pub place: Place,
    /// The database's user.
    pub user: String,
    /// The database.
    pub database: String,
    /// The file that holds the password, mode 0600. Without it the server must authenticate the user by the socket.
    pub password_file: Option<PathBuf>,
}

impl FromStr for Address {
    type Err = DatabaseError;

    fn from_str(text: &str) -> Result<Self, DatabaseError> {
        let wrong = |what: &str| {
            DatabaseError::Address(format!(
                "`{}` {what}; it looks like postgresql:///tpcw?user=weir&socket=/run/weir/postgresql or \
                 mariadb://weir@127.0.0.1:3306/tpcw?password_file=FILE",
                without_password(text)
            ))
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("has no `://`"))?;
        let engine = match scheme {
            "postgresql" | "postgres" => Engine::PostgreSql,
            "mariadb" | "mysql" => Engine::MariaDb,
            _ => return Err(wrong("has an unknown engine (known: postgresql, mariadb)")),
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = path.split_once('/').ok_or_else(|| wrong("names no database"))?;
        if database.is_empty() || !database.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(wrong("needs a database name of letters, digits and `_`"));
        }
        let (user, host) = match authority.split_once('@') {
            Some((user, _)) if user.contains(':') => {
                return Err(wrong(
                    "has a password, which other users could read: put it into password_file=FILE, mode 0600",
                ));
            }
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let (mut user, mut socket, mut password_file) = (user.map(str::to_owned), None, None);
        for (key, value) in crate::http::form::pairs(query) {
            match key.as_str() {
                "user" => user = Some(value),
                "socket" => socket = Some(PathBuf::from(value)),
                "password_file" => password_file = Some(PathBuf::from(value)),
                other => {
                    return Err(wrong(&format!(
                        "has the unknown option `{other}` (known: user, socket, password_file)"
                    )));
                }
            }
        }
        let place = match (socket, host) {
            (Some(socket), "") => Place::Socket(socket),
            (Some(_), _) => return Err(wrong("has both a host and a socket")),
            (None, "") => return Err(wrong("has neither a host nor a socket")),
            (None, host) => {
                let standard = if engine == Engine::PostgreSql { 5432 } else { 3306 };
                match host.rsplit_once(':') {
                    None => Place::Host(host.to_owned(), standard),
                    Some((host, port)) => {
                        let port =
                            port.parse().map_err(|_| wrong("has a port that is not a number up to 65535"))?;
                        Place::Host(host.to_owned(), port)
                    }
                }
            }
        };
        let user = user.filter(|user| !user.is_empty()).unwrap_or_else(|| "weir".to_owned());
        Ok(Address { engine, place, user, database: database.to_owned(), password_file })
    }
}

/// The text for messages, without a possible password.
fn without_password(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, rest)), Some((_, host))) => {
            let user = rest.split([':', '@']).next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        _ => text.to_owned(),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.engine.name();
        match &self.place {
            Place::Socket(path) => {
                write!(f, "{engine}:///{}?user={}&socket={}", self.database, self.user, path.display())
            }
            Place::Host(host, port) => write!(f, "{engine}://{}@{host}:{port}/{}", self.user, self.database),
        }
    }
}

impl Address {
    /// The password, where there is a file of it.
    ///
    /// # Errors
    /// The file cannot be read, is empty, or others may read it.
    pub(super) fn password(&self) -> Result<Option<String>, DatabaseError> {
        self.password_file.as_deref().map(read_password).transpose()
    }
}

fn read_password(path: &Path) -> Result<String, DatabaseError> {
    let wrong = |reason: String| DatabaseError::Password { path: path.display().to_string(), reason };
    let metadata = std::fs::metadata(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if metadata.mode() & 0o077 != 0 {
        return Err(wrong(format!(
            "other users can read it (mode {:03o}): chmod 600",
            metadata.mode() & 0o777
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(wrong("its first line is empty; it must be the password".into())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn addresses_of_both_kinds() {
        let address: Address = "postgresql:///tpcw?user=me&socket=/run/a%20b".parse().unwrap();
        assert_eq!(address.place, Place::Socket("/run/a b".into()));
        assert_eq!((address.user.as_str(), address.database.as_str()), ("me", "tpcw"));
        let address: Address = "mariadb://me@10.0.0.2/rubis?password_file=/x".parse().unwrap();
        assert_eq!(address.place, Place::Host("10.0.0.2".into(), 3306));
        assert_eq!(address.to_string(), "mariadb://me@10.0.0.2:3306/rubis");
    }

    #[test]
    fn a_password_in_an_address_is_refused_and_not_repeated() {
        let error = "postgresql://me:secret@host/tpcw".parse::<Address>().unwrap_err().to_string();
        assert!(error.contains("password_file") && !error.contains("secret"), "{error}");
        for text in [
            "",
            "x",
            "oracle://h/d",
            "postgresql://h",
            "postgresql:///d",
            "mariadb://h:99999/d",
            "mariadb://h/d?x=1",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_password_that_others_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "secret\n").unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_password(file.path()).unwrap(), "secret");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read_password(file.path()).unwrap_err().to_string().contains("chmod 600"));
    }
}
