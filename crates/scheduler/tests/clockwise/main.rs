//! The policies with contracts: the counter-examples of their sources to the unit, and deadlines on random sets.

mod examples;
mod extra;
mod harness;
mod misses;
