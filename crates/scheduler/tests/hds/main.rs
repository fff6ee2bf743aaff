//! Hierarchical disk sharing: what holds for every tree and every load.

mod adapting;
mod clients;
mod shares;
mod tokens;
