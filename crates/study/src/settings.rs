//! Checks of the settings of daemons.

use std::collections::BTreeMap;

use weir_specs::{Setting, one_of};

use crate::context::Context;

/// Problems of the settings of a daemon, by field below `at`. An unknown daemon is reported elsewhere.
pub(crate) fn check(
    service: &str,
    at: &str,
    set: &BTreeMap<String, String>,
    context: &Context<'_>,
) -> Vec<(String, String)> {
    let Some(known) = context.services.iter().find(|known| known.name == service) else { return Vec::new() };
    let of_studies = |(_, setting): &(&String, &Setting)| setting.kind.is_of_studies();
    let problem = |name: &String, value: &str| match known.settings.get(name) {
        Some(setting) if setting.kind.is_of_studies() => setting.kind.problem(value),
        Some(_) => Some("names a file of the host, which a study must not name: leave it out".to_owned()),
        None => {
            let names = known.settings.iter().filter(of_studies).map(|(name, _)| name.as_str());
            Some(one_of("setting", name, names))
        }
    };
    let problem = |(name, value): (&String, &String)| Some((format!("{at}.{name}"), problem(name, value)?));
    set.iter().filter_map(problem).collect()
}
