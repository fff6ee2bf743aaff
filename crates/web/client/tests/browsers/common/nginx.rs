//! nginx on a free port of this machine, with a configuration of its own, ended with the value.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A running nginx.
pub struct Nginx {
    child: Child,
    folder: TempDir,
    pub port: u16,
}

impl Nginx {
    /// Serves `root`; `None`, with the reason printed, where there is no nginx. `workers` 0: one process in all.
    pub fn start(root: &Path, workers: usize, log: bool) -> io::Result<Option<Self>> {
        let Some(program) =
            ["/usr/sbin/nginx", "/usr/bin/nginx"].iter().map(Path::new).find(|path| path.exists())
        else {
            eprintln!(
                "skipped: nginx is not installed (apt-get install --no-install-recommends nginx-light)"
            );
            return Ok(None);
        };
        let folder = tempfile::tempdir()?;
        // The workers run as user nobody.
        for open in [folder.path(), root] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o755))?;
        }
        for attempt in 0.. {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let config = folder.path().join("nginx.conf");
            File::create(&config)?.write_all(text(folder.path(), root, port, workers, log).as_bytes())?;
            let mut command = Command::new(program);
            command.args(["-c".as_ref(), config.as_os_str(), "-e".as_ref(), "stderr".as_ref()]);
            command.stdout(Stdio::null()).stderr(File::create(folder.path().join("error.log"))?);
            // SAFETY: prctl may be called between fork and exec, and touches only the new process: it ends with this one.
            unsafe {
                command.pre_exec(|| {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                    Ok(())
                });
            }
            let mut child = command.spawn()?;
            let until = Instant::now() + Duration::from_secs(10);
            while Instant::now() < until && child.try_wait()?.is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Ok(Some(Nginx { child, folder, port }));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            end(&mut child);
            if attempt == 3 {
                let said = fs::read_to_string(folder.path().join("error.log"))?;
                return Err(io::Error::other(format!("nginx does not start: {said}")));
            }
        }
        unreachable!("the loop returns")
    }

    /// Lines of the access log: status, bytes of the body, path.
    pub fn access_log(&self) -> PathBuf {
        self.folder.path().join("access.log")
    }

    /// Ends nginx to complete its log.
    pub fn stop(&mut self) {
        end(&mut self.child);
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// SIGTERM to the master, which ends its workers.
fn end(child: &mut Child) {
    if let Ok(None) = child.try_wait() {
        // SAFETY: a child that was not waited for keeps its number.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    }
    let _ = child.wait();
}

fn text(folder: &Path, root: &Path, port: u16, workers: usize, log: bool) -> String {
    let (folder, root) = (folder.display(), root.display());
    let processes = match workers {
        0 => "master_process off;".to_owned(),
        count => format!("worker_processes {count};"),
    };
    let access = if log { format!("{folder}/access.log short") } else { "off".to_owned() };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {folder}/{kind};\n"))
        .concat();
    format!(
        "daemon off;\n{processes}\npid {folder}/nginx.pid;\nevents {{ worker_connections 8192; }}\nhttp {{\n{temporary}  \
         log_format short '$status $body_bytes_sent $uri';\n  access_log {access};\n  sendfile on;\n  tcp_nopush on;\n  \
         keepalive_requests 1000000000;\n  keepalive_timeout 600s;\n  server {{\n    \
         listen 127.0.0.1:{port} backlog=8192;\n    root {root};\n  }}\n}}\n"
    )
}
