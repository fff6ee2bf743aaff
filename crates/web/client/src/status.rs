//! Error numbers of failed requests: `requests.parquet` has one `errno` for each kind of failure.
//!
//! | errno | failure |
//! | --- | --- |
//! | what the system said | no connection, or it was lost: `ECONNREFUSED`, `ECONNRESET`, `EADDRNOTAVAIL`, ... |
//! | `EIO` | closed by the server before the answer was whole |
//! | `EPROTO` | malformed answer, or one that was not requested (a status below 400 other than 200 for a document) |
//! | `EBADMSG` | whole, and not the bytes that were expected |
//! | `EMSGSIZE` | more body than is kept in memory |
//! | `ETIMEDOUT` | no whole answer within the time limit; also status 408 and 504 |
//! | `EINVAL` | the request itself cannot be sent; also status 400 and what is not listed from 402 to 499 |
//! | `EACCES` | status 401, 403 |
//! | `ENOENT` | status 404, 410 |
//! | `EAGAIN` | status 429, 503: the server is busy |
//! | `EREMOTEIO` | other status from 500 |
//! | `ECANCELED` | the run was stopped before the answer came |

/// The `errno` of an HTTP status of 400 and more; 0 for less.
pub fn of_http(status: u16) -> i32 {
    match status {
        0..400 => 0,
        401 | 403 => libc::EACCES,
        404 | 410 => libc::ENOENT,
        408 | 504 => libc::ETIMEDOUT,
        429 | 503 => libc::EAGAIN,
        400..500 => libc::EINVAL,
        500.. => libc::EREMOTEIO,
    }
}

/// Description of an `errno` of this crate.
pub fn describe(errno: i32) -> String {
    let text = match errno {
        libc::EIO => "closed before the answer was whole",
        libc::EPROTO => "malformed answer",
        libc::EBADMSG => "wrong bytes",
        libc::EMSGSIZE => "body too large",
        libc::ETIMEDOUT => "no answer in time",
        libc::EINVAL => "refused as a bad request",
        libc::EACCES => "forbidden",
        libc::ENOENT => "not found",
        libc::EAGAIN => "server busy",
        libc::EREMOTEIO => "server failed",
        libc::ECANCELED => "stopped before the answer",
        _ => return std::io::Error::from_raw_os_error(errno).to_string(),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_errno() {
        let of = |codes: &[u16]| codes.iter().map(|code| of_http(*code)).collect::<Vec<_>>();
        assert_eq!(of(&[100, 200, 206, 304, 399]), [0; 5]);
        assert_eq!(of(&[400, 405, 499]), [libc::EINVAL; 3]);
        assert_eq!(of(&[401, 403]), [libc::EACCES; 2]);
        assert_eq!(of(&[404, 410]), [libc::ENOENT; 2]);
        assert_eq!(of(&[408, 504]), [libc::ETIMEDOUT; 2]);
        assert_eq!(of(&[429, 503]), [libc::EAGAIN; 2]);
        assert_eq!(of(&[500, 502, 599, 999]), [libc::EREMOTEIO; 4]);
    }
}
