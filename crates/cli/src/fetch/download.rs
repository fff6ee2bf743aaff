//! Download of one file: resumed after an interruption, verified, and renamed when it is complete.
//!
//! Received bytes are kept in `FILE.partial`, and the server's version (`ETag` or `Last-Modified`) in `FILE.partial.version`. If
//! the version has changed, the download starts again: a file never has parts of two versions.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use ureq::http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED};
use ureq::http::{HeaderMap, HeaderName, StatusCode};

const CHUNK_BYTES: usize = 128 << 10;
const CONNECT: Duration = Duration::from_secs(30);
/// A server that keeps silent for longer does not want to.
const ANSWER: Duration = Duration::from_secs(60);
/// Of one try; the next goes on where it ended, so that this bounds a stalled connection and not a long file.
const BODY: Duration = Duration::from_secs(1800);

/// What to download.
pub struct Download<'a> {
    /// From where.
    pub url: &'a str,
    /// SHA-256 in hexadecimal, where it is known.
    pub sha256: Option<&'a str>,
    /// Its size, where it is known.
    pub size_bytes: Option<u64>,
    /// To where.
    pub file: &'a Path,
}

/// What came of it.
pub struct Done {
    /// Nothing had to be downloaded.
    pub was_there: bool,
    /// Size of the file.
    pub size_bytes: u64,
}

/// Is told how it goes.
pub trait Progress {
    /// A try begins, after this many bytes of an earlier one.
    fn begin(&mut self, from_bytes: u64, total_bytes: Option<u64>);
    /// This many bytes are there.
    fn at(&mut self, bytes: u64, total_bytes: Option<u64>);
    /// The connection broke; another try follows.
    fn broken(&mut self, bytes: u64, reason: &str);
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No answer from the server.
    #[error("{host} cannot be reached from here: {reason}")]
    Unreachable {
        /// The server.
        host: String,
        /// Error of the network.
        reason: String,
    },
    /// The server answers, but not with the file.
    #[error("{url} answers {status}: it may have moved; see the trace's home page (weir trace list --json)")]
    Refused {
        /// The address.
        url: String,
        /// The answer.
        status: StatusCode,
    },
    /// The download was interrupted again before any byte came.
    #[error("broke off after {bytes} bytes ({reason}); give the same command to go on from there")]
    Broken {
        /// Received bytes.
        bytes: u64,
        /// Error of the network.
        reason: String,
    },
    /// Complete, but size or checksum is wrong.
    #[error("{}: {what} is {found}, not {expected}: {consequence}", file.display())]
    Wrong {
        /// The file.
        file: PathBuf,
        /// The wrong property.
        what: &'static str,
        /// Found value.
        found: String,
        /// Expected value.
        expected: String,
        /// Action taken and remedy.
        consequence: &'static str,
    },
    /// Another process downloads the same file.
    #[error("{}: another process is downloading it", file.display())]
    Busy {
        /// The partial file.
        file: PathBuf,
    },
    /// The disk refused.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// How a try ended that was no failure of ours.
enum Try {
    Whole,
    BrokenOff(String),
}

/// The file under way.
struct Partial {
    path: PathBuf,
    file: File,
    bytes: u64,
    hash: Sha256,
}

impl Download<'_> {
    /// Downloads it.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(&self, progress: &mut dyn Progress) -> Result<Done, Failure> {
        if self.file.exists() {
            return self.there_already();
        }
        let mut partial = Partial::open(self.beside(".partial"))?;
        if let Err(failure) = self.fill(&mut partial, progress) {
            // Nothing came, so there is nothing to go on from. Its absence would be no reason to fail differently.
            if partial.bytes == 0 {
                let _ = std::fs::remove_file(&partial.path);
            }
            return Err(failure);
        }
        self.check(partial)
    }

    /// Asks until all is there.
    fn fill(&self, partial: &mut Partial, progress: &mut dyn Progress) -> Result<(), Failure> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(ANSWER))
            .timeout_recv_body(Some(BODY))
            .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        // As long as every try gets further than any before it, the next is worth while.
        let mut furthest = partial.bytes;
        loop {
            match self.attempt(&agent, partial, progress)? {
                Try::Whole => return Ok(()),
                Try::BrokenOff(reason) if partial.bytes <= furthest => {
                    return Err(Failure::Broken { bytes: partial.bytes, reason });
                }
                Try::BrokenOff(reason) => {
                    furthest = partial.bytes;
                    progress.broken(partial.bytes, &reason);
                }
            }
        }
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.file.as_os_str().to_owned();
        name.push(ending);
        name.into()
    }

    /// One connection.
    fn attempt(
        &self,
        agent: &ureq::Agent,
        partial: &mut Partial,
        progress: &mut dyn Progress,
    ) -> Result<Try, Failure> {
        let version_file = self.beside(".partial.version");
        let mut request = agent.get(self.url);
        if partial.bytes > 0 {
            match std::fs::read_to_string(&version_file) {
                Ok(version) => {
                    request = request
                        .header("Range", format!("bytes={}-", partial.bytes))
                        .header("If-Range", version.trim());
                }
                // With a checksum a wrong piece is found out; without, nothing says that it is the same file.
                Err(_) if self.sha256.is_some() => {
                    request = request.header("Range", format!("bytes={}-", partial.bytes));
                }
                Err(_) => partial.restart()?,
            }
        }
        let mut response = match request.call() {
            Ok(response) => response,
            Err(error) => {
                let host = self.url.split('/').nth(2).unwrap_or(self.url).to_owned();
                return Err(Failure::Unreachable { host, reason: error.to_string() });
            }
        };
        let headers = response.headers();
        match response.status() {
            StatusCode::OK => partial.restart()?,
            StatusCode::PARTIAL_CONTENT if range_start(headers) == Some(partial.bytes) => {}
            // No byte follows: the file is complete, or it is another file.
            StatusCode::RANGE_NOT_SATISFIABLE if range_total(headers) == Some(partial.bytes) => {
                return Ok(Try::Whole);
            }
            StatusCode::RANGE_NOT_SATISFIABLE | StatusCode::PARTIAL_CONTENT if partial.bytes > 0 => {
                partial.restart()?;
                return self.attempt(agent, partial, progress);
            }
            status => return Err(Failure::Refused { url: self.url.to_owned(), status }),
        }
        let io = |file: &Path| {
            let file = file.to_owned();
            move |source| Failure::Io { file, source }
        };
        match text(headers, ETAG)
            .filter(|tag| !tag.starts_with("W/"))
            .or_else(|| text(headers, LAST_MODIFIED))
        {
            Some(version) => std::fs::write(&version_file, version).map_err(io(&version_file))?,
            None => {
                let _ = std::fs::remove_file(&version_file);
            }
        }
        let rest = text(headers, CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        let total = rest
            .map(|rest| partial.bytes.saturating_add(rest))
            .or(self.size_bytes.filter(|size| size_is_exact(*size)));
        progress.begin(partial.bytes, total);
        let mut body = response.body_mut().as_reader();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match body.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => {
                    partial.append(&chunk[..count])?;
                    progress.at(partial.bytes, total);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Ok(Try::BrokenOff(error.to_string())),
            }
        }
        match total {
            Some(total) if partial.bytes < total => Ok(Try::BrokenOff("the connection was closed".into())),
            _ => Ok(Try::Whole),
        }
    }

    /// Verifies the file and renames it.
    fn check(&self, partial: Partial) -> Result<Done, Failure> {
        let Partial { path, file, bytes, hash } = partial;
        let io = |source| Failure::Io { file: path.clone(), source };
        let found = hex(hash);
        let wrong = match (self.sha256, self.size_bytes) {
            (Some(sum), _) if sum != found => Some(("sha256", found, sum.to_owned())),
            (None, Some(size)) if size != bytes && size_is_exact(size) => {
                Some(("size", bytes.to_string(), size.to_string()))
            }
            _ => None,
        };
        let _ = std::fs::remove_file(self.beside(".partial.version"));
        if let Some((what, found, expected)) = wrong {
            std::fs::remove_file(&path).map_err(io)?;
            return Err(Failure::Wrong {
                file: self.file.to_owned(),
                what,
                found,
                expected,
                consequence: "removed; the file at its address has changed, or was damaged on the way",
            });
        }
        file.sync_all().map_err(io)?;
        std::fs::rename(&path, self.file).map_err(io)?;
        Ok(Done { was_there: false, size_bytes: bytes })
    }

    /// A file that has its name already is only checked.
    fn there_already(&self) -> Result<Done, Failure> {
        let io = |source| Failure::Io { file: self.file.to_owned(), source };
        let mut file = File::open(self.file).map_err(io)?;
        let (mut bytes, mut hash) = (0, Sha256::new());
        digest(&mut file, &mut bytes, &mut hash).map_err(io)?;
        let found = hex(hash);
        match self.sha256 {
            Some(sum) if sum != found => Err(Failure::Wrong {
                file: self.file.to_owned(),
                what: "sha256",
                found,
                expected: sum.to_owned(),
                consequence: "left as it is; move it away, or give another folder with --to",
            }),
            _ => Ok(Done { was_there: true, size_bytes: bytes }),
        }
    }
}

