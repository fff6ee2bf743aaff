//! Check of the levels of `load`: each must change the number of clients.

use std::collections::BTreeMap;

use crate::cells::settings_of_cells;
use crate::spec::Study;
use crate::testbed::Testbed;

/// The number of clients of a class at a load.
pub(crate) fn clients_at(clients: u32, load: f64) -> u32 {
    ((f64::from(clients) * load).round() as u32).max(1)
}

/// Problems, by field: two loads with equal numbers of clients of a class would be one level under two names.
pub(crate) fn check(study: &Study, testbed: Testbed) -> Vec<(String, String)> {
    if testbed == Testbed::Admission || study.factors.load.as_ref().is_none_or(|loads| loads.len() < 2) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (name, class) in &study.classes {
        let mut loads: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for settings in settings_of_cells(study) {
            let clients = settings.clients.get(name).copied().unwrap_or(class.clients);
            if clients == 0 {
                continue;
            }
            let at = clients_at(clients, settings.load);
            let load = *loads.entry((clients, at)).or_insert(settings.load);
            if load != settings.load {
                let message = format!(
                    "has the levels {load} and {}, at both of which class {name} has {at} of its {clients} clients: use \
                     more clients, or loads that differ by a client",
                    settings.load
                );
                found.push(("factors.load".to_owned(), message));
                break;
            }
        }
    }
    found
}
