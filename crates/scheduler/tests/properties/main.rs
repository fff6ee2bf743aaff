//! What the policies promise, on random arrivals. What is general is tested on everything in `POLICIES`.

mod differential;
mod fairness;
mod general;
mod harness;
mod order;
mod references;
mod starvation;
