//! Fuzz targets of messages from sockets.

use weir_web_client::Parser;

/// A line of a control socket, of the hosts of a run, or what an NBD client sends.
pub(crate) fn messages(data: &[u8]) {
    let Some((kind, rest)) = crate::choice(data, 3) else { return };
    match kind {
        0 => weir_blockserver::fuzzing::control_line(rest),
        1 => {
            let _ = weir_coordination::Message::parse(rest).map(|message| message.line());
        }
        _ => weir_blockserver::fuzzing::nbd(rest),
    }
}

/// An HTTP response in pieces, or an HTTP request.
pub(crate) fn http(data: &[u8]) {
    let Some((kind, rest)) = crate::choice(data, 4) else { return };
    if kind == 3 {
        weir_web_site::fuzzing::request(rest);
        return;
    }
    let mut parser = Parser::default();
    parser.begin(kind == 1);
    // The first byte is the length of the pieces.
    let piece_bytes = usize::from(rest.first().copied().unwrap_or(1).max(1));
    let mut body_bytes = 0;
    for piece in rest.chunks(piece_bytes) {
        if parser.feed(piece, |_, part| body_bytes += part.len()).is_err() || parser.is_done() {
            break;
        }
    }
    assert!(body_bytes <= rest.len(), "a body is no longer than what came");
    let _ = (parser.close(), parser.status(), parser.keep_alive(), parser.has_begun());
}

/// Messages and packets of a database server.
pub(crate) fn database(data: &[u8]) {
    weir_web_site::fuzzing::database(data);
}
