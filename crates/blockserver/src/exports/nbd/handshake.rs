//! NBD handshake, up to the choice of an export.

use std::io::{self, Read, Write};

use super::Export;
use super::protocol::*;
use crate::sockets::connections::Place;

/// Maximum options before a client chooses an export.
const MOST_OPTIONS: usize = 1000;

/// Admission of clients.
pub(super) trait Admission {
    /// The handshake is done.
    ///
    /// # Errors
    /// The limit of clients is reached; the text is for the client.
    fn settle(&self) -> Result<(), String>;

    /// The client has sent a request.
    fn activate(&self);
}

impl Admission for Place {
    fn settle(&self) -> Result<(), String> {
        Place::settle(self)
    }

    fn activate(&self) {
        Place::activate(self);
    }
}

/// Greets a client and negotiates an export. `None` if it disconnects, or sends invalid data.
///
/// # Errors
/// The connection fails.
pub(super) fn negotiate<'a>(
    reader: &mut impl Read,
    writer: &mut impl Write,
    exports: &'a [Export],
    admission: &impl Admission,
) -> io::Result<Option<&'a Export>> {
    let mut greeting = Vec::with_capacity(18);
    greeting.extend(MAGIC.to_be_bytes());
    greeting.extend(OPTION_MAGIC.to_be_bytes());
    greeting.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
    writer.write_all(&greeting)?;
    let client_flags = u32::from_be_bytes(read_array(reader)?);
    if client_flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
        return Ok(None);
    }
    let wants_zeroes = client_flags & u32::from(NO_ZEROES) == 0;
    for _ in 0..MOST_OPTIONS {
        let head: [u8; 16] = read_array(reader)?;
        let mut fields = Fields(&head);
        let (Some(magic), Some(option), Some(length)) = (fields.u64(), fields.u32(), fields.u32()) else {
            return Ok(None);
        };
        if magic != OPTION_MAGIC {
            return Ok(None);
        }
        if length > MOST_OPTION_BYTES {
            io::copy(&mut reader.by_ref().take(u64::from(length)), &mut io::sink())?;
            reply(writer, option, REP_ERR_TOO_BIG, b"the option is too long")?;
            continue;
        }
        let mut data = vec![0; length as usize];
        reader.read_exact(&mut data)?;
        match option {
            OPT_EXPORT_NAME => {
                // The protocol has no refusal here: disconnect.
                let export = export_name(&data).and_then(|name| find(exports, &name));
                let Some(export) = export.filter(|_| admission.settle().is_ok()) else { return Ok(None) };
                let mut answer = export.size_bytes.to_be_bytes().to_vec();
                answer.extend(flags_of(export).to_be_bytes());
                answer.extend(std::iter::repeat_n(0, if wants_zeroes { 124 } else { 0 }));
                writer.write_all(&answer)?;
                return Ok(Some(export));
            }
            OPT_ABORT => {
                reply(writer, option, REP_ACK, &[])?;
                return Ok(None);
            }
            OPT_LIST if !data.is_empty() => {
                reply(writer, option, REP_ERR_INVALID, b"the option has no data")?
            }
            OPT_LIST => {
                for export in exports {
                    let mut entry = (export.name.len() as u32).to_be_bytes().to_vec();
                    entry.extend(export.name.as_bytes());
                    reply(writer, option, REP_SERVER, &entry)?;
                }
                reply(writer, option, REP_ACK, &[])?;
            }
            OPT_INFO | OPT_GO => match InfoRequest::parse(&data) {
                None => reply(writer, option, REP_ERR_INVALID, b"the data of the option are invalid")?,
                Some(InfoRequest { name, wanted }) => match find(exports, &name) {
                    None => reply(writer, option, REP_ERR_UNKNOWN, b"no export has this name")?,
                    Some(export) => {
                        if option == OPT_GO
                            && let Err(full) = admission.settle()
                        {
                            reply(writer, option, REP_ERR_POLICY, full.as_bytes())?;
                            return Ok(None);
                        }
                        inform(writer, option, export, &wanted)?;
                        if option == OPT_GO {
                            return Ok(Some(export));
                        }
                    }
                },
            },
            _ => reply(writer, option, REP_ERR_UNSUP, b"this server does not support the option")?,
        }
    }
    Ok(None)
}

fn find<'a>(exports: &'a [Export], name: &str) -> Option<&'a Export> {
    if name.is_empty() { exports.first() } else { exports.iter().find(|export| export.name == name) }
}

fn flags_of(export: &Export) -> u16 {
    let always = HAS_FLAGS | SEND_FLUSH | SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | CAN_MULTI_CONN;
    if export.is_rotational { always | ROTATIONAL } else { always }
}

/// Describes an export: always size, flags and request sizes; name and text if requested.
fn inform(writer: &mut impl Write, option: u32, export: &Export, wanted: &[u16]) -> io::Result<()> {
    let mut info = |kind: u16, parts: &[&[u8]]| {
        let data: Vec<u8> = kind.to_be_bytes().into_iter().chain(parts.concat()).collect();
        reply(writer, option, REP_INFO, &data)
    };
    info(INFO_EXPORT, &[&export.size_bytes.to_be_bytes(), &flags_of(export).to_be_bytes()])?;
    let least = export.engine.block_bytes();
    let sizes = [least, least.max(4096), MOST_REQUEST_BYTES].map(u32::to_be_bytes);
    info(INFO_BLOCK_SIZE, &[&sizes[0], &sizes[1], &sizes[2]])?;
    if wanted.contains(&INFO_NAME) {
        info(INFO_NAME, &[export.name.as_bytes()])?;
    }
    if wanted.contains(&INFO_DESCRIPTION) {
        info(INFO_DESCRIPTION, &[export.about.as_bytes()])?;
    }
    reply(writer, option, REP_ACK, &[])
}

fn reply(writer: &mut impl Write, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let mut bytes = OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    writer.write_all(&bytes)
}

pub(super) fn read_array<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}
