//! TPC-W, RUBiS and RUBBoS: database contents, application server, clients and consistency checks.

mod account;
pub mod benchmark;
pub mod browse;
pub mod check;
pub mod database;
mod definition;
mod error;
mod facts;
#[doc(hidden)]
pub mod fuzzing;
pub mod hot;
pub mod http;
mod list;
pub mod load;
mod once;
mod population;
pub mod rubbos;
pub mod rubis;
pub mod schema;
pub mod text;
pub mod tpcw;

pub use benchmark::Benchmark;
pub use error::Error;
