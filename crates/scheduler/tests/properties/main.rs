//! Guarantees of the policies on random arrivals. General ones are tested on all of `POLICIES`.

mod differential;
mod fairness;
mod general;
mod harness;
mod order;
mod recorded;
mod references;
mod starvation;
