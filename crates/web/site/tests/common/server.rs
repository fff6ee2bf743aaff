//! A database server of one test: started from its description in its own folder, ended with the test.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;
use weir_daemons::{Daemon, Group, Scope, Start, User, process, start, stop};
use weir_web_site::database::{Address, Engine, Place};

/// Its name in its folder.
const NAME: &str = "db";

pub struct Server {
    engine: Engine,
    service: Daemon,
    user: User,
    /// Its port on 127.0.0.1.
    pub port: u16,
    pub folder: TempDir,
}

/// A server of an engine; nothing, and why, where it cannot be started.
pub fn server(engine: Engine) -> Option<Server> {
    let service = Daemon::load(engine.name()).unwrap();
    let user = service.users.iter().find_map(|name| User::find(name).ok());
    let is_root = rustix::process::geteuid().is_root();
    let obstacle = match (&user, weir_daemons::version(&service)) {
        _ if !is_root => Some("only root can start a server as another user".to_owned()),
        (_, Err(error)) => Some(error.to_string()),
        (None, _) => Some(format!("none of the users {} exists", service.users.join(", "))),
        _ => None,
    };
    if let Some(obstacle) = obstacle {
        eprintln!("skipped: {}: {obstacle}", engine.name());
        return None;
    }
    let folder = folder();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Server { engine, service, user: user?, port, folder };
    server.start();
    Some(server)
}

/// A temporary folder, in memory if there is room: these tests check answers, and a disk would only slow them.
fn folder() -> TempDir {
    const ROOM_BYTES: u64 = 1 << 30;
    if weir_host::space::of("/dev/shm".as_ref()).is_ok_and(|found| found.free_bytes > ROOM_BYTES) {
        tempfile::tempdir_in("/dev/shm").unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

impl Server {
    fn run(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// Starts it, on the data that are there.
    pub fn start(&self) {
        let wanted = Start {
            name: NAME.to_owned(),
            tier: weir_daemons::Tier::default(),
            scope: Scope::Run,
            run: self.run(),
            root: None,
            data: Some(self.folder.path().join("data")),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: self.port,
            namespace: None,
            group: Group::of_state(self.folder.path()).within(NAME),
            memory_mib: 0,
            set: [("connections".to_owned(), "60".to_owned())].into(),
            own: weir_specs::template::Values::new(),
            log: self.folder.path().join("server.log"),
        };
        start(&self.service, self.folder.path(), &wanted).unwrap();
    }

    /// Kills it, as a crash would.
    pub fn kill(&self) {
        let found = process::find(self.folder.path(), NAME).unwrap().unwrap();
        let identity = found.identity.unwrap();
        assert!(identity.is_alive());
        // SAFETY: the process is our child and has not been waited for, so the PID is still its own.
        unsafe { libc::kill(identity.pid as i32, libc::SIGKILL) };
        stop(self.folder.path(), NAME).unwrap();
    }

    /// The address of a database of this server.
    pub fn address(&self, database: &str) -> Address {
        let (socket, user) = match self.engine {
            Engine::PostgreSql => (format!(".s.PGSQL.{}", self.port), self.user.name.as_str()),
            Engine::MariaDb => ("mariadb.sock".to_owned(), "root"),
        };
        Address {
            engine: self.engine,
            place: Place::Socket(self.run().join(socket)),
            user: user.to_owned(),
            database: database.to_owned(),
            password_file: None,
        }
    }

    /// Creates a database.
    pub fn create_database(&self, database: &str) -> Address {
        let first = match self.engine {
            Engine::PostgreSql => "postgres",
            Engine::MariaDb => "mysql",
        };
        let mut connection = self.address(first).connect().unwrap();
        connection.batch(&format!("CREATE DATABASE {database}")).unwrap();
        self.address(database)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = stop(self.folder.path(), NAME) {
            eprintln!("{error}");
        }
    }
}
