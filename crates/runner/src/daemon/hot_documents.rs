//! Hot documents: the most popular files of a web server's classes, copied to and served from memory.
//!
//! The hybrid file system of Vaidyanathan et al., section 4.5.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_content::fill::Filler;
use weir_content::{file_name, pattern::Key};
use weir_daemons::Hot;
use weir_records::Request;
use weir_study::{Run, RunService};
use weir_workload::Popularities;

use crate::Error;
use crate::context::child_processes;
use crate::context::journal::{Change, Journal};
use crate::files::placement::{Placement, file_path};

/// Hot documents of a daemon.
pub(crate) struct HotDocuments {
    /// Name of the daemon.
    pub(crate) service: String,
    folder: PathBuf,
    classes: Vec<HotFiles>,
}

/// Hot documents of a class.
struct HotFiles {
    class: String,
    files: Vec<u32>,
    size_bytes: u64,
    /// Expected share of the class's requests, by popularity.
    expected_share: f64,
}

/// Hot documents of a class and their requests: `hot` of `observed.json`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct HotUse {
    /// Number of files in memory.
    files: usize,
    /// Bytes of these files.
    size_bytes: u64,
    /// Expected share of the class's requests.
    expected_share: f64,
    /// Requests of the measured interval.
    requests: u64,
    /// Observed share of these requests.
    measured_share: Option<f64>,
}

/// Whether a daemon serves the files of a class.
pub(crate) fn is_behind(run: &Run, place: &Placement, service: &str) -> bool {
    run.services_of(&place.class).last().is_some_and(|last| last.name == service)
}

impl HotDocuments {
    /// Folder and paths for the daemon's configuration.
    pub(crate) fn served(&self) -> Hot {
        let of = |class: &HotFiles| {
            let name = class.class.clone();
            class.files.iter().map(move |file| format!("/{name}/{}", file_name(*file))).collect::<Vec<_>>()
        };
        Hot { folder: self.folder.clone(), uris: self.classes.iter().flat_map(of).collect() }
    }

    /// No requests for hot documents yet.
    pub(crate) fn count(&self) -> HotCount<'_> {
        let sorted = |class: &HotFiles| {
            let mut files = class.files.clone();
            files.sort_unstable();
            files
        };
        let classes = self.classes.iter();
        let classes = classes.map(|class| ClassCount { class, files: sorted(class), requests: 0, hits: 0 });
        HotCount { service: &self.service, classes: classes.collect() }
    }
}

/// Count of the requests of the measured interval for hot documents of a daemon.
pub(crate) struct HotCount<'a> {
    pub(crate) service: &'a str,
    classes: Vec<ClassCount<'a>>,
}

struct ClassCount<'a> {
    class: &'a HotFiles,
    /// Sorted.
    files: Vec<u32>,
    requests: u64,
    hits: u64,
}

impl HotCount<'_> {
    /// Adds a request.
    pub(crate) fn add(&mut self, row: &Request) {
        if row.warmup {
            return;
        }
        for count in self.classes.iter_mut().filter(|count| *row.class == *count.class.class) {
            count.requests += 1;
            count.hits += u64::from(row.file.is_some_and(|file| count.files.binary_search(&file).is_ok()));
        }
    }

    /// Requests for hot documents, by class.
    pub(crate) fn used(&self) -> BTreeMap<String, HotUse> {
        let of = |count: &ClassCount<'_>| {
            let (class, requests) = (count.class, count.requests);
            let measured_share = (requests > 0).then(|| count.hits as f64 / requests as f64);
            let (expected_share, size_bytes) = (class.expected_share, class.size_bytes);
            let files = count.files.len();
            (class.class.clone(), HotUse { files, size_bytes, expected_share, requests, measured_share })
        };
        self.classes.iter().map(of).collect()
    }
}

/// Mounts a tmpfs for the hot documents of each daemon that has some, and writes them there.
///
/// # Errors
/// The host refuses, or the names of two classes differ only in capitals.
pub(crate) fn lay_out(
    run: &Run,
    places: &[Placement],
    state: &Path,
    journal: &mut Journal,
) -> Result<Vec<HotDocuments>, Error> {
    let mut all = Vec::new();
    for service in &run.services {
        if let Some(hot_mib) = service.hot_mib {
            all.push(of_service(run, service, hot_mib, places, state, journal)?);
        }
    }
    Ok(all)
}

