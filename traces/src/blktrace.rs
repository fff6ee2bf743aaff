//! .
/// .
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// .
    #[error("x")]
    X,
}
