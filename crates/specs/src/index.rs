//! Index of the specifications in a folder: `NAME.yml`, at any depth.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::problem::{Problem, Problems};

/// Most levels of folders that are searched. A link to a parent folder would never end.
const DEEPEST: usize = 8;

/// The `*.yml` files in a folder and the folders below it, by name. Hidden entries and folders called `except` are left out.
///
/// # Errors
/// A folder cannot be read, is more than 8 deep, or two files have one name.
pub fn files_by_name(folder: &Path, except: &[&str]) -> Result<BTreeMap<String, PathBuf>, Problems> {
    let mut found = BTreeMap::new();
    search(folder, except, DEEPEST, &mut found)?;
    Ok(found)
}

fn search(
    folder: &Path,
    except: &[&str],
    deeper: usize,
    found: &mut BTreeMap<String, PathBuf>,
) -> Result<(), Problems> {
    let problem = |file: &Path, message: String| {
        Problems::from(Problem { file: file.to_owned(), line: None, field: String::new(), message })
    };
    let failed = |error: std::io::Error| problem(folder, format!("cannot be listed: {error}"));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            if except.contains(&name) {
                continue;
            }
            if deeper == 0 {
                return Err(problem(&path, format!("is more than {DEEPEST} folders deep: move it up")));
            }
            search(&path, except, deeper - 1, found)?;
        } else if let Some(stem) = name.strip_suffix(".yml")
            && let Some(other) = found.insert(stem.to_owned(), path.clone())
        {
            let message = format!("has the name of {}: rename one of them", other.display());
            return Err(problem(&path, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn files_are_found_at_any_depth() {
        let folder = tree(&["a.yml", "papers/x/b.yml", "tables/c.yml", ".git/d.yml", "e.txt"]);
        let found = files_by_name(folder.path(), &["tables"]).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(found["b"], folder.path().join("papers/x/b.yml"));
    }

    #[test]
    fn two_files_of_one_name_are_refused() {
        let folder = tree(&["a.yml", "papers/a.yml"]);
        let found = files_by_name(folder.path(), &[]).unwrap_err().to_string();
        assert!(found.contains("papers/a.yml") && found.contains("rename"), "{found}");
    }

    #[test]
    fn a_link_to_a_folder_above_ends() {
        let folder = tree(&["x/a.txt"]);
        std::os::unix::fs::symlink(folder.path(), folder.path().join("x/up")).unwrap();
        assert!(files_by_name(folder.path(), &[]).unwrap_err().to_string().contains("deep"));
    }
}
