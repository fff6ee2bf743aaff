//! Entry points of fuzz targets: parsers of bytes from outside. Not part of the interface.

use std::io::BufReader;

/// A request of HTTP, and the form in it.
pub fn request(data: &[u8]) {
    let mut from = BufReader::new(data);
    while crate::http::request::read(&mut from).is_ok() {}
    let _ = crate::http::form::pairs(&String::from_utf8_lossy(data));
}

/// Data from a database server: messages of PostgreSQL, packets of MariaDB.
pub fn database(data: &[u8]) {
    crate::database::fuzzing(data);
}

/// The address of a database, as text.
pub fn address(text: &str) {
    let _ = text.parse::<crate::database::Address>();
}
