//! Studies and their plans.
//!
//! A [`Study`] is one YAML file: classes, factors, objectives, repetitions. [`Plan`] expands it to its [`Run`]s in the order of
//! execution. A run is resolved completely: a runner reads nothing else.
//!
//! `spec.rs` and the files of its fields have the data. `validate.rs` and the `*_checks.rs` files check it, `cells.rs` combines
//! the levels, `plan.rs` makes the runs.

mod access;
mod access_classes;
mod admission;
mod admission_check;
mod alike;
mod cells;
mod comparison;
mod comparison_check;
mod context;
mod contract;
mod control_check;
mod control_group;
mod counterpart;
mod daemon_chain;
mod daemon_checks;
mod defaults;
mod device_scheduler;
mod devices;
mod estimate;
mod filesystem;
mod fs_option;
mod fs_option_checks;
mod host_checks;
mod hosts;
mod io_cost;
mod label;
mod level;
pub mod limits;
mod load_check;
mod name;
mod plan;
mod precision;
mod precision_check;
mod recipe;
mod rows;
mod run;
mod settings;
mod simulated;
mod site;
mod site_checks;
mod spec;
mod tasks;
mod testbed;
mod validate;
mod variant;

pub use access::{RunAccess, Size, StudyAccess, size_bytes};
pub use admission::{
    AdmissionFactors, AdmissionRule, AdmissionSettings, MIX, RotationBound, SeekBound, StreamLayout,
    StreamPolicy, TransferBound,
};
pub use comparison::Comparison;
pub use context::{Context, ServiceSettings};
pub use contract::Contract;
pub use control_group::{ControlGroup, IoMax, PrioClass};
pub use filesystem::{FileSystem, NetworkAccess};
pub use fs_option::{ByRole, FsOption};
pub use hosts::{Hosts, Lost};
pub use io_cost::{CostBounds, CostModel, IoCost};
pub use label::problem as label_problem;
pub use level::{Architecture, Scheduler};
pub use plan::{Plan, WHOLE_FORMAT};
pub use precision::{Precision, Stop};
pub use rows::to_rows;
pub use run::{Engine, Run, RunClass, RunDevice, RunService, SimulatedClass};
pub use site::{DATABASES, Site, SiteBenchmark};
pub use spec::{
    Capture, Class, Factors, Objective, Placement, Records, Settings, Storage, Study, StudyService,
};
pub use tasks::{TaskFile, TaskSpec};
pub use testbed::{Testbed, Testbeds};
