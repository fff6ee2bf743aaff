//! Weir's own trace format, read from the start: also compressed, or from a pipe. Its layout is in [`crate::packed`].
//!
//! A chunk with a damaged checksum is skipped as a whole, as one record.

use super::format::Format;
use crate::error::{Bad, Place};
use crate::input::Input;
use crate::packed::{Chunk, HEAD_BYTES, Head, MARK, Names, decode_end};
use crate::reader::Skipping;
use crate::{Devices, Error, Reader, TraceRequest};

pub(super) const FORMAT: Format = Format {
    name: "weir",
    about: "weir's own format for long traces (`weir trace convert --to weir`); since the first request",
    detect: |head| head.starts_with(&MARK),
    open: |input, options| Ok(Box::new(Chunks::new(input, options.skip_bad))),
};

struct Chunks {
    input: Input,
    chunk: Chunk,
    next: usize,
    names: Names,
    /// Numbers of the file's devices among those that were read.
    numbers: Vec<Option<u32>>,
    devices: Devices,
    skipping: Skipping,
    requests: u64,
    begun: bool,
    ended: bool,
}

impl Chunks {
    fn new(input: Input, skip_bad: bool) -> Self {
        Chunks {
            input,
            chunk: Chunk::default(),
            next: 0,
            names: Names::new(),
            numbers: Vec::new(),
            devices: Devices::default(),
            skipping: Skipping::new(skip_bad),
            requests: 0,
            begun: false,
            ended: false,
        }
    }

    fn bad(&self, bad: Bad) -> Error {
        let place = Place::Byte(self.input.consumed());
        Error::Bad { path: self.input.path().to_owned(), place, bad }
    }

    /// Reads the next chunk, if there is one.
    fn advance(&mut self) -> Result<(), Error> {
        if !self.begun {
            self.begun = true;
            let mark = self.input.need(MARK.len())?;
            if !mark.starts_with(&MARK) {
                let found = Bad::text("the first bytes", &mark[..mark.len().min(MARK.len())], "weirtrc1");
                self.ended = true;
                let error = self.bad(found);
                return self.skipping.over(error);
            }
            self.input.consume(MARK.len());
        }
        let available = self.input.need(HEAD_BYTES)?;
        let (left, head) = (available.len(), available.first_chunk::<HEAD_BYTES>().copied());
        let Some(head) = head else { return self.cut_off(left) };
        let head = match Head::read(&head) {
            Ok(head) => head,
            Err(bad) => {
                // What follows cannot be found.
                self.ended = true;
                let error = self.bad(bad);
                return self.skipping.over(error);
            }
        };
        let whole = HEAD_BYTES + head.body_bytes();
        let available = self.input.need(whole)?;
        let left = available.len();
        let Some(body) = available.get(HEAD_BYTES..whole) else { return self.cut_off(left) };
        let read = if head.requests == 0 {
            self.ended = true;
            decode_end(&head, body).and_then(|requests| {
                let complete = requests == self.requests || self.skipping.count() > 0;
                if complete {
                    Ok(())
                } else {
                    Err(Bad::number("number of requests", requests, "those of the chunks"))
                }
            })
        } else {
            self.chunk.decode(&head, body, &mut self.names)
        };
        self.next = 0;
        match read {
            Ok(()) if self.ended => self.chunk = Chunk::default(),
            Ok(()) => {
                self.requests += head.requests as u64;
                for (number, name) in self.names.drain(..) {
                    let place = number as usize;
                    if place > self.numbers.len() + head.requests {
                        continue;
                    }
                    if place >= self.numbers.len() {
                        self.numbers.resize(place + 1, None);
                    }
                    self.numbers[place] = Some(self.devices.number(&name));
                }
            }
            Err(bad) => {
                self.chunk = Chunk::default();
                let error = self.bad(bad);
                self.input.consume(whole);
                return self.skipping.over(error);
            }
        }
        self.input.consume(whole);
        Ok(())
    }

    fn cut_off(&mut self, left: usize) -> Result<(), Error> {
        self.ended = true;
        let error = self.bad(Bad {
            field: "the end",
            found: format!("{left} bytes"),
            expected: "a whole chunk: the file is cut off",
        });
        self.input.consume(left);
        self.skipping.over(error)
    }
}

impl Reader for Chunks {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        while self.next == self.chunk.len() {
            if self.ended {
                return Ok(None);
            }
            self.advance()?;
        }
        let mut request = self.chunk.get(self.next);
        self.next += 1;
        request.device = match self.numbers.get(request.device as usize) {
            Some(Some(number)) => *number,
            // Its name was in a damaged chunk.
            _ => self.devices.number(request.device.to_string().as_bytes()),
        };
        Ok(Some(request))
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn skipped(&self) -> &Skipping {
        &self.skipping
    }
}