fn of_service(
    run: &Run,
    service: &RunService,
    hot_mib: u64,
    places: &[Placement],
    state: &Path,
    journal: &mut Journal,
) -> Result<HotDocuments, Error> {
    let own: Vec<&Placement> = places.iter().filter(|place| is_behind(run, place, &service.name)).collect();
    for (index, place) in own.iter().enumerate() {
        let is_alike = |other: &&&Placement| other.class.name.eq_ignore_ascii_case(&place.class.name);
        if let Some(other) = own[..index].iter().find(is_alike) {
            return Err(Error::Refused(format!(
                "service {}: the names of classes {} and {} differ only in capitals, which nginx does not distinguish. Rename one",
                service.name, other.class.name, place.class.name
            )));
        }
    }
    let classes = chosen(&own, run.seed, hot_mib << 20)?;
    let folder = state.join("mnt").join(format!("hot.{}", service.name));
    fs::create_dir_all(&folder).map_err(Error::io("cannot make", &folder))?;
    let source = format!("weir-hot-{}", run.id);
    journal.note(Change::Mounted { point: folder.clone(), source: source.clone().into() })?;
    let inodes = classes.iter().map(|class| class.files.len() + 1).sum::<usize>() + 16;
    let options = format!("size={hot_mib}m,nr_inodes={inodes},mode=0755,nosuid,nodev,noexec");
    child_processes::run(
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", &options, &source]).arg(&folder),
    )?;
    let mut filler = Filler::default();
    for (place, class) in own.iter().zip(&classes) {
        let within = folder.join(&class.class);
        fs::create_dir_all(&within).map_err(Error::io("cannot make", &within))?;
        for file in &class.files {
            let path = file_path(&within, *file);
            let key = Key::new(&class.class, Some(*file), run.seed);
            let size_bytes = place.files.sizes_bytes()[*file as usize];
            filler.file(&path, key, size_bytes).map_err(Error::io("cannot fill", &path))?;
        }
    }
    Ok(HotDocuments { service: service.name.clone(), folder, classes })
}

/// The most popular files up to the first that exceeds the budget. Files of several classes are compared by their expected
/// share of their class's requests, times its clients.
fn chosen(places: &[&Placement], seed: u64, budget_bytes: u64) -> Result<Vec<HotFiles>, Error> {
    let mut candidates = Vec::new();
    for (index, place) in places.iter().enumerate() {
        let Some(recipe) = place.class.recipe.requests() else { continue };
        let files = &recipe.files;
        let ranked = Popularities::new(files, &place.class.name, seed).ranked(files).ok_or_else(|| {
            Error::Refused(format!(
                "class {}: its files are equally popular, and none is hot. Leave hot_mib out",
                place.class.name
            ))
        })?;
        let sizes_bytes = place.files.sizes_bytes();
        let clients = f64::from(place.class.clients);
        candidates.extend(ranked.into_iter().map(|(file, share)| Candidate {
            class: index,
            file,
            share,
            weight: share * clients,
            size_bytes: sizes_bytes[file as usize],
        }));
    }
    let none = |place: &&Placement| HotFiles {
        class: place.class.name.clone(),
        files: Vec::new(),
        size_bytes: 0,
        expected_share: 0.0,
    };
    let mut classes: Vec<HotFiles> = places.iter().map(none).collect();
    for candidate in within(candidates, budget_bytes) {
        let class = &mut classes[candidate.class];
        class.files.push(candidate.file);
        class.size_bytes += candidate.size_bytes;
        class.expected_share += candidate.share;
    }
    Ok(classes)
}

/// Candidate for a hot document.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    /// Number of its class.
    class: usize,
    file: u32,
    /// Share of its class's requests.
    share: f64,
    /// Weight, comparable between classes.
    weight: f64,
    size_bytes: u64,
}

fn within(mut candidates: Vec<Candidate>, budget_bytes: u64) -> Vec<Candidate> {
    // A stable sort: equal weights keep their order.
    candidates.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let mut left_bytes = budget_bytes;
    let fits = |candidate: &Candidate| {
        let left = left_bytes.checked_sub(candidate.size_bytes);
        left_bytes = left.unwrap_or(0);
        left.is_some()
    };
    candidates.into_iter().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularity_decides_until_the_first_that_does_not_fit() {
        let of =
            |class, file, weight, size_bytes| Candidate { class, file, share: weight, weight, size_bytes };
        let all = vec![of(0, 5, 0.5, 100), of(0, 6, 0.3, 300), of(0, 7, 0.1, 1), of(1, 0, 0.4, 100)];
        let files = |budget| within(all.clone(), budget).iter().map(|one| one.file).collect::<Vec<_>>();
        assert_eq!(files(1000), [5, 0, 6, 7]);
        // A smaller one further down that would still fit is not taken.
        assert_eq!(files(499), [5, 0]);
        assert_eq!(files(200), [5, 0]);
        assert_eq!(files(99), [] as [u32; 0]);
    }
}
