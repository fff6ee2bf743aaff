//! Operation of a request that moves data.

/// Operation of a request that moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Data leaves the device.
    Read,
    /// Data enters the device.
    Write,
}

impl Op {
    /// `read` or `write`, as the `op` column of tables has it.
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
        }
    }

    /// The inverse of [`Op::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Op::Read, Op::Write].into_iter().find(|op| op.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        assert_eq!(Op::from_name("read"), Some(Op::Read));
        assert_eq!(Op::from_name("write"), Some(Op::Write));
        assert_eq!(Op::from_name("Read"), None);
    }
}
