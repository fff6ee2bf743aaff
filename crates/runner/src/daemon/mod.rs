//! Daemons of a run: web servers, proxies, database and application servers, and what they serve.

pub(crate) mod hot_documents;
pub(crate) mod site;
pub(crate) mod start;
