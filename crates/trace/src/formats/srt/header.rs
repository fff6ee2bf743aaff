//! The header of an SRT trace: `key = value;` in ASCII, with nested `{ }` for the disks.

use crate::Error;
use crate::error::{Bad, Place};
use crate::input::Input;

/// How every header begins.
pub(super) const MARK: &[u8] = b"$$TR_IOREC";
/// What ends it.
const FORM_FEED: u8 = 0x0c;
/// Longest header that is believed to be one: a hundred disks have some 100 KB.
const LONGEST_BYTES: usize = 1 << 20;

pub(super) struct Header {
    fields: Vec<(String, String)>,
    /// Size of a sector, by disk.
    sectors: Vec<(u32, u32)>,
}

impl Header {
    /// Reads up to the first record.
    ///
    /// # Errors
    /// This is no header, or the file ends in it.
    pub(super) fn read(input: &mut Input) -> Result<Self, Error> {
        let mut searched = 0;
        let end = loop {
            let available = input.need(searched + 1)?;
            let found = available[searched..].iter().position(|byte| *byte == FORM_FEED);
            if let Some(at) = found {
                break searched + at;
            }
            let ended = available.len() <= searched;
            searched = available.len();
            if ended || searched > LONGEST_BYTES || !available.starts_with(&MARK[..MARK.len().min(searched)])
            {
                let bad = Bad::text("header", available, "$$TR_IOREC and so on, up to a form feed");
                return Err(Error::Bad { path: input.path().to_owned(), place: Place::Byte(0), bad });
            }
        };
        let header = Header::parse(&String::from_utf8_lossy(&input.available()[..end]));
        input.consume(end + 1);
        Ok(header)
    }

    fn parse(text: &str) -> Self {
        let mut header = Header { fields: Vec::new(), sectors: Vec::new() };
        let mut lines = text.lines().map(|line| line.trim_matches(|c: char| c.is_whitespace() || c == '\0'));
        header.fields.push(("format".to_owned(), lines.next().unwrap_or_default().to_owned()));
        // Number of open braces, and their disk.
        let (mut depth, mut disk) = (0_usize, None);
        for line in lines {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            let (key, value) = (key.trim(), value.trim().trim_end_matches([';', ',']).trim());
            match depth {
                0 if !value.is_empty() && !value.starts_with('{') => {
                    header.fields.push((key.to_owned(), value.trim_matches('"').to_owned()));
                }
                1 => disk = line.split_once("->").and_then(|(number, _)| number.trim().parse().ok()),
                2 if key == "sectorsize" => {
                    if let (Some(disk), Ok(bytes)) = (disk, value.parse()) {
                        header.sectors.push((disk, bytes));
                        header.fields.push((format!("disk {disk} sectorsize"), value.to_owned()));
                    }
                }
                2 if key == "disktype" => {
                    if let Some(disk) = disk {
                        header.fields.push((format!("disk {disk} disktype"), value.to_owned()));
                    }
                }
                _ => {}
            }
            depth = change(depth, line);
        }
        header
    }

    /// Properties of the whole trace, and the disks' types and sector sizes.
    pub(super) fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// Sector size of a disk. A disk that is not listed has the size of all others, if they agree.
    pub(super) fn sector_bytes(&self, disk: u32) -> Option<u32> {
        let listed = self.sectors.iter().find(|(number, _)| *number == disk);
        let (_, bytes) = listed.or(self.sectors.first())?;
        (listed.is_some() || self.sectors.iter().all(|(_, other)| other == bytes)).then_some(*bytes)
    }
}

/// How many braces are open after a line: those in quotes do not count.
fn change(mut depth: usize, line: &str) -> usize {
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth
}
