//! Documents of a class: paths and contents.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_content::file_name;
use weir_content::pattern::Key;
use weir_workload::FileSet;

/// More files than this in one folder are fanned out.
const FLAT_FILES: usize = 10_000;
/// Files of one folder where they are fanned out.
const FOLDER_FILES: u32 = 1000;
/// Memory for cached contents of documents, which saves computing them for every comparison.
const CACHE_BYTES: u64 = 256 << 20;
/// Larger documents are generated and compared while they are received.
const LARGEST_CACHED_BYTES: u64 = 4 << 20;

/// Where the documents of a class lie in their folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folders {
    /// All in one: `000000.dat`, `000001.dat`, ..., as `weir run` lays out the files of a class.
    One,
    /// A thousand in each: `000/000000.dat`, ..., `001/001000.dat`, ...
    Thousands,
}

impl Folders {
    /// Default layout for a number of documents: one folder up to 10,000.
    pub fn of(files: usize) -> Self {
        if files > FLAT_FILES { Folders::Thousands } else { Folders::One }
    }
}

/// The documents of a class: names, sizes and contents follow from workload, class and seed, as those of `weir run`.
#[derive(Debug)]
pub struct Documents {
    class: String,
    seed: u64,
    files: FileSet,
    folders: Folders,
    cache: Vec<OnceLock<Box<[u8]>>>,
    cache_room_bytes: AtomicU64,
}

impl Documents {
    /// The documents of a file set.
    pub fn new(files: FileSet, class: &str, seed: u64, folders: Folders) -> Self {
        let cache = files.sizes_bytes().iter().map(|_| OnceLock::new()).collect();
        Documents {
            class: class.to_owned(),
            seed,
            files,
            folders,
            cache,
            cache_room_bytes: AtomicU64::new(CACHE_BYTES),
        }
    }

    /// The class that they belong to.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// The seed of their bytes.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How they are laid out.
    pub fn folders(&self) -> Folders {
        self.folders
    }

    /// Bytes of each document, by its number.
    pub fn sizes_bytes(&self) -> &[u64] {
        self.files.sizes_bytes()
    }

    /// Bytes of all documents.
    pub fn total_bytes(&self) -> u64 {
        self.files.total_bytes()
    }

    /// Subfolder of a document; absent if the document is in the folder itself.
    pub fn folder(&self, number: u32) -> Option<String> {
        (self.folders == Folders::Thousands).then(|| format!("{:03}", number / FOLDER_FILES))
    }

    /// Path of a document in the folder.
    pub fn path(&self, number: u32) -> String {
        match self.folder(number) {
            Some(folder) => format!("{folder}/{}", file_name(number)),
            None => file_name(number),
        }
    }

    /// Appends `/` and [`Documents::path`], without a detour through the heap.
    pub(crate) fn append_path(&self, number: u32, to: &mut String) {
        let written = match self.folders {
            Folders::One => write!(to, "/{number:06}.dat"),
            Folders::Thousands => write!(to, "/{:03}/{number:06}.dat", number / FOLDER_FILES),
        };
        debug_assert!(written.is_ok(), "writing to a String does not fail");
    }

    /// Content of a document.
    pub fn key(&self, number: u32) -> Key {
        Key::new(&self.class, Some(number), self.seed)
    }

    /// Whether these are the bytes of a document from `offset_bytes` on. False for a document that there is not.
    pub fn matches(&self, number: u32, offset_bytes: u64, found: &[u8]) -> bool {
        let Some(&size) = self.sizes_bytes().get(number as usize) else { return false };
        if offset_bytes + found.len() as u64 > size {
            return false;
        }
        match self.content(number, size) {
            // Within the content: the sum above is at most its length.
            Some(content) => &content[offset_bytes as usize..][..found.len()] == found,
            None => self.key(number).matches(offset_bytes, found),
        }
    }

    /// The bytes of a document from the cache, into which it is put if there is room.
    fn content(&self, number: u32, size: u64) -> Option<&[u8]> {
        let kept = &self.cache[number as usize];
        if let Some(content) = kept.get() {
            return Some(content);
        }
        let take = |room: u64| (size <= LARGEST_CACHED_BYTES).then(|| room.checked_sub(size)).flatten();
        self.cache_room_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        let mut made = false;
        let content = kept.get_or_init(|| {
            made = true;
            let mut content = vec![0; size as usize].into_boxed_slice();
            self.key(number).fill(0, &mut content);
            content
        });
        if !made {
            // Another thread was first and has paid for it.
            self.cache_room_bytes.fetch_add(size, Ordering::Relaxed);
        }
        Some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_workload::{Distribution, Files, Popularity};

    fn documents(count: u32, bytes: u64, folders: Folders) -> Documents {
        let files = Files {
            count,
            size: Distribution::Fixed { bytes },
            stratified: false,
            popularity: Popularity::Uniform,
        };
        Documents::new(FileSet::new(&files, "web", 3), "web", 3, folders)
    }

    #[test]
    fn paths_are_fixed() {
        let flat = documents(2, 4096, Folders::of(2));
        let fanned = documents(12_001, 4096, Folders::of(12_001));
        assert_eq!(flat.path(1), "000001.dat");
        assert_eq!(fanned.path(12_000), "012/012000.dat");
        for (documents, number) in [(&flat, 1), (&fanned, 0), (&fanned, 12_000)] {
            let mut appended = "x".to_owned();
            documents.append_path(number, &mut appended);
            assert_eq!(appended, format!("x/{}", documents.path(number)));
        }
    }

    #[test]
    fn bytes_are_told_apart_whether_cached_or_not() {
        // 4 MiB and a page: not cached.
        for bytes in [8192, LARGEST_CACHED_BYTES + 4096] {
            let documents = documents(3, bytes, Folders::One);
            let mut content = vec![0; bytes as usize];
            documents.key(1).fill(0, &mut content);
            for _ in 0..2 {
                assert!(documents.matches(1, 0, &content));
                assert!(documents.matches(1, 4099, &content[4099..5000]));
                assert!(!documents.matches(2, 0, &content) && !documents.matches(3, 0, &content));
                assert!(!documents.matches(1, 1, &content), "beyond the end");
            }
            content[5000] ^= 1;
            assert!(!documents.matches(1, 0, &content));
        }
        let documents = documents(3, 8192, Folders::One);
        documents.matches(0, 0, &[]);
        documents.matches(0, 0, &[]);
        documents.matches(2, 0, &[]);
        assert_eq!(documents.cache_room_bytes.into_inner(), CACHE_BYTES - 2 * 8192);
    }

    #[test]
    fn a_full_cache_takes_no_more_and_comparisons_go_on() {
        let documents = documents(2, 4096, Folders::One);
        documents.cache_room_bytes.store(5000, Ordering::Relaxed);
        let mut content = vec![0; 4096];
        for number in 0..2 {
            documents.key(number).fill(0, &mut content);
            assert!(documents.matches(number, 0, &content));
        }
        assert!(documents.cache[0].get().is_some() && documents.cache[1].get().is_none());
    }
}
