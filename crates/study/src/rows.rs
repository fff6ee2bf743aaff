//! JSON with a line for each run.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Values this deep, such as each run of a plan, have one line.
const INLINE_DEPTH: usize = 2;

/// The text of a plan: JSON that is indented to the items of its fields.
///
/// # Errors
/// Those of the value.
pub fn to_rows(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Rows::default()))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

#[derive(Default)]
struct Rows {
    depth: usize,
    is_empty: bool,
}

impl Rows {
    fn begin(&mut self, out: &mut (impl Write + ?Sized), bracket: u8) -> io::Result<()> {
        self.depth += 1;
        self.is_empty = true;
        out.write_all(&[bracket])
    }

    fn item(&self, out: &mut (impl Write + ?Sized), is_first: bool) -> io::Result<()> {
        if !is_first {
            out.write_all(b",")?;
        }
        if self.depth <= INLINE_DEPTH {
            self.break_line(out)
        } else if is_first {
            Ok(())
        } else {
            out.write_all(b" ")
        }
    }

    fn end(&mut self, out: &mut (impl Write + ?Sized), bracket: u8) -> io::Result<()> {
        let is_inline = self.depth > INLINE_DEPTH;
        self.depth -= 1;
        if !is_inline && !self.is_empty {
            self.break_line(out)?;
        }
        self.is_empty = false;
        out.write_all(&[bracket])
    }

    fn break_line(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        write!(out, "\n{:1$}", "", 2 * self.depth)
    }
}

impl Formatter for Rows {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b'[')
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b']')
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.item(out, is_first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_empty = false;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b'{')
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b'}')
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.item(out, is_first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_empty = false;
        Ok(())
    }
}
