//! The conductor's door: who may come in, and what is answered to those who are in.

use std::io::{ErrorKind, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::hall::{GLANCE, Hall, Progress, Seat, lock, say};
use crate::message::VERSION;
use crate::token::nonce;
use crate::{Ended, Lines, Message, monotonic_ns};

impl Hall {
    pub(crate) fn keep_door(self: &Arc<Self>, listener: &TcpListener) {
        while !self.is_closed() {
            match listener.accept() {
                Ok((stream, from)) => {
                    let hall = Arc::clone(self);
                    // Not waited for: it ends with its connection.
                    thread::spawn(move || hall.receive(stream, from));
                }
                Err(_) => thread::sleep(GLANCE),
            }
        }
    }

    /// One connection, from the first word to the last.
    fn receive(&self, stream: TcpStream, from: SocketAddr) {
        let silence = Some(self.invitation.manners.silence);
        let prepared = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| stream.set_read_timeout(silence))
            .and_then(|()| stream.set_write_timeout(silence))
            .and_then(|()| stream.try_clone());
        let Ok(reader) = prepared else { return };
        let mut lines = Lines::new(reader);
        let writer = Arc::new(Mutex::new(stream));
        match self.let_in(&mut lines, &writer) {
            Ok(host) => self.listen(&host, &mut lines, &writer),
            Err(reason) => {
                eprintln!("{} was not let in: {reason}", from.ip());
                let _ = say(&writer, &Message::Refused { reason });
            }
        }
    }

    /// Who it is, if that can be believed; or why not.
    fn let_in(&self, lines: &mut Lines<TcpStream>, writer: &Arc<Mutex<TcpStream>>) -> Result<String, String> {
        let nonce = nonce().map_err(|error| error.to_string())?;
        let challenge = Message::Challenge { version: VERSION, nonce: nonce.clone() };
        say(writer, &challenge).map_err(|error| error.to_string())?;
        let (host, run, answer) = match lines.next_message() {
            Ok(Some(Message::Hello { host, run, answer })) => (host, run, answer),
            Ok(_) => return Err("it did not say who it is".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        if !self.invitation.token.is_answer(&answer, &nonce, &host, &run) {
            // The name is only what somebody claims, but it tells which host to look at.
            return Err(format!("host `{}` has another token", printable(&host)));
        }
        if run != self.invitation.run {
            return Err(format!(
                "host `{}` came for run {}, this is {}",
                printable(&host),
                printable(&run),
                self.invitation.run
            ));
        }
        if !self.invitation.company.others().any(|name| name == host) {
            return Err(format!("host `{}` does not take part in this run", printable(&host)));
        }
        let mut room = lock(&self.room);
        if room.seats.contains_key(&host) {
            return Err(format!("host `{host}` is here already"));
        }
        if let Some(ended) = room.ended.clone() {
            let reason = format!("host `{host}` came when the run was over: {ended}");
            let _ = say(writer, &Message::Over { ended });
            room.told.insert(host);
            self.changed.notify_all();
            return Err(reason);
        }
        say(writer, &Message::Welcome {}).map_err(|error| error.to_string())?;
        let seat = Seat { writer: Arc::clone(writer), progress: Progress::Here, heard_ns: monotonic_ns() };
        room.seats.insert(host.clone(), seat);
        self.changed.notify_all();
        Ok(host)
    }

    /// Answers a host until it goes.
    fn listen(&self, host: &str, lines: &mut Lines<TcpStream>, writer: &Mutex<TcpStream>) {
        loop {
            let said = lines.next_message();
            let received_ns = monotonic_ns();
            let mut room = lock(&self.room);
            let heard_ns = room.seats.get(host).map_or(received_ns, |seat| seat.heard_ns);
            let since_begin = |begun: Option<i64>, at_ns: i64| begun.map(|begun| at_ns - begun);
            let (after_ns, failed) = match said {
                Ok(Some(message)) => {
                    if let Some(seat) = room.seats.get_mut(host) {
                        seat.heard_ns = received_ns;
                        match message {
                            Message::Ready {} => seat.progress = Progress::Ready,
                            Message::Done {} => seat.progress = Progress::Done,
                            _ => {}
                        }
                    }
                    match message {
                        Message::Beat {} => continue,
                        Message::Ready {} => {
                            self.changed.notify_all();
                            continue;
                        }
                        Message::Done {} => {
                            self.look_round(&room);
                            self.changed.notify_all();
                            continue;
                        }
                        Message::Ask { sent_ns } => {
                            drop(room);
                            let mut to = lock(writer);
                            let told = Message::Told { sent_ns, received_ns, replied_ns: monotonic_ns() };
                            let _ = to.write_all(&told.line());
                            continue;
                        }
                        Message::Failed { reason } => (since_begin(room.begun, received_ns), Some(reason)),
                        _ => (
                            since_begin(room.begun, received_ns),
                            Some("it said what a host does not say to the conductor".to_owned()),
                        ),
                    }
                }
                // Its connection ended now; of a silent one the last word counts.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    (since_begin(room.begun, heard_ns), None)
                }
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    (since_begin(room.begun, received_ns), Some(error.to_string()))
                }
                Ok(None) | Err(_) => (since_begin(room.begun, received_ns), None),
            };
            self.end_for_all(&mut room, Ended { host: host.to_owned(), after_ns, failed });
            return;
        }
    }
}

/// What somebody sent, fit for a message.
fn printable(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic()).take(64).collect()
}
