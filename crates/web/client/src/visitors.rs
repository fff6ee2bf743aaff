//! Clients of a static site: documents drawn by a workload's popularity.

use std::ops::ControlFlow;
use std::sync::Arc;

use weir_workload::{FileSet, Popularities, Sizes, Stream, StreamOptions, Visitor, Workload};

use crate::Error;
use crate::class::{Class, Load};
use crate::client::{Answer, Ask, Client, Expect, Source};
use crate::documents::{Documents, Folders};
use crate::server::Server;

/// Shortest pause of a client after a request without a connection or without a complete response.
const RETRY_NS: i64 = 100_000_000;

/// Closed or open loop over the documents of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Visit {
    /// A closed loop: each client sends its next request after the response and its think time.
    Closed {
        /// Clients, each with a connection.
        clients: u32,
        /// Mean of the exponential think time, ns; 0 for none.
        think_ns: f64,
    },
    /// An open loop: at the times of the workload's arrivals.
    Open {
        /// Clients, each with the workload's arrivals.
        clients: u32,
        /// Most connections.
        connections: usize,
    },
}

/// The clients of a static site.
#[derive(Debug, Clone)]
pub struct Visitors {
    /// Names the rows; documents and draws depend on it.
    pub class: String,
    /// Seed of the run, as of the documents.
    pub seed: u64,
    /// Where the documents lie in the server's folder.
    pub folders: Option<Folders>,
    /// Closed or open loop.
    pub visit: Visit,
    /// End of the warm-up: requests intended before this are not counted, ns.
    pub warmup_ns: i64,
    /// End of the run: requests intended at or after this are not sent, ns.
    pub duration_ns: i64,
    /// Folder that a recording's path is relative to.
    pub folder: std::path::PathBuf,
    /// Number of threads that share the requests of an open loop.
    pub threads: usize,
}

impl Visitors {
    /// The class that requests the documents of `workload` from `server`.
    ///
    /// # Errors
    /// The workload does not read whole files, or has no times for an open loop.
    pub fn class(&self, workload: &Workload, server: Server) -> Result<Class, Error> {
        let documents = Arc::new(self.documents(workload)?);
        let label: Arc<str> = "document".into();
        let load = match self.visit {
            Visit::Closed { clients, think_ns } => {
                let popularities = Popularities::new(&workload.files, &self.class, self.seed);
                let client = |number| -> Box<dyn Client> {
                    Box::new(Closed {
                        visitor: popularities.visitor(&self.class, self.seed, number, clients),
                        think_ns,
                        documents: Arc::clone(&documents),
                        label: Arc::clone(&label),
                    })
                };
                Load::Closed((0..clients).map(client).collect())
            }
            Visit::Open { clients, connections } => {
                let parts = self.threads.clamp(1, clients.max(1) as usize) as u32;
                let source = |part| -> Result<Box<dyn Source>, Error> {
                    let stream = self.stream(workload, clients)?;
                    let (documents, label) = (Arc::clone(&documents), Arc::clone(&label));
                    Ok(Box::new(Open { stream, part, parts, documents, label }))
                };
                Load::Open { sources: (0..parts).map(source).collect::<Result<_, _>>()?, connections }
            }
        };
        Ok(Class { name: self.class.as_str().into(), server, documents: Some(documents), load })
    }

    /// The documents of `workload` under this class and seed.
    ///
    /// # Errors
    /// The workload does not read whole files.
    pub fn documents(&self, workload: &Workload) -> Result<Documents, Error> {
        let refused = |reason: &str| {
            Err(Error::Workload { workload: workload.name.clone(), reason: reason.to_owned() })
        };
        if workload.sizes != Sizes::WholeFile {
            return refused(
                "a web server sends whole documents; use one with `sizes: whole_file`, \
                            such as zipf-class0",
            );
        }
        if workload.may_write() {
            return refused("documents are only read; give one with `read_share: 1`");
        }
        let files = FileSet::new(&workload.files, &self.class, self.seed);
        let folders = self.folders.unwrap_or_else(|| Folders::of(files.sizes_bytes().len()));
        Ok(Documents::new(files, &self.class, self.seed, folders))
    }

    fn stream(&self, workload: &Workload, clients: u32) -> Result<Stream, Error> {
        // A large file is read from a disk block by block, and from a web server as one document.
        let workload = Workload { block_bytes: None, ..workload.clone() };
        let options = StreamOptions {
            class: self.class.clone(),
            clients,
            seed: self.seed,
            duration_ns: self.duration_ns,
            warmup_ns: self.warmup_ns,
            folder: self.folder.clone(),
        };
        let name = workload.name.clone();
        Stream::new(&workload, options).map_err(|reason| Error::Workload { workload: name, reason })
    }
}

/// A client of a closed loop.
struct Closed {
    visitor: Visitor,
    think_ns: f64,
    documents: Arc<Documents>,
    label: Arc<str>,
}

impl Client for Closed {
    fn next(&mut self, answered: Option<&Answer<'_>>, now_ns: i64, ask: &mut Ask) -> ControlFlow<()> {
        let mut pause_ns = self.visitor.think_ns(self.think_ns);
        // Without a pause, a server that is down would get requests as fast as it refuses them.
        if answered.is_some_and(|answer| answer.error != 0 && answer.status == 0) {
            pause_ns = pause_ns.max(RETRY_NS);
        }
        ask.at_ns = now_ns.saturating_add(pause_ns);
        let number = self.visitor.next_file();
        self.documents.append_path(number, &mut ask.path);
        ask.expect = Expect::Document(number);
        ask.label = Some(Arc::clone(&self.label));
        ControlFlow::Continue(())
    }
}

/// Requests of an open loop: those of every `parts`-th client.
struct Open {
    stream: Stream,
    part: u32,
    parts: u32,
    documents: Arc<Documents>,
    label: Arc<str>,
}

impl Source for Open {
    fn next(&mut self, ask: &mut Ask) -> ControlFlow<()> {
        let (part, parts) = (self.part, self.parts);
        let Some(request) = self.stream.find(|request| request.client % parts == part) else {
            return ControlFlow::Break(());
        };
        // A stream of whole files names the file in every request.
        let number = request.file.unwrap_or(0);
        ask.at_ns = request.intended_ns;
        ask.client = request.client;
        ask.deadline_ns = request.deadline_ns;
        self.documents.append_path(number, &mut ask.path);
        ask.expect = Expect::Document(number);
        ask.label = Some(Arc::clone(&self.label));
        ControlFlow::Continue(())
    }
}
