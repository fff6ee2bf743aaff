//! Capturing what the block layer does while a run's requests are sent.

use std::path::{Path, PathBuf};

use crate::Error;

pub(crate) struct Capture;
pub(crate) struct Recording;

impl Capture {
    pub(crate) fn start(
        _wanted: weir_studies::Capture,
        _devices: &[&str],
        _out: &Path,
    ) -> Result<Option<Self>, Error> {
        Ok(None)
    }
    pub(crate) fn stop(self, _epoch_ns: i64) -> Recording {
        Recording
    }
}

impl Recording {
    pub(crate) fn loss(&self) -> Result<(f64, String), String> {
        Err(String::new())
    }
    pub(crate) fn report(&self) -> serde_json::Value {
        serde_json::Value::Null
    }
}

pub(crate) fn host(_devices: &[String], _mounts: &[PathBuf]) -> serde_json::Value {
    serde_json::Value::Null
}
