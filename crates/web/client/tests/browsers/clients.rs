//! Tests of custom clients: POST, bodies, judgement of responses, failures.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use crate::common::{Reply, TestServer, content, documents};
use weir_web_client::{
    Answer, Ask, Class, Client, Error, Expect, Load, Method, Options, Outcome, Server, browse,
};

/// Sends the requests of these functions one after the other, and keeps error, status and body of each answer.
struct Script {
    steps: std::vec::IntoIter<fn(&mut Ask)>,
    seen: Seen,
}

/// Error, status, body.
type Observed = (i32, u16, Vec<u8>);
type Seen = Arc<Mutex<Vec<Observed>>>;

impl Client for Script {
    fn next(&mut self, answered: Option<&Answer<'_>>, _: i64, ask: &mut Ask) -> ControlFlow<()> {
        if let Some(answer) = answered {
            assert!(
                answer.ask.path.len() > 1 && answer.submitted_ns.is_none_or(|at| at <= answer.completed_ns)
            );
            self.seen.lock().unwrap().push((answer.error, answer.status, answer.body.to_vec()));
        }
        match self.steps.next() {
            Some(step) => step(ask),
            None => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }
}

fn run(steps: Vec<fn(&mut Ask)>, server: &TestServer, options: &Options) -> (Vec<Outcome>, Vec<Observed>) {
    let seen = Seen::default();
    let script = Script { steps: steps.into_iter(), seen: Arc::clone(&seen) };
    let class = Class {
        name: "script".into(),
        server: Server::new(&server.url()).unwrap(),
        documents: None,
        load: Load::Closed(vec![Box::new(script)]),
    };
    let mut outcomes = Vec::new();
    browse(vec![class], options, |outcome| outcomes.push(outcome.clone())).unwrap();
    (outcomes, Arc::into_inner(seen).unwrap().into_inner().unwrap())
}

#[test]
fn what_is_posted_arrives_and_answers_are_seen_and_judged() {
    let documents = documents(2, 8192);
    let server = TestServer::new(&documents, |nth| if nth == 3 { Reply::Status(500) } else { Reply::Right });
    let page: fn(&mut Ask) = |ask| {
        ask.path = "/000001.dat".to_owned();
        ask.label = Some("HOME".into());
        ask.headers = "Cookie: a=b\r\nAccept: text/html\r\n".to_owned();
    };
    let post: fn(&mut Ask) = |ask| {
        ask.path = "/000000.dat?order=7".to_owned();
        ask.method = Method::Post;
        ask.body = vec![b'x'; 300_000];
        ask.expect = Expect::Check(Arc::new(|status, body| status == 200 && body.len() == 8192));
    };
    let judged: fn(&mut Ask) = |ask| {
        ask.path = "/000001.dat".to_owned();
        ask.expect = Expect::Check(Arc::new(|_, body| body.is_empty()));
    };
    let unknown: fn(&mut Ask) = |ask| {
        ask.path = "/000001.dat".to_owned();
        // The class has no documents.
        ask.expect = Expect::Document(1);
    };
    let (outcomes, seen) = run(vec![page, post, judged, page, unknown], &server, &Options::default());
    let errors: Vec<i32> = outcomes.iter().map(|row| row.error).collect();
    assert_eq!(errors, [0, 0, libc::EBADMSG, libc::EREMOTEIO, libc::EBADMSG]);
    assert!(seen.iter().map(|(error, _, _)| *error).eq(errors));
    assert_eq!((seen[0].1, &seen[0].2), (200, &content(&documents, 1)));
    assert_eq!((seen[1].2.len(), seen[3].1), (8192, 500));
    assert_eq!(outcomes[0].label.as_deref(), Some("HOME"));
    assert_eq!(
        (outcomes[1].method, outcomes[1].document, outcomes[4].document),
        (Method::Post, None, Some(1))
    );
    assert_eq!(*server.posted.lock().unwrap(), vec![b'x'; 300_000]);
    let row = outcomes[1].to_request(&"script".into(), &"http://a".into());
    assert_eq!((row.op, row.size_bytes, row.status), (weir_records::Op::Write, 8192, 0));
}

#[test]
fn what_would_break_a_request_is_not_sent() {
    let documents = documents(1, 65_536);
    let server = TestServer::new(&documents, |_| Reply::Right);
    let steps: Vec<fn(&mut Ask)> = vec![
        |ask| ask.path = "no-slash".to_owned(),
        |ask| ask.path = "/a b".to_owned(),
        |ask| ask.path = "/a\r\nX: y".to_owned(),
        |ask| (ask.path, ask.headers) = ("/a".to_owned(), "A: b".to_owned()),
        |ask| (ask.path, ask.headers) = ("/a".to_owned(), "A: b\r\n\r\n".to_owned()),
        |ask| ask.path = "/000000.dat".to_owned(),
    ];
    let options = Options { body_limit_bytes: 10_000, ..Options::default() };
    let (outcomes, _) = run(steps, &server, &options);
    let errors: Vec<i32> = outcomes.iter().map(|row| row.error).collect();
    assert_eq!(errors, [[libc::EINVAL; 5].as_slice(), &[libc::EMSGSIZE]].concat());
    assert_eq!(outcomes[5].body_bytes, 65_536);
    assert_eq!(server.requests.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn options_out_of_range_are_refused_before_anything_is_asked() {
    use std::time::Duration;
    let options = Options::default;
    let cases = [
        (Options { duration: Duration::ZERO, ..options() }, "duration"),
        (Options { warmup: Duration::from_secs(10), ..options() }, "warmup"),
        (Options { timeout: Duration::ZERO, ..options() }, "timeout"),
        (Options { threads: 0, ..options() }, "threads"),
        (Options { fifo_priority: Some(100), ..options() }, "fifo priority"),
        (options(), "clients"),
    ];
    for (options, names) in cases {
        let refused = browse(Vec::new(), &options, |_| unreachable!("nothing is asked"));
        match refused {
            Err(Error::Option { option, .. }) => assert_eq!(option, names),
            other => panic!("{names}: {other:?}"),
        }
    }
}
