//! Writing the files of a class, so that what is read later has been written: reads of blocks that were never written do
//! not reach the device.

use std::fs;
use std::io;
use std::path::Path;

use weir_replayer::fill::{Filler, open};
use weir_replayer::pattern::Key;

use crate::Error;
use crate::place::{Place, file_path};

/// Writes all files of a class.
///
/// # Errors
/// The device is full or failed.
pub(crate) fn fill(place: &Place, seed: u64) -> Result<(), Error> {
    let mut filler = Filler::default();
    if place.is_raw() {
        let file = open(&place.path, false).map_err(failed(&place.path))?;
        for (offset, size) in place.offsets_bytes.iter().zip(place.files.sizes_bytes()) {
            // On a raw device the replayer knows no files: the pattern is the device's.
            let key = Key::new(&place.class.name, None, seed);
            filler.write(&file, key, *offset, *offset, *size).map_err(failed(&place.path))?;
        }
        return file.sync_all().map_err(failed(&place.path));
    }
    fs::create_dir_all(&place.path).map_err(failed(&place.path))?;
    for (id, size) in (0..).zip(place.files.sizes_bytes()) {
        let path = file_path(&place.path, id);
        let key = Key::new(&place.class.name, Some(id), seed);
        filler.file(&path, key, *size).map_err(failed(&path))?;
    }
    Ok(())
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    Error::io("cannot fill", path)
}
