//! NBD protocol: constants and messages.

pub(super) const MAGIC: u64 = 0x4e42_444d_4147_4943;
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
pub(super) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(super) const REPLY_MAGIC: u32 = 0x6744_6698;

/// In the handshake flags of both server and client.
pub(super) const FIXED_NEWSTYLE: u16 = 1;
pub(super) const NO_ZEROES: u16 = 2;

pub(super) const OPT_EXPORT_NAME: u32 = 1;
pub(super) const OPT_ABORT: u32 = 2;
pub(super) const OPT_LIST: u32 = 3;
pub(super) const OPT_INFO: u32 = 6;
pub(super) const OPT_GO: u32 = 7;

pub(super) const REP_ACK: u32 = 1;
pub(super) const REP_SERVER: u32 = 2;
pub(super) const REP_INFO: u32 = 3;
pub(super) const REP_ERR_UNSUP: u32 = 1 << 31 | 1;
/// Refused by the server's configuration.
pub(super) const REP_ERR_POLICY: u32 = 1 << 31 | 2;
pub(super) const REP_ERR_INVALID: u32 = 1 << 31 | 3;
pub(super) const REP_ERR_UNKNOWN: u32 = 1 << 31 | 6;
pub(super) const REP_ERR_TOO_BIG: u32 = 1 << 31 | 9;

pub(super) const INFO_EXPORT: u16 = 0;
pub(super) const INFO_NAME: u16 = 1;
pub(super) const INFO_DESCRIPTION: u16 = 2;
pub(super) const INFO_BLOCK_SIZE: u16 = 3;

pub(super) const HAS_FLAGS: u16 = 1;
pub(super) const SEND_FLUSH: u16 = 1 << 2;
pub(super) const SEND_FUA: u16 = 1 << 3;
pub(super) const ROTATIONAL: u16 = 1 << 4;
pub(super) const SEND_TRIM: u16 = 1 << 5;
pub(super) const SEND_WRITE_ZEROES: u16 = 1 << 6;
/// A flush on one connection covers completed writes of all connections.
pub(super) const CAN_MULTI_CONN: u16 = 1 << 8;

pub(super) const CMD_FLAG_FUA: u16 = 1;

/// Maximum length of an option; names have at most 4096 bytes.
pub(super) const MOST_OPTION_BYTES: u32 = 8192;
/// Maximum length of an export's name.
pub(super) const MOST_NAME_BYTES: usize = 4096;
/// Maximum size of a read or write. A larger write disconnects the client; a larger read is refused.
pub(super) const MOST_REQUEST_BYTES: u32 = 4 << 20;

// Error numbers of the protocol.
pub(super) const EPERM: u32 = 1;
pub(super) const EIO: u32 = 5;
pub(super) const ENOMEM: u32 = 12;
pub(super) const EINVAL: u32 = 22;
pub(super) const ENOSPC: u32 = 28;
pub(super) const EOVERFLOW: u32 = 75;
pub(super) const ENOTSUP: u32 = 95;

/// Protocol number of an errno of this system.
pub(super) fn error_number(errno: i32) -> u32 {
    match errno {
        libc::EPERM | libc::EACCES => EPERM,
        libc::ENOMEM => ENOMEM,
        libc::EINVAL => EINVAL,
        libc::ENOSPC | libc::EFBIG | libc::EDQUOT => ENOSPC,
        libc::EOVERFLOW => EOVERFLOW,
        libc::EOPNOTSUPP => ENOTSUP,
        _ => EIO,
    }
}

/// Command of the transmission phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    WriteZeroes,
    Unknown(u16),
}

/// A request of the transmission phase; the data of a write follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub command: Command,
    pub is_fua: bool,
    /// The client's cookie of the request.
    pub cookie: u64,
    pub offset_bytes: u64,
    pub size_bytes: u32,
}

/// Length of a request's header.
pub(super) const HEADER_BYTES: usize = 28;

impl Header {
    /// Parses a header; `None` if it is invalid: the rest of the stream cannot be parsed.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
        let mut fields = Fields(bytes);
        if fields.u32()? != REQUEST_MAGIC {
            return None;
        }
        let flags = fields.u16()?;
        let command = match fields.u16()? {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disconnect,
            3 => Command::Flush,
            4 => Command::Trim,
            6 => Command::WriteZeroes,
            other => Command::Unknown(other),
        };
        let (cookie, offset_bytes, size_bytes) = (fields.u64()?, fields.u64()?, fields.u32()?);
        Some(Header { command, is_fua: flags & CMD_FLAG_FUA != 0, cookie, offset_bytes, size_bytes })
    }
}

/// Reader of big-endian numbers and bytes.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}

/// Content of OPT_INFO and OPT_GO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InfoRequest {
    pub name: String,
    pub wanted: Vec<u16>,
}

impl InfoRequest {
    /// Parses the data of the option; `None` if they are invalid.
    pub fn parse(data: &[u8]) -> Option<InfoRequest> {
        let mut fields = Fields(data);
        let length = fields.u32()? as usize;
        let name = export_name(fields.bytes(length)?)?;
        let count = fields.u16()?;
        let wanted = (0..count).map(|_| fields.u16()).collect::<Option<Vec<u16>>>()?;
        fields.0.is_empty().then_some(InfoRequest { name, wanted })
    }
}

/// A name as received.
pub(super) fn export_name(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    (bytes.len() <= MOST_NAME_BYTES && !text.contains('\0')).then(|| text.to_owned())
}
