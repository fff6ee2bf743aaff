//! File systems of a run: made, mounted or found mounted, and the run's folders on them.

pub(crate) mod drop_caches;
pub(crate) mod make;
pub(crate) mod mount;
pub(crate) mod mount_point;
pub(crate) mod network;
pub(crate) mod options;
pub(crate) mod owned_folder;
pub(crate) mod premounted;
