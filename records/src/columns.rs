//! Typed access to the columns of a batch, with errors that name the column.

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayAccessor, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch, StringArray,
};
use arrow_schema::DataType;

/// Builder of a column of names that repeat: a dictionary.
pub(crate) type NameBuilder = StringDictionaryBuilder<Int32Type>;

/// Arrow type of a column of names.
pub(crate) fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The columns of one batch, by name.
pub(crate) struct Columns<'a> {
    batch: &'a RecordBatch,
}

/// A column together with its name for error messages.
pub(crate) struct Column<'a, A> {
    name: &'static str,
    array: &'a A,
}

/// A dictionary column; remembers the last name so that equal neighbours share one allocation.
pub(crate) struct Names<'a> {
    name: &'static str,
    keys: &'a PrimitiveArray<Int32Type>,
    values: &'a StringArray,
    last: Option<Arc<str>>,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(batch: &'a RecordBatch) -> Self {
        Columns { batch }
    }

    fn find(&self, name: &'static str) -> Result<&'a dyn Array, String> {
        match self.batch.column_by_name(name) {
            Some(column) => Ok(column.as_ref()),
            None => Err(format!("column {name} is missing")),
        }
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        name: &'static str,
    ) -> Result<Column<'a, PrimitiveArray<T>>, String> {
        let found = self.find(name)?;
        let array = found
            .as_primitive_opt::<T>()
            .ok_or_else(|| format!("column {name} is {}, not {}", found.data_type(), T::DATA_TYPE))?;
        Ok(Column { name, array })
    }

    pub(crate) fn u16(&self, name: &'static str) -> Result<Column<'a, PrimitiveArray<UInt16Type>>, String> {
        self.primitive(name)
    }

    pub(crate) fn u32(&self, name: &'static str) -> Result<Column<'a, PrimitiveArray<UInt32Type>>, String> {
        self.primitive(name)
    }

    pub(crate) fn u64(&self, name: &'static str) -> Result<Column<'a, PrimitiveArray<UInt64Type>>, String> {
        self.primitive(name)
    }

    pub(crate) fn i32(&self, name: &'static str) -> Result<Column<'a, PrimitiveArray<Int32Type>>, String> {
        self.primitive(name)
    }

    pub(crate) fn i64(&self, name: &'static str) -> Result<Column<'a, PrimitiveArray<Int64Type>>, String> {
        self.primitive(name)
    }

    pub(crate) fn bools(&self, name: &'static str) -> Result<Column<'a, BooleanArray>, String> {
        let array =
            self.find(name)?.as_boolean_opt().ok_or_else(|| format!("column {name} is not boolean"))?;
        Ok(Column { name, array })
    }

    pub(crate) fn names(&self, name: &'static str) -> Result<Names<'a>, String> {
        let wrong = || format!("column {name} is not a dictionary of strings");
        let dictionary = self.find(name)?.as_dictionary_opt::<Int32Type>().ok_or_else(wrong)?;
        let values = dictionary.values().as_string_opt::<i32>().ok_or_else(wrong)?;
        Ok(Names { name, keys: dictionary.keys(), values, last: None })
    }
}

impl<'a, A: Array> Column<'a, A>
where
    &'a A: ArrayAccessor,
{
    pub(crate) fn get(&self, row: usize) -> Option<<&'a A as ArrayAccessor>::Item> {
        self.array.is_valid(row).then(|| self.array.value(row))
    }

    pub(crate) fn required(&self, row: usize) -> Result<<&'a A as ArrayAccessor>::Item, String> {
        self.get(row).ok_or_else(|| format!("row {row}: column {} is null", self.name))
    }
}

impl Names<'_> {
    pub(crate) fn get(&mut self, row: usize) -> Option<Arc<str>> {
        if self.keys.is_null(row) {
            return None;
        }
        let key = usize::try_from(self.keys.value(row)).ok()?;
        let text = self.values.value(key);
        match &self.last {
            Some(last) if **last == *text => Some(Arc::clone(last)),
            _ => {
                let name: Arc<str> = text.into();
                self.last = Some(Arc::clone(&name));
                Some(name)
            }
        }
    }

    pub(crate) fn required(&mut self, row: usize) -> Result<Arc<str>, String> {
        self.get(row).ok_or_else(|| format!("row {row}: column {} is null", self.name))
    }
}
