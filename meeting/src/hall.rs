//! Who is there, as the conductor's threads share it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Ended, Invitation, Message, Role};

/// How often the door is looked at, and waiting threads look whether all is over.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);
/// After a run that was over before all had come, who comes so long after the door was opened is still told.
const LATE: Duration = Duration::from_secs(20);

/// What the conductor's threads share.
pub(crate) struct Hall {
    pub(crate) invitation: Invitation,
    pub(crate) room: Mutex<Room>,
    pub(crate) changed: Condvar,
}

#[derive(Default)]
pub(crate) struct Room {
    pub(crate) seats: BTreeMap<String, Seat>,
    pub(crate) begun: Option<i64>,
    /// This host's own part is done.
    pub(crate) done: bool,
    pub(crate) ended: Option<Ended>,
    /// Who came too late, and was told so.
    pub(crate) told: BTreeSet<String>,
    /// Nobody is waited for any more.
    pub(crate) closed: bool,
}

pub(crate) struct Seat {
    pub(crate) writer: Arc<Mutex<TcpStream>>,
    pub(crate) progress: Progress,
    pub(crate) heard_ns: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    Here,
    Ready,
    Done,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that fell leaves nothing half done here: each change is one assignment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn say(writer: &Mutex<TcpStream>, message: &Message) -> std::io::Result<()> {
    lock(writer).write_all(&message.line())
}

impl Hall {
    /// Waits for a change, but not long: `stop` is set without one.
    pub(crate) fn wait<'a>(&self, room: MutexGuard<'a, Room>) -> MutexGuard<'a, Room> {
        self.changed.wait_timeout(room, GLANCE).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for those who have not come yet, so that they hear why there is no run; not for long.
    pub(crate) fn see_off(&self, mut room: MutexGuard<'_, Room>, opened: Instant) {
        let is_there = |room: &Room, name: &str| room.seats.contains_key(name) || room.told.contains(name);
        while opened.elapsed() < LATE.min(self.invitation.manners.patience)
            && !self.invitation.company.others().all(|name| is_there(&room, name))
        {
            room = self.wait(room);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.room).closed
    }

    pub(crate) fn tell_all(room: &Room, message: &Message) {
        for seat in room.seats.values() {
            // Whoever cannot be told is found to be lost by its reader.
            let _ = say(&seat.writer, message);
        }
    }

    /// The first end is the one that counts.
    pub(crate) fn end_for_all(&self, room: &mut Room, ended: Ended) {
        if room.ended.is_none() && !room.closed {
            Self::tell_all(room, &Message::Over { ended: ended.clone() });
            room.ended = Some(ended);
            self.invitation.stop.store(true, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    /// Tells the servers once all clients are done.
    pub(crate) fn look_round(&self, room: &Room) {
        let is_busy = |(name, seat): (&String, &Seat)| {
            self.invitation.company.role(name) == Some(Role::Client) && seat.progress != Progress::Done
        };
        if room.done && !room.seats.iter().any(is_busy) {
            for (name, seat) in &room.seats {
                if self.invitation.company.role(name) == Some(Role::Server)
                    && seat.progress == Progress::Ready
                {
                    let _ = say(&seat.writer, &Message::Asked {});
                }
            }
        }
    }

    pub(crate) fn beat(&self) {
        let mut last = Instant::now();
        while !self.is_closed() {
            thread::sleep(GLANCE);
            if last.elapsed() >= self.invitation.manners.beat {
                last = Instant::now();
                let writers: Vec<_> =
                    lock(&self.room).seats.values().map(|seat| Arc::clone(&seat.writer)).collect();
                for writer in writers {
                    let _ = say(&writer, &Message::Beat {});
                }
            }
        }
    }
}
