//! Connection of one NBD client: one thread reads requests, another writes replies when they are ready.
//!
//! With a separate writer, a client that does not read its replies delays no other client.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use super::handshake::{Admission, negotiate, read_array};
use super::protocol::{Command, Header, MOST_REQUEST_BYTES, REPLY_MAGIC, error_number};
use super::window::Window;
use super::{Export, Exports};
use crate::engine::scheduled::{BorrowedPayload, Buffer, Caller, OwnedPayload, Reply, Written};

/// A reply to the client.
struct Answer {
    cookie: u64,
    outcome: Result<OwnedPayload, u32>,
    /// The request's share of the window.
    bytes: usize,
}

/// Serves a client until it disconnects. On return all requests have replies, or the sending side is closed.
///
/// # Errors
/// The connection fails, or the client violates the protocol.
pub(super) fn serve(
    mut reader: impl Read,
    mut writer: impl Write + Send + 'static,
    exports: &Exports,
    caller: Caller,
    admission: &impl Admission,
) -> io::Result<()> {
    let Some(export) = negotiate(&mut reader, &mut writer, exports, admission)? else { return Ok(()) };
    let window = Arc::new(Window::default());
    let (sender, receiver) = mpsc::channel();
    let of_writer = Arc::clone(&window);
    let writing = thread::Builder::new()
        .name("nbd-answers".to_owned())
        .spawn(move || write_answers(&mut writer, &receiver, &of_writer))?;
    let client = Client { export, caller, sender, window };
    let read = client.read_requests(&mut reader, admission);
    drop(client);
    // The thread that completes the last request sends its reply.
    let _ = writing.join();
    read
}

struct Client<'a> {
    export: &'a Export,
    caller: Caller,
    sender: Sender<Answer>,
    window: Arc<Window>,
}

impl Client<'_> {
    fn read_requests(&self, reader: &mut impl Read, admission: &impl Admission) -> io::Result<()> {
        loop {
            let header = match read_array(reader) {
                Ok(bytes) => Header::parse(&bytes),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            };
            let Some(header) = header else {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not a request of the NBD protocol"));
            };
            admission.activate();
            if header.command == Command::Disconnect {
                return Ok(());
            }
            let data = match header.command {
                Command::Write if header.size_bytes > MOST_REQUEST_BYTES => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a write is too long"));
                }
                Command::Write => {
                    self.window.enter(header.size_bytes as usize);
                    // Read directly to the device's buffer.
                    let mut buffer = Buffer::new(header.size_bytes as usize)?;
                    reader.read_exact(&mut buffer.bytes_mut()[..header.size_bytes as usize])?;
                    Some(buffer)
                }
                Command::Read => {
                    self.window.enter(header.size_bytes.min(MOST_REQUEST_BYTES) as usize);
                    None
                }
                _ => {
                    self.window.enter(0);
                    None
                }
            };
            self.carry_out(&header, data);
        }
    }

    fn carry_out(&self, header: &Header, data: Option<Buffer>) {
        let Header { command, is_fua, offset_bytes, size_bytes, .. } = *header;
        let Export { engine, first_byte, size_bytes: export_bytes, .. } = self.export;
        let is_inside =
            offset_bytes.checked_add(u64::from(size_bytes)).is_some_and(|end| end <= *export_bytes);
        let offset = first_byte.saturating_add(offset_bytes);
        let (caller, reply) = (&self.caller, self.reply(header));
        match (command, data) {
            (Command::Flush, _) => engine.flush(reply),
            (Command::Read, _) if size_bytes > MOST_REQUEST_BYTES => reply.send(Err(libc::EOVERFLOW)),
            (Command::Read, _) if is_inside => engine.read(offset, size_bytes, caller, reply),
            (Command::Write, Some(data)) if is_inside && size_bytes > 0 => {
                engine.write(offset, Written::Owned(data), is_fua, caller, reply);
            }
            (Command::Write, _) if !is_inside => reply.send(Err(libc::ENOSPC)),
            (Command::WriteZeroes, _) if !is_inside => reply.send(Err(libc::ENOSPC)),
            (Command::Trim | Command::WriteZeroes, _) if is_inside && is_fua => {
                let flushing = Arc::clone(engine);
                let then = Reply::new(move |outcome| match outcome {
                    Ok(_) => flushing.flush(reply),
                    Err(error) => reply.send(Err(error)),
                });
                engine.discard(offset, u64::from(size_bytes), then);
            }
            (Command::Trim | Command::WriteZeroes, _) if is_inside => {
                engine.discard(offset, u64::from(size_bytes), reply);
            }
            _ => reply.send(Err(libc::EINVAL)),
        }
    }

    fn reply(&self, header: &Header) -> Reply {
        let Header { cookie, command, size_bytes, .. } = *header;
        let bytes = match command {
            Command::Read | Command::Write => size_bytes.min(MOST_REQUEST_BYTES) as usize,
            _ => 0,
        };
        let (sender, window) = (self.sender.clone(), Arc::clone(&self.window));
        Reply::new(move |outcome| {
            let outcome = outcome.map(BorrowedPayload::keep).map_err(error_number);
            // The client may have disconnected.
            if sender.send(Answer { cookie, outcome, bytes }).is_err() {
                window.leave(bytes);
            }
        })
    }
}

/// Writes replies until all senders are dropped. After a disconnection replies are discarded.
fn write_answers(writer: &mut impl Write, receiver: &Receiver<Answer>, window: &Window) {
    let mut is_gone = false;
    while let Ok(Answer { cookie, outcome, bytes }) = receiver.recv() {
        let error = *outcome.as_ref().err().unwrap_or(&0);
        let mut head = [0; 16];
        head[..4].copy_from_slice(&REPLY_MAGIC.to_be_bytes());
        head[4..8].copy_from_slice(&error.to_be_bytes());
        head[8..].copy_from_slice(&cookie.to_be_bytes());
        let data = outcome.as_ref().map_or(&[][..], OwnedPayload::bytes);
        is_gone = is_gone || write_both(writer, &head, data).is_err();
        window.leave(bytes);
    }
}

fn write_both(writer: &mut impl Write, head: &[u8], data: &[u8]) -> io::Result<()> {
    let written = loop {
        match writer.write_vectored(&[IoSlice::new(head), IoSlice::new(data)]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if written < head.len() {
        writer.write_all(&head[written..])?;
        return writer.write_all(data);
    }
    writer.write_all(&data[written - head.len()..])
}
