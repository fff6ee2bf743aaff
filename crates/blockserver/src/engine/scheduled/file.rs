//! Engine with a scheduler, as the service of the FUSE file.

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};

use super::attribution::Caller;
use super::buffer::{BorrowedPayload, Reply, Written};
use super::engine::Engine;
use crate::exports::fuse::FileService;

impl FileService for Engine {
    fn size_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn enter_reader(&self) {
        self.enter_reader();
    }

    fn read(&self, pid: u32, offset: u64, size: u32, reply: ReplyData) {
        let size = size.min(self.size_bytes().saturating_sub(offset).min(u64::from(u32::MAX)) as u32);
        if size == 0 {
            return reply.data(&[]);
        }
        self.read(offset, size, &Caller { pid, stream: 0 }, Reply::Read(reply));
    }

    fn write(&self, pid: u32, offset: u64, data: &[u8], reply: ReplyWrite) {
        let size = data.len() as u32;
        if size == 0 {
            return reply.written(0);
        }
        let reply = move |outcome: Result<BorrowedPayload, i32>| match outcome {
            Ok(_) => reply.written(size),
            Err(errno) => reply.error(Errno::from_i32(errno)),
        };
        // FUSE has no FUA: the kernel sends a write and a flush.
        self.write(offset, Written::Borrowed(data), false, &Caller { pid, stream: 0 }, Reply::new(reply));
    }

    fn flush(&self, reply: ReplyEmpty) {
        self.flush(Reply::new(|outcome| answer(reply, outcome.map(|_| ()))));
    }

    fn discard(&self, offset: u64, length: u64, reply: ReplyEmpty) {
        self.discard(offset, length, Reply::new(|outcome| answer(reply, outcome.map(|_| ()))));
    }
}

fn answer(reply: ReplyEmpty, outcome: Result<(), i32>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(Errno::from_i32(errno)),
    }
}
