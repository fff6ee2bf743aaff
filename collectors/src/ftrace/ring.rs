//! Pages of the kernel's trace ring buffer (`trace_pipe_raw`), and their layouts by tracefs.
//!
//! Pure functions over bytes and text, which panic at no input. Offsets come from the kernel's `events/header_page` and
//! `events/.../format`; only the header of an event within a page is fixed (`events/header_event`,
//! `include/linux/ring_buffer.h`).

use std::collections::HashMap;

/// Position of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

impl Field {
    /// Its bytes; `None` if `bytes` is too short.
    pub fn of<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Its value as an unsigned number, in the host's byte order; `None` if its size is not 1, 2, 4 or 8 bytes.
    pub fn unsigned(&self, bytes: &[u8]) -> Option<u64> {
        let field = self.of(bytes)?;
        Some(match field.len() {
            1 => u64::from(field[0]),
            2 => u64::from(u16::from_ne_bytes(field.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(field.try_into().ok()?)),
            8 => u64::from_ne_bytes(field.try_into().ok()?),
            _ => return None,
        })
    }

    /// Its value as a signed number of 4 bytes.
    pub fn signed(&self, bytes: &[u8]) -> Option<i32> {
        Some(i32::from_ne_bytes(self.of(bytes)?.try_into().ok()?))
    }
}

/// The fields of an event, or of the header of a page, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format {
    /// The event's number; `None` for the header of a page.
    pub id: Option<u16>,
    fields: HashMap<String, Field>,
}

impl Format {
    /// Reads the text of a file `format` or `header_page`. Other lines are skipped.
    pub fn parse(text: &str) -> Self {
        let mut format = Format::default();
        for line in text.lines().map(str::trim) {
            if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok();
            } else if let Some((name, field)) = field(line) {
                format.fields.insert(name, field);
            }
        }
        format
    }

    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }
}

/// A line such as `field:char comm[16]; offset:44; size:16; signed:0;`, with tabs between.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let name = declaration.split_whitespace().next_back()?;
    let name = name.split('[').next()?.trim_start_matches('*');
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.trim().parse().ok(),
            Some(("size", value)) => size = value.trim().parse().ok(),
            _ => {}
        }
    }
    (!name.is_empty()).then_some((name.to_owned(), Field { offset: offset?, size: size? }))
}

/// The layout of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    timestamp: Field,
    commit: Field,
    data: usize,
}

impl PageLayout {
    /// Reads the text of `events/header_page`; `None` if a field is missing.
    pub fn parse(text: &str) -> Option<Self> {
        let format = Format::parse(text);
        Some(PageLayout {
            timestamp: format.field("timestamp")?,
            commit: format.field("commit")?,
            data: format.field("data")?.offset,
        })
    }

    /// Used bytes of a page: header and events, at most its size.
    pub fn used(&self, page: &[u8]) -> usize {
        let committed = self.commit.unsigned(page).unwrap_or(0) & COMMIT_MASK;
        usize::try_from(committed).unwrap_or(usize::MAX).saturating_add(self.data).min(page.len())
    }

    /// The events of a page.
    pub fn events<'a>(&self, page: &'a [u8]) -> Events<'a> {
        let (time_ns, end) = (self.timestamp.unsigned(page), self.used(page));
        // Without a header the page has no events.
        let rest = time_ns.and_then(|_| page.get(self.data..end)).unwrap_or(&[]);
        Events { rest, time_ns: time_ns.unwrap_or(0), at: self.data, is_damaged: time_ns.is_none() }
    }
}

/// Mask of the used bytes in the field `commit`. Higher bits flag events that were overwritten unread, which
/// `per_cpu/cpuN/stats` counts.
const COMMIT_MASK: u64 = (1 << 27) - 1;

/// Types of an event's header (`enum ring_buffer_type`); smaller numbers are lengths.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Bits of an absolute time in an event; the higher bits are those of the time before.
const STAMP_BITS: u32 = 59;

/// One event of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Ns of the instance's clock.
    pub time_ns: u64,
    /// The event's fields; the first ones are common to all events.
    pub data: &'a [u8],
}

/// A damaged page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a page of the trace buffer is damaged at byte {at}")]
pub struct Damaged {
    /// Offset of the damage in the page.
    pub at: usize,
}

/// The events of a page, in order. After damage there are no more.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    rest: &'a [u8],
    time_ns: u64,
    at: usize,
    is_damaged: bool,
}

impl<'a> Events<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.at += length;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    /// The next data; `Some(None)` at the end of the page, `None` if it is damaged.
    fn step(&mut self) -> Option<Option<Event<'a>>> {
        while !self.rest.is_empty() {
            let header = self.word()?;
            // Five bits of type and 27 of time, in the order of the host's bit fields.
            let (kind, delta) = if cfg!(target_endian = "little") {
                (header & 31, header >> 5)
            } else {
                (header >> 27, header & ((1 << 27) - 1))
            };
            let delta = u64::from(delta);
            match kind {
                PADDING if delta == 0 => {
                    self.rest = &[];
                }
                PADDING => {
                    // A discarded event. Its length includes the length word; its time counts.
                    self.time_ns = self.time_ns.wrapping_add(delta);
                    let length = usize::try_from(self.word()?).ok()?;
                    self.take(length.checked_sub(4)?)?;
                }
                TIME_EXTEND => {
                    let upper = u64::from(self.word()?) << 27;
                    self.time_ns = self.time_ns.wrapping_add(upper | delta);
                }
                TIME_STAMP => {
                    let stamp = (u64::from(self.word()?) << 27 | delta) & ((1 << STAMP_BITS) - 1);
                    self.time_ns = self.time_ns >> STAMP_BITS << STAMP_BITS | stamp;
                }
                _ => {
                    let length = if kind == 0 {
                        usize::try_from(self.word()?).ok()?.checked_sub(4)?
                    } else {
                        kind as usize * 4
                    };
                    self.time_ns = self.time_ns.wrapping_add(delta);
                    // Events begin at multiples of 4 bytes.
                    let data = self.take(length.checked_next_multiple_of(4)?)?;
                    return Some(Some(Event { time_ns: self.time_ns, data: data.get(..length)? }));
                }
            }
        }
        Some(None)
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if std::mem::take(&mut self.is_damaged) {
            return Some(Err(Damaged { at: 0 }));
        }
        let at = self.at;
        match self.step() {
            Some(event) => event.map(Ok),
            None => {
                self.rest = &[];
                Some(Err(Damaged { at }))
            }
        }
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
