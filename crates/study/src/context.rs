//! Names that a study may refer to: workloads, device profiles, site benchmarks, daemons.

use std::collections::BTreeMap;

use weir_specs::Setting;
use weir_workload::Catalog;

use crate::site::SiteBenchmark;

/// What a study may refer to.
pub struct Context<'a> {
    /// The workloads at hand.
    pub workloads: &'a Catalog,
    /// Names of the device profiles.
    pub profiles: &'a [&'a str],
    /// The benchmarks of sites.
    pub benchmarks: &'a [SiteBenchmark],
    /// The services, with what a study may set of them.
    pub services: &'a [ServiceSettings],
}

/// What a study has to know of a service.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Its name.
    pub name: String,
    /// Its settings by name.
    pub settings: BTreeMap<String, Setting>,
}
