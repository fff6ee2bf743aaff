//! Workload of a class: requests, or sessions if the class goes through a site.

use std::path::Path;

use weir_specs::{Document, Problems, one_of};
use weir_workload::sessions::{AnyWorkload, SessionModel, SessionWorkload};

use crate::context::Context;
use crate::daemon_chain;
use crate::site::{Site, SiteBenchmark};
use crate::spec::{Class, Study};

/// Finds, changes and checks the workload of a class. `field` is that of the class.
///
/// # Errors
/// All its problems.
pub(crate) fn resolve(
    study: &Study,
    class: &Class,
    field: &str,
    context: &Context<'_>,
    document: &Document,
) -> Result<AnyWorkload, Problems> {
    let catalog = context.workloads;
    let problem =
        |at: &str, message: String| Problems::from(document.problem(format!("{field}.{at}"), message));
    let service = class.through.as_ref().and_then(|through| daemon_chain::last(study, through));
    let site = service.and_then(|service| service.site.as_ref());
    let of_requests = catalog.names().any(|name| name == class.workload);
    if let Some(site) = site {
        return of_site(class, site, field, context, document);
    }
    if let Some(reason) = catalog.no_requests(&class.workload) {
        let remedy = "use it in a class that goes `through` a service with a `site`";
        return Err(problem("workload", format!("{reason}; {remedy}")));
    }
    if !of_requests {
        let known: Vec<&str> = catalog.names().collect();
        return Err(problem("workload", one_of("workload", &class.workload, known)));
    }
    let workload =
        catalog.load(&class.workload)?.with_overrides(&class.with, document, &format!("{field}.with"))?;
    if let Err((at, message)) = workload.look_for_recording(catalog.folder_of(&class.workload)) {
        let given = class.with.contains_key(at);
        return Err(problem(&if given { format!("with.{at}") } else { "workload".to_owned() }, message));
    }
    Ok(AnyWorkload::Requests(Box::new(workload)))
}

/// The sessions of a class that goes through a site.
fn of_site(
    class: &Class,
    site: &Site,
    field: &str,
    context: &Context<'_>,
    document: &Document,
) -> Result<AnyWorkload, Problems> {
    let catalog = context.workloads;
    let at = format!("{field}.workload");
    let suitable =
        || catalog.session_names().filter(|name| name.starts_with(&format!("{}-", site.benchmark)));
    if !catalog.session_names().any(|name| name == class.workload) {
        let message = if catalog.names().any(|name| name == class.workload) {
            let names: Vec<&str> = suitable().collect();
            format!(
                "`{}` is a workload of requests, but site {} needs one of sessions: use one of {}",
                class.workload,
                class.through.as_deref().unwrap_or_default(),
                names.join(", ")
            )
        } else {
            one_of("workload of sessions", &class.workload, suitable())
        };
        return Err(document.problem(at, message).into());
    }
    let AnyWorkload::Sessions(workload) = catalog.load_any(&class.workload)? else {
        return Err(document.problem(at, "has no sessions").into());
    };
    if let Some(benchmark) = context.benchmarks.iter().find(|known| known.name == site.benchmark)
        && let Some(page) = foreign_page(&workload, catalog.folder_of(&class.workload), benchmark)?
    {
        let names: Vec<&str> = suitable().collect();
        let message = format!(
            "`{}` requests page {page}, which {} does not have: use one of {}",
            class.workload,
            benchmark.name,
            names.join(", ")
        );
        return Err(document.problem(at, message).into());
    }
    let workload = workload.with_overrides(
        &class.with,
        catalog.folder_of(&class.workload),
        document,
        &format!("{field}.with"),
    )?;
    Ok(AnyWorkload::Sessions(workload))
}

/// A page of a workload that a site does not have. The name of a page is that of its state, reduced to letters and
/// digits.
fn foreign_page(
    workload: &SessionWorkload,
    folder: &Path,
    benchmark: &SiteBenchmark,
) -> Result<Option<String>, Problems> {
    let model = SessionModel::open(workload, folder)?;
    let page = |state: &str| state.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let mut pages = model.table().states().iter().map(|state| page(state));
    Ok(pages.find(|page| !benchmark.pages.contains(&page.as_str())))
}

/// Makes the path of a recording or a table absolute. It is relative to `folder`.
pub(crate) fn make_absolute(workload: &mut AnyWorkload, folder: &Path) {
    if let Some(path) = workload.recording()
        && let Ok(absolute) = std::path::absolute(folder.join(&*path))
    {
        *path = absolute;
    }
}
