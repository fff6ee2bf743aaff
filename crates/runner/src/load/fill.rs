//! Files of a class, written before they are read: reads of unwritten blocks do not reach the device.

use std::fs;
use std::io;
use std::path::Path;

use weir_content::fill::{Filler, open};
use weir_content::pattern::Key;

use crate::Error;
use crate::files::parallel;
use crate::files::placement::{Placement, file_path};

/// Writes all files of a class. On a disk one `writer` lays them out one after the other, equally in every run; several
/// writers save round trips over a network.
///
/// # Errors
/// The device is full or failed.
pub(crate) fn fill(place: &Placement, seed: u64, writers: usize) -> Result<(), Error> {
    if place.is_raw() {
        let mut filler = Filler::default();
        let file = open(&place.path, false).map_err(failed(&place.path))?;
        for (offset, size) in place.offsets_bytes.iter().zip(place.files.sizes_bytes()) {
            // On a raw device the replayer knows no files, and checks the pattern of the device.
            let key = Key::new(&place.class.name, None, seed);
            filler.write(&file, key, *offset, *offset, *size).map_err(failed(&place.path))?;
        }
        return file.sync_all().map_err(failed(&place.path));
    }
    fs::create_dir_all(&place.path).map_err(failed(&place.path))?;
    let sizes_bytes = place.files.sizes_bytes();
    parallel::each(sizes_bytes.len(), writers, Filler::default, |filler, at| {
        let id = u32::try_from(at).unwrap_or(u32::MAX);
        let path = file_path(&place.path, id);
        let key = Key::new(&place.class.name, Some(id), seed);
        filler.file(&path, key, sizes_bytes[at]).map_err(failed(&path))
    })
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    Error::io("cannot fill", path)
}
