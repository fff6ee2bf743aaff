//! Web sites with a database behind them.

pub mod benchmark;
pub mod database;
mod error;
pub mod http;
pub mod load;
pub mod schema;
pub mod text;
pub mod tpcw;

pub use benchmark::Benchmark;
pub use error::Error;
