//! Index of the folder `testbeds/`: the name and the text of every YAML file in it.
//!
//! The build script makes the index from the files in the folder: a new file needs no line of Rust. The texts are
//! compiled in: the binary needs no folder.

/// The files of one folder of `testbeds/`.
#[derive(Debug, Clone, Copy)]
pub struct Index(&'static [(&'static str, &'static str)]);

impl Index {
    /// Names of the files without `.yml`, sorted.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// The text of a file by name; `None` if no file has the name.
    pub fn text(self, name: &str) -> Option<&'static str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }
}

include!(concat!(env!("OUT_DIR"), "/index.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_in_the_index_once() {
        for (index, folder) in
            [(CLUSTERS, "clusters"), (DAEMONS, "daemons"), (DISKS, "disks"), (FILESYSTEMS, "filesystems")]
        {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbeds").join(folder);
            let mut files: Vec<_> =
                std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
            files.sort_by_key(|file| file.file_stem().map(std::ffi::OsStr::to_owned));
            let indexed: Vec<_> = index.names().map(|name| folder.join(format!("{name}.yml"))).collect();
            assert_eq!(indexed, files);
            for (name, file) in index.names().zip(&files) {
                assert_eq!(index.text(name), Some(std::fs::read_to_string(file).unwrap().as_str()), "{name}");
            }
        }
        assert_eq!(DISKS.text("no-such-disk"), None);
    }
}
