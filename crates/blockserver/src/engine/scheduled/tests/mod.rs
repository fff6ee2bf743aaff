//! Engines without exports.

mod agreement;
mod changes;
mod direct;

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use weir_simulator::server::Wanted;

use super::buffer::{BorrowedPayload, Reply};
use super::engine::Engine;
use super::spec::build;
use crate::spec::ServeSpec;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Logged {
    pub wanted: Wanted,
    pub arrived_ns: u64,
    pub begun_ns: u64,
    pub done_ns: u64,
    pub answered_ns: u64,
}

/// All requests of an engine, in the order in which they were done.
#[derive(Debug, Default)]
pub(in super::super) struct Log {
    open: Vec<(Wanted, u64)>,
    done: Vec<Logged>,
}

impl Log {
    pub(in super::super) fn arrived(&mut self, wanted: &Wanted, arrived_ns: u64) {
        self.open.push((*wanted, arrived_ns));
    }

    pub(in super::super) fn done(&mut self, tag: u64, begun_ns: u64, done_ns: u64, answered_ns: u64) {
        if let Some(at) = self.open.iter().position(|(wanted, _)| wanted.tag == tag) {
            let (wanted, arrived_ns) = self.open.remove(at);
            self.done.push(Logged { wanted, arrived_ns, begun_ns, done_ns, answered_ns });
        }
    }
}

/// An engine with its threads.
pub(crate) struct Running {
    pub engine: Arc<Engine>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    pub fn start(yaml: &str, folder: &std::path::Path) -> Self {
        let spec = ServeSpec::parse(yaml, "test.yml", folder).unwrap();
        let (mut engines, _) = build(&spec, spec.live.as_ref().unwrap()).unwrap();
        let engine = engines.remove(0);
        let (timing, completions, durable) = (Arc::clone(&engine), Arc::clone(&engine), Arc::clone(&engine));
        let threads = vec![
            thread::spawn(move || timing.keep_time()),
            thread::spawn(move || completions.take_completions()),
        ];
        // Ends with the process.
        thread::spawn(move || durable.make_durable());
        Self { engine, threads }
    }

    pub(super) fn log(&self) -> Vec<Logged> {
        self.engine.lock().log.done.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.engine.stop();
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// A reply, and where its data or errno come out. That it comes twice cannot be: it is called by value.
pub(crate) fn reply() -> (Reply, Receiver<Result<Vec<u8>, i32>>) {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let reply = move |outcome: Result<BorrowedPayload, i32>| {
        let data = outcome.map(|payload| payload.bytes().to_vec());
        let _ = sender.lock().unwrap().send(data);
    };
    (Reply::new(reply), receiver)
}
