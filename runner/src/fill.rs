//! Writing the files of a class, so that what is read later has been written: reads of blocks that were never written do
//! not reach the device.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use weir_replayer::fill::{Filler, open};
use weir_replayer::pattern::Key;

use crate::Error;
use crate::place::{Place, file_path};

/// Writes all files of a class. On a disk one `writer` lays them down one behind the other, the same in every run; several
/// save the time of many answers over a network.
///
/// # Errors
/// The device is full or failed.
pub(crate) fn fill(place: &Place, seed: u64, writers: usize) -> Result<(), Error> {
    if place.is_raw() {
        let mut filler = Filler::default();
        let file = open(&place.path, false).map_err(failed(&place.path))?;
        for (offset, size) in place.offsets_bytes.iter().zip(place.files.sizes_bytes()) {
            // On a raw device the replayer knows no files: the pattern is the device's.
            let key = Key::new(&place.class.name, None, seed);
            filler.write(&file, key, *offset, *offset, *size).map_err(failed(&place.path))?;
        }
        return file.sync_all().map_err(failed(&place.path));
    }
    fs::create_dir_all(&place.path).map_err(failed(&place.path))?;
    let sizes_bytes = place.files.sizes_bytes();
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), Error> {
        let mut filler = Filler::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((size_bytes, id)) = sizes_bytes.get(at).zip(u32::try_from(at).ok()) else {
                return Ok(());
            };
            let path = file_path(&place.path, id);
            let key = Key::new(&place.class.name, Some(id), seed);
            filler.file(&path, key, *size_bytes).map_err(failed(&path))?;
        }
    };
    if writers < 2 {
        return work();
    }
    thread::scope(|scope| {
        let workers: Vec<_> = (0..writers).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|_| Err(Error::Failed("a thread that wrote files fell".to_owned())))
        });
        // All are waited for, whatever one of them says.
        done.collect::<Vec<_>>().into_iter().collect()
    })
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    Error::io("cannot fill", path)
}
