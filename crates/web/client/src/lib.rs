//! Load generator for web servers, in closed and open loop, with one row for each request.
//!
//! [`browse`] takes [`Class`]es. Clients of a *closed loop* ([`Client`]) wait for the response and a think time before
//! the next request. Requests of an *open loop* ([`Source`]) are sent at their times, whether or not earlier ones were
//! answered. Response time counts from the intended instant of a request, so it includes waiting that a slow server
//! causes (no coordinated omission). A request that was refused, lost, answered wrong or too late is a row with a
//! [`status`], never left out.
//!
//! [`Documents`] are the files of a workload as a web server serves them. Every byte is compared.

mod browse;
mod chunks;
mod class;
pub mod client;
mod documents;
mod error;
mod exchange;
mod net;
mod order;
mod outcome;
mod parser;
mod report;
mod server;
mod slot;
pub mod status;
pub mod tree;
mod visitors;
mod worker;

pub use browse::browse;
pub use class::{Class, Load, Options};
pub use client::{Answer, Ask, Client, Expect, Judgement, Method, Source};
pub use documents::{Documents, Folders};
pub use error::Error;
pub use outcome::Outcome;
pub use parser::{Malformed, Parser};
pub use report::{ClassReport, Quantiles, Report};
pub use server::Server;
pub use visitors::{Visit, Visitors};
