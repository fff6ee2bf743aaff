//! Storage of a row's field in a Parquet column.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
pub use parquet::basic::LogicalType;
use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
pub use parquet::data_type::{ByteArray, ByteArrayType};

/// A value that is never absent.
pub trait Cell: Sized {
    /// Type in Parquet.
    type Physical: DataType<T: Clone + Debug>;
    /// State between the values of one column.
    type Memory: Default;

    /// Logical type in Parquet.
    fn meaning() -> Option<LogicalType>;

    /// Converts to the stored value.
    fn put(&self, memory: &mut Self::Memory) -> <Self::Physical as DataType>::T;

    /// Converts from the stored value; `None` if it is out of range.
    fn get(stored: &<Self::Physical as DataType>::T, memory: &mut Self::Memory) -> Option<Self>;
}

/// Parquet has no unsigned types: the same bits are stored with a logical type.
macro_rules! integer {
    ($($kind:ty as $bits:ty: $physical:ty, $meaning:expr;)+) => {$(
        impl Cell for $kind {
            type Physical = $physical;
            type Memory = ();

            fn meaning() -> Option<LogicalType> {
                $meaning
            }

            #[allow(clippy::cast_possible_wrap, clippy::cast_lossless)]
            fn put(&self, _: &mut ()) -> $bits {
                *self as $bits
            }

            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            fn get(stored: &$bits, _: &mut ()) -> Option<Self> {
                Some(*stored as $kind)
            }
        }
    )+};
}

integer! {
    i32 as i32: Int32Type, None;
    i64 as i64: Int64Type, None;
    u16 as i32: Int32Type, Some(LogicalType::integer(16, false));
    u32 as i32: Int32Type, Some(LogicalType::integer(32, false));
    u64 as i64: Int64Type, Some(LogicalType::integer(64, false));
}

impl Cell for bool {
    type Physical = BoolType;
    type Memory = ();

    fn meaning() -> Option<LogicalType> {
        None
    }

    fn put(&self, (): &mut ()) -> bool {
        *self
    }

    fn get(stored: &bool, (): &mut ()) -> Option<Self> {
        Some(*stored)
    }
}

/// Names of a column so far: few, and each many times.
#[derive(Default)]
pub struct Names {
    stored: HashMap<Arc<str>, ByteArray>,
    last: Option<(Arc<str>, ByteArray)>,
}

impl Cell for Arc<str> {
    type Physical = ByteArrayType;
    type Memory = Names;

    fn meaning() -> Option<LogicalType> {
        Some(LogicalType::String)
    }

    fn put(&self, names: &mut Names) -> ByteArray {
        if let Some((name, stored)) = &names.last
            && (Arc::ptr_eq(name, self) || name == self)
        {
            return stored.clone();
        }
        let stored = match names.stored.get(self) {
            Some(stored) => stored.clone(),
            None => {
                let stored = ByteArray::from(Bytes::copy_from_slice(self.as_bytes()));
                names.stored.insert(Arc::clone(self), stored.clone());
                stored
            }
        };
        names.last = Some((Arc::clone(self), stored.clone()));
        stored
    }

    fn get(stored: &ByteArray, names: &mut Names) -> Option<Self> {
        if let Some((name, last)) = &names.last
            && last.data() == stored.data()
        {
            return Some(Arc::clone(name));
        }
        let text = stored.as_utf8().ok()?;
        let name = match names.stored.get_key_value(text) {
            Some((name, _)) => Arc::clone(name),
            None => {
                let name: Arc<str> = text.into();
                names.stored.insert(Arc::clone(&name), stored.clone());
                name
            }
        };
        names.last = Some((Arc::clone(&name), stored.clone()));
        Some(name)
    }
}

/// Makes an enumeration a column of names; it needs `name(self) -> &'static str` and `from_name(&str) -> Option<Self>`.
#[macro_export]
macro_rules! named {
    ($kind:ty) => {
        impl $crate::cell::Cell for $kind {
            type Physical = $crate::cell::ByteArrayType;
            type Memory = ();

            fn meaning() -> Option<$crate::cell::LogicalType> {
                Some($crate::cell::LogicalType::String)
            }

            fn put(&self, (): &mut ()) -> $crate::cell::ByteArray {
                $crate::cell::fixed(self.name())
            }

            fn get(stored: &$crate::cell::ByteArray, (): &mut ()) -> Option<Self> {
                Self::from_name(stored.as_utf8().ok()?)
            }
        }
    };
}

/// A name stored without a copy.
pub fn fixed(name: &'static str) -> ByteArray {
    ByteArray::from(Bytes::from_static(name.as_bytes()))
}