impl Partial {
    /// What an earlier try has left, or nothing; locked.
    fn open(path: PathBuf) -> Result<Self, Failure> {
        let io = |source| Failure::Io { file: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(Failure::Busy { file: path }),
            Err(std::fs::TryLockError::Error(source)) => return Err(Failure::Io { file: path, source }),
        }
        let (mut bytes, mut hash) = (0, Sha256::new());
        digest(&mut file, &mut bytes, &mut hash).map_err(io)?;
        Ok(Partial { path, file, bytes, hash })
    }

    fn restart(&mut self) -> Result<(), Failure> {
        let io = |source| Failure::Io { file: self.path.clone(), source };
        self.file.set_len(0).map_err(io)?;
        self.file.seek(SeekFrom::Start(0)).map_err(io)?;
        self.bytes = 0;
        self.hash = Sha256::new();
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|source| Failure::Io { file: self.path.clone(), source })?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// Reads to the end; the file's position is there afterwards.
fn digest(file: &mut File, bytes: &mut u64, hash: &mut Sha256) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(()),
            count => {
                hash.update(&chunk[..count]);
                *bytes += count as u64;
            }
        }
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A list states sizes of large files in round numbers.
fn size_is_exact(bytes: u64) -> bool {
    !bytes.is_multiple_of(1_000_000)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// First byte of `Content-Range: bytes FIRST-LAST/TOTAL`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    text(headers, CONTENT_RANGE)?.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

/// Total of `Content-Range: bytes FIRST-LAST/TOTAL` or `bytes */TOTAL`.
fn range_total(headers: &HeaderMap) -> Option<u64> {
    text(headers, CONTENT_RANGE)?.rsplit('/').next()?.parse().ok()
}
