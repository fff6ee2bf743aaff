//! Warm start of a run: its files are read into the page cache, as far as they fit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use weir_study::{FileSystem, Run};
use weir_workload::Popularities;

use crate::Error;
use crate::daemon::site::Laid;
use crate::files::parallel;
use crate::files::placement::{Placement, file_path};
use crate::files::walk::each_file;
use crate::filesystem::network;

const PIECE_BYTES: usize = 1 << 20;
/// Bytes read, as a multiple of the memory: more would be evicted.
const MEMORIES: u64 = 2;

/// Reads the files of each class, the most popular ones last, as far as memory holds them, and all of each site's database.
///
/// # Errors
/// One cannot be read.
pub(crate) fn read(
    run: &Run,
    filesystem: &FileSystem,
    places: &[Placement],
    sites: &[Laid],
) -> Result<(), Error> {
    // Files of all classes, the least popular ones first.
    let mut files: Vec<(f64, &Placement, u32)> = Vec::new();
    for place in places.iter().filter(|place| !place.is_raw()) {
        let Some(recipe) = place.class.recipe.requests() else { continue };
        let ranks = Popularities::new(&recipe.files, &place.class.name, run.seed).rank_of_file();
        let rank = |file: u32| ranks.as_ref().map_or(file, |ranks| ranks[file as usize]);
        let count = recipe.files.count;
        files.extend((0..count).map(|file| (f64::from(rank(file)) / f64::from(count), place, file)));
    }
    files.sort_by(|one, other| other.0.total_cmp(&one.0));
    let fit = fitting(&files, memory_bytes(run, filesystem));
    let files = &files[files.len() - fit..];
    parallel::each(files.len(), network::writers(filesystem), Vec::new, |piece, at| {
        let (_, place, file) = files[at];
        let path = file_path(&place.path, file);
        whole_file(&path, piece).map_err(Error::io("cannot read", &path))
    })?;
    let mut piece = Vec::new();
    sites.iter().try_for_each(|laid| each_file(&laid.data, &mut |path| whole_file(path, &mut piece)))
}

/// Memory of all hosts that cache a run's files, in bytes.
fn memory_bytes(run: &Run, filesystem: &FileSystem) -> u64 {
    let settings = &run.settings;
    let Some(own) = settings.memory_mib else { return u64::MAX };
    let servers = if filesystem.network.is_some() { run.devices.len() as u64 } else { 0 };
    // The memory of hosts outside the run is not known.
    if filesystem.mounted {
        u64::MAX
    } else {
        (own + servers * settings.server_memory_mib.unwrap_or(own)) << 20
    }
}

/// Number of last files with this total size.
fn fitting(files: &[(f64, &Placement, u32)], memory_bytes: u64) -> usize {
    let mut room_bytes = memory_bytes.saturating_mul(MEMORIES);
    let fits = |(_, place, file): &&(f64, &Placement, u32)| {
        let size_bytes = place.files.sizes_bytes()[*file as usize];
        let enough = room_bytes > 0;
        room_bytes = room_bytes.saturating_sub(size_bytes);
        enough
    };
    files.iter().rev().take_while(fits).count()
}

fn whole_file(path: &Path, piece: &mut Vec<u8>) -> io::Result<()> {
    piece.resize(PIECE_BYTES, 0);
    let mut file = File::open(path)?;
    while file.read(piece)? > 0 {}
    Ok(())
}
