//! Round trip of the best clock exchange over loopback: what the bound of a clock offset is half of.

use std::error::Error;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use weir_coordination::{Coordination, JoinConfig, Roster, Timeouts, Token};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn join(me: &str, address: std::net::SocketAddr, exchanges: u32) -> Result<Coordination> {
    let roster = Roster::new(me, &["a".to_owned(), "b".to_owned()], &[])?;
    let token = Token::new("0123456789abcdef0123456789abcdef")?;
    let timeouts = Timeouts { exchanges, lead: Duration::from_millis(30), ..Timeouts::default() };
    Ok(Coordination::join(JoinConfig {
        roster,
        address,
        token,
        run: "run".into(),
        timeouts,
        stop: Arc::default(),
    })?)
}

/// Round trips before and after a run, in ns.
fn measure(exchanges: u32) -> Result<[i64; 2]> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let coordinator = thread::spawn(move || -> Result<()> {
        let mut a = join("a", address, exchanges)?;
        a.begin()?;
        a.end()?;
        Ok(())
    });
    let mut b = join("b", address, exchanges)?;
    b.begin()?;
    let clocks = b.end()?.clocks.ok_or("the run did not begin")?;
    coordinator.join().map_err(|_| "the coordinator panicked")??;
    Ok([2 * clocks.start.bound_ns, 2 * clocks.end.map_or(0, |end| end.bound_ns)])
}

fn main() -> Result<()> {
    for exchanges in [1, 40] {
        let mut all = Vec::new();
        for _ in 0..100 {
            all.extend(measure(exchanges)?);
        }
        all.sort_unstable();
        let us = |part: f64| all[((all.len() - 1) as f64 * part) as usize] as f64 / 1e3;
        println!(
            "best of {exchanges}: round trip in us: least {:.1}, median {:.1}, p95 {:.1}, most {:.1}",
            us(0.0),
            us(0.5),
            us(0.95),
            us(1.0)
        );
    }
    Ok(())
}
