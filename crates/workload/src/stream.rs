//! Timed requests of a class, merged over its clients.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use weir_records::Request;
use weir_vocabulary::Op;

use crate::client::{ClassRecipe, Client};
use crate::fileset::{FileSet, Picker};
use crate::frames::FrameSupply;
use crate::limits::Demand;
use crate::recording::{self, Tape};
use crate::spec::{Sizes, Workload};

/// Options of a stream.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// Name of the class, for rows and seeds.
    pub class: String,
    /// Number of clients, each following the recipe.
    pub clients: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Requests intended at or after this are left out.
    pub duration_ns: i64,
    /// Requests intended before this are marked as warm-up.
    pub warmup_ns: i64,
    /// Folder that the path of a recording is relative to.
    pub folder: PathBuf,
}

/// An open-loop workload as requests in order of intended time.
///
/// The same workload and options give the same requests. Memory is bounded by the number of clients.
pub struct Stream {
    recipe: ClassRecipe,
    options: StreamOptions,
    class: Arc<str>,
    clients: Vec<Client>,
    due: BinaryHeap<Reverse<(i64, u32)>>,
    ready: VecDeque<Draw>,
    next_request: u64,
}

/// A request as a client draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Intended time since the start of the run.
    pub intended_ns: i64,
    /// Deadline, if the workload has one.
    pub deadline_ns: Option<i64>,
    /// Number of the client.
    pub client: u32,
    /// Number of the file.
    pub file: u32,
    /// Read or write.
    pub op: Op,
    /// First byte in the file.
    pub offset_bytes: u64,
    /// Number of bytes, at least one.
    pub size_bytes: u64,
}

impl Stream {
    /// Begins a stream.
    ///
    /// # Errors
    /// The workload is closed-loop, its recording cannot be read, or it asks for more than [`crate::limits`] allow.
    pub fn new(workload: &Workload, options: StreamOptions) -> Result<Self, String> {
        if workload.is_closed_loop() {
            return Err(format!("workload `{}` is closed-loop and has no request times", workload.name));
        }
        let duration_s = options.duration_ns as f64 / 1e9;
        let refuse = |demand: Demand| match demand.beyond() {
            Some(beyond) => Err(format!(
                "workload `{}` with {} clients for {duration_s} s makes {beyond}: use fewer clients or less time",
                workload.name, options.clients
            )),
            None => Ok(()),
        };
        refuse(workload.demand(options.clients, duration_s))?;
        let frames = match &workload.sizes {
            Sizes::Frames(frames) => {
                Some(FrameSupply::open(frames, &options.folder, &options.class, options.seed)?)
            }
            _ => None,
        };
        let files = FileSet::new(&workload.files, &options.class, options.seed);
        let tape = recording::of(workload)
            .map(|recording| Tape::read(workload, recording, &options.folder, files.sizes_bytes()))
            .transpose()?;
        if let Some(tape) = &tape {
            refuse(tape.demand(options.clients, options.duration_ns))?;
        }
        let recipe = ClassRecipe {
            files,
            tape: tape.map(Arc::new),
            clients: options.clients,
            picker: Picker::new(&workload.files, &options.class, options.seed),
            sizes: match &workload.sizes {
                Sizes::Drawn(sizes) => Some(sizes.sampler()),
                _ => None,
            },
            workload: workload.clone(),
            frames,
        };
        let clients: Vec<Client> = (0..options.clients)
            .map(|number| Client::new(&recipe, &options.class, options.seed, number))
            .collect();
        let due =
            clients.iter().zip(0..).map(|(client, number)| Reverse((client.next_ns(), number))).collect();
        let class = options.class.as_str().into();
        Ok(Stream { recipe, options, class, clients, due, ready: VecDeque::new(), next_request: 0 })
    }

    /// The files that the requests refer to.
    pub fn files(&self) -> &FileSet {
        &self.recipe.files
    }

    /// Notes on requests left out of a recording or changed.
    pub fn notes(&self) -> &[String] {
        self.recipe.tape.as_ref().map_or(&[], |tape| &tape.notes)
    }

    /// Shared data of all clients.
    pub(crate) fn recipe(&self) -> &ClassRecipe {
        &self.recipe
    }

    /// The next request without the other fields of a record, which simulations do not use.
    pub fn draw(&mut self) -> Option<Draw> {
        while self.ready.is_empty() {
            let mut first = self.due.peek_mut()?;
            let Reverse((at_ns, number)) = *first;
            if at_ns >= self.options.duration_ns {
                // Every other client is due later still.
                drop(first);
                self.due.clear();
                return None;
            }
            let client = &mut self.clients[number as usize];
            let batch = client.batch(&self.recipe);
            *first = Reverse((client.next_ns(), number));
            drop(first);
            self.ready.extend(batch.extents.into_iter().map(|(offset_bytes, size_bytes)| Draw {
                intended_ns: batch.at_ns,
                deadline_ns: batch.deadline_ns,
                client: number,
                file: batch.file,
                op: batch.op,
                offset_bytes,
                size_bytes,
            }));
        }
        self.next_request += 1;
        self.ready.pop_front()
    }
}

impl Iterator for Stream {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let request = self.next_request;
        let draw = self.draw()?;
        Some(Request {
            request,
            class: Arc::clone(&self.class),
            client: draw.client,
            device: None,
            file: Some(draw.file),
            op: draw.op.into(),
            offset: draw.offset_bytes,
            size_bytes: draw.size_bytes,
            intended_ns: draw.intended_ns,
            submitted_ns: None,
            completed_ns: None,
            deadline_ns: draw.deadline_ns,
            served_ns: None,
            status: 0,
            warmup: draw.intended_ns < self.options.warmup_ns,
        })
    }
}
