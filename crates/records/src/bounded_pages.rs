//! Page sizes of a column, checked before decoding.
//!
//! The library trusts the number of values in a page header, and reserves memory for them: with one damaged byte it reserves
//! 80 GB, and the process is aborted.

use parquet::basic::Type;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// A page reader that refuses pages with more values than their bytes can hold.
pub(crate) struct BoundedPages {
    inner: Box<dyn PageReader>,
    /// Minimum bytes of a dictionary value.
    value_bytes: usize,
}

impl BoundedPages {
    /// Pages of a column of a type.
    pub(crate) fn new(inner: Box<dyn PageReader>, physical: Type) -> Self {
        let value_bytes = match physical {
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            // A 32-bit length before the bytes, which may be empty; 32-bit numbers.
            Type::BYTE_ARRAY | Type::INT32 | Type::FLOAT => 4,
            Type::BOOLEAN | Type::FIXED_LEN_BYTE_ARRAY => 1,
        };
        BoundedPages { inner, value_bytes }
    }

    fn check(&self, page: Page) -> Result<Page> {
        if let Page::DictionaryPage { buf, num_values, .. } = &page
            && *num_values as usize > buf.len() / self.value_bytes
        {
            let message =
                format!("the file is damaged: a dictionary of {num_values} values in {} bytes", buf.len());
            return Err(ParquetError::General(message));
        }
        Ok(page)
    }
}

impl Iterator for BoundedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for BoundedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.inner.get_next_page()?.map(|page| self.check(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.inner.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.inner.take_deferred_dictionary()?.map(|page| self.check(page)).transpose()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use parquet::basic::Encoding;

    use super::*;

    struct One(Option<Page>);

    impl Iterator for One {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.0.take().map(Ok)
        }
    }

    impl PageReader for One {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.take())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn read(num_values: u32, bytes: usize, physical: Type) -> Result<Option<Page>> {
        let buf = vec![0; bytes].into();
        let page = Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false };
        BoundedPages::new(Box::new(One(Some(page))), physical).get_next_page()
    }

    #[test]
    fn a_dictionary_has_no_more_values_than_bytes_for_them() {
        assert!(read(4, 16, Type::BYTE_ARRAY).unwrap().is_some());
        assert!(read(2, 16, Type::INT64).unwrap().is_some());
        let refused = read(u32::MAX, 16, Type::BYTE_ARRAY).unwrap_err().to_string();
        assert!(refused.contains("a dictionary of 4294967295 values in 16 bytes"), "{refused}");
        assert!(read(3, 16, Type::INT64).is_err());
    }
}
