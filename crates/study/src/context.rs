//! Names that a study may refer to: workloads, device profiles, site benchmarks, daemons.

use std::collections::BTreeMap;

use weir_specs::Setting;
use weir_workload::Catalog;

use crate::site::SiteBenchmark;

/// Names that a study may refer to.
pub struct Context<'a> {
    /// The workloads.
    pub workloads: &'a Catalog,
    /// Names of the device profiles.
    pub profiles: &'a [&'a str],
    /// The benchmarks of web sites.
    pub benchmarks: &'a [SiteBenchmark],
    /// The daemons, with their settings.
    pub services: &'a [ServiceSettings],
    /// The label of all runs. That of the study if absent.
    pub label: Option<&'a str>,
}

/// Name and settings of a daemon.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Its name.
    pub name: String,
    /// Its settings by name.
    pub settings: BTreeMap<String, Setting>,
}
