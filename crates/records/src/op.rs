//! Operation of a request.

use weir_vocabulary::Op as DataOp;

/// Operation of a request of an application or a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Data leave the device.
    Read,
    /// Data enter the device.
    Write,
    /// The same, and the request completes when they are durable (forced unit access).
    WriteFua,
    /// What was written and completed before becomes durable. Without place and size.
    Flush,
    /// The data of the range are no longer needed. No data are transferred.
    Discard,
    /// The range becomes zero. No data are transferred.
    WriteZeroes,
}

impl Op {
    const ALL: [Op; 6] = [Op::Read, Op::Write, Op::WriteFua, Op::Flush, Op::Discard, Op::WriteZeroes];

    /// The name in the column `op`.
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::WriteFua => "write_fua",
            Op::Flush => "flush",
            Op::Discard => "discard",
            Op::WriteZeroes => "write_zeroes",
        }
    }

    /// The inverse of [`Op::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Op::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Its number, for files that no other version of weir reads.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// The inverse of [`Op::number`].
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Op::ALL.get(usize::from(number)).copied()
    }

    /// Whether it reads or writes; `None` if it transfers no data.
    pub fn data(self) -> Option<DataOp> {
        match self {
            Op::Read => Some(DataOp::Read),
            Op::Write | Op::WriteFua => Some(DataOp::Write),
            Op::Flush | Op::Discard | Op::WriteZeroes => None,
        }
    }

    /// Whether it changes what the device holds.
    pub fn changes_data(self) -> bool {
        matches!(self, Op::Write | Op::WriteFua | Op::Discard | Op::WriteZeroes)
    }
}

impl From<DataOp> for Op {
    fn from(op: DataOp) -> Self {
        match op {
            DataOp::Read => Op::Read,
            DataOp::Write => Op::Write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_are_those_of_the_block_layer() {
        for op in Op::ALL {
            assert_eq!(Op::from_name(op.name()), Some(op));
            assert_eq!(Op::from_number(op.number()), Some(op));
            if op != Op::WriteFua {
                assert!(crate::BlockOp::from_name(op.name()).is_some(), "{}", op.name());
            }
        }
        assert_eq!(Op::from_name("Read"), None);
    }

    #[test]
    fn only_reads_and_flushes_leave_the_data_as_they_are() {
        let unchanged: Vec<Op> = Op::ALL.into_iter().filter(|op| !op.changes_data()).collect();
        assert_eq!(unchanged, [Op::Read, Op::Flush]);
    }
}
