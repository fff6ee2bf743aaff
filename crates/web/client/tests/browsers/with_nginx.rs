//! Tests against nginx: its log agrees with the rows.

use crate::common::nginx::Nginx;
use crate::common::{ask, documents};
use weir_web_client::{Options, tree};

#[test]
fn the_access_log_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("www");
    let documents = documents(50, 20_480);
    tree::lay_out(&documents, &root, |_| {}).unwrap();
    // One document is missing, and one is another.
    std::fs::remove_file(root.join("000007.dat")).unwrap();
    std::fs::write(root.join("000008.dat"), vec![1; 20_480]).unwrap();
    let Some(mut nginx) = Nginx::start(&root, 0, true).unwrap() else { return };
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let (outcomes, report) = ask(&url, &documents, 8, 500, &Options::default());
    nginx.stop();
    let count = |error| outcomes.iter().filter(|row| row.error == error).count();
    assert_eq!((count(libc::ENOENT), count(libc::EBADMSG)), (80, 80), "{report:?}");
    assert_eq!((outcomes.len(), count(0)), (4000, 3840), "{report:?}");
    assert_eq!(report.classes[0].connections, 8);

    let log = std::fs::read_to_string(nginx.access_log()).unwrap();
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(' ').collect()).collect();
    // nginx also logs the empty connection that tests its port.
    let asked: Vec<_> =
        lines.iter().filter(|line| line.get(2).is_some_and(|path| path.ends_with(".dat"))).collect();
    assert_eq!(asked.len(), outcomes.len());
    let bytes = |status: &str| -> u64 {
        asked.iter().filter(|line| line[0] == status).map(|line| line[1].parse::<u64>().unwrap()).sum()
    };
    let seen = |status| -> u64 {
        outcomes.iter().filter(|row| row.http_status == status).map(|row| row.body_bytes).sum()
    };
    assert_eq!((bytes("200"), bytes("404")), (seen(200), seen(404)));
    assert!(seen(404) > 0 && seen(200) == 3920 * 20_480);
}
