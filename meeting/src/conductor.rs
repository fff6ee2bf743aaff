//! The first client: lets the others in, names the beginning, and notices who is lost.

use std::net::{Shutdown, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::hall::{Hall, Progress, lock};
use crate::{Clocks, Ended, Error, Invitation, Message, Offset, Record, monotonic_ns};

/// The part of the host that conducts.
pub struct Conductor {
    hall: Arc<Hall>,
    opened: Instant,
    threads: Vec<JoinHandle<()>>,
}

impl Conductor {
    pub(crate) fn open(invitation: Invitation) -> Result<Self, Error> {
        let address = invitation.address;
        let refuse = |error: std::io::Error| Error::Refused(format!("cannot listen at {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(refuse)?;
        listener.set_nonblocking(true).map_err(refuse)?;
        let hall = Arc::new(Hall { invitation, room: Mutex::default(), changed: Condvar::new() });
        let (door, beats) = (Arc::clone(&hall), Arc::clone(&hall));
        let threads =
            vec![thread::spawn(move || door.keep_door(&listener)), thread::spawn(move || beats.beat())];
        Ok(Conductor { hall, opened: Instant::now(), threads })
    }

    pub(crate) fn begin(&mut self) -> Result<i64, Error> {
        let hall = &self.hall;
        let mut room = lock(&hall.room);
        loop {
            if let Some(ended) = room.ended.clone() {
                hall.see_off(room, self.opened);
                return Err(Error::Ended(ended));
            }
            if hall.invitation.stop.load(Ordering::Relaxed) {
                return Err(Error::Failed("interrupted".to_owned()));
            }
            let absent = hall.invitation.company.others().find(|name| !room.seats.contains_key(*name));
            match absent {
                Some(host) if self.opened.elapsed() > hall.invitation.manners.patience => {
                    let ended = Ended { host: host.to_owned(), after_ns: None, failed: None };
                    hall.end_for_all(&mut room, ended.clone());
                    return Err(Error::Ended(ended));
                }
                None if room.seats.values().all(|seat| seat.progress >= Progress::Ready) => break,
                _ => {}
            }
            room = hall.wait(room);
        }
        let lead_ns = i64::try_from(hall.invitation.manners.lead.as_nanos()).unwrap_or(0);
        let epoch_ns = monotonic_ns() + lead_ns;
        room.begun = Some(epoch_ns);
        Hall::tell_all(&room, &Message::Begin { epoch_ns });
        Ok(epoch_ns)
    }

    pub(crate) fn end(&mut self) -> Result<Record, Error> {
        {
            let hall = &self.hall;
            let mut room = lock(&hall.room);
            room.done = true;
            hall.look_round(&room);
            loop {
                if let Some(ended) = &room.ended {
                    return Err(Error::Ended(ended.clone()));
                }
                if hall.invitation.stop.load(Ordering::Relaxed) {
                    return Err(Error::Failed("interrupted".to_owned()));
                }
                if room.seats.values().all(|seat| seat.progress == Progress::Done) {
                    break;
                }
                room = hall.wait(room);
            }
            room.closed = true;
            Hall::tell_all(&room, &Message::End {});
        }
        Ok(self.record())
    }

    pub(crate) fn fail(&mut self, reason: &str) {
        let hall = &self.hall;
        let is_interrupted = hall.invitation.stop.load(Ordering::Relaxed);
        let mut room = lock(&hall.room);
        if room.ended.is_none() && !room.closed {
            let after_ns = room.begun.map(|begun| monotonic_ns() - begun);
            let failed = Some(reason.to_owned());
            let ended = Ended { host: hall.invitation.company.me().to_owned(), after_ns, failed };
            hall.end_for_all(&mut room, ended);
            if !is_interrupted {
                hall.see_off(room, self.opened);
            }
        }
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        lock(&self.hall.room).ended.clone()
    }

    pub(crate) fn record(&self) -> Record {
        let room = lock(&self.hall.room);
        Record {
            epoch_ns: room.begun,
            local_epoch_ns: room.begun,
            clocks: room.begun.map(|begun| Clocks { start: Offset::none(begun), end: None }),
            ..Record::of_none(&self.hall.invitation.company, &self.hall.invitation.run, room.ended.clone())
        }
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        {
            let mut room = lock(&self.hall.room);
            room.closed = true;
            for seat in room.seats.values() {
                // Writing only: what was said last still reaches the other side, which then closes.
                let _ = lock(&seat.writer).shutdown(Shutdown::Write);
            }
        }
        self.hall.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
