//! `weir site check`.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_web_site::Benchmark;
use weir_web_site::check::read_orders;
use weir_web_site::database::Address;

use super::classify;
use crate::exit::bad_input;
use crate::output::{self, Output};

/// Check a site's database: consistency rules, and every acknowledged order present once.
///
/// Exit code 0: all rules hold; 1: one does not, and what contradicts it is named.
#[derive(clap::Args)]
pub struct Args {
    /// The benchmark: tpcw, rubis or rubbos
    #[arg(long)]
    benchmark: String,
    /// The database: postgresql:///NAME?user=U&socket=PATH or mariadb://U@HOST:PORT/NAME?password_file=FILE
    #[arg(long, value_name = "URL")]
    database: String,
    /// What browsers noted as acknowledged (`weir site browse --orders`); may be given several times
    #[arg(long, value_name = "FILE")]
    orders: Vec<PathBuf>,
}

pub fn run(args: &Args, output: Output) -> anyhow::Result<ExitCode> {
    let benchmark: Benchmark = args.benchmark.parse().map_err(classify)?;
    let address: Address = args.database.parse().map_err(bad_input)?;
    let mut orders = Vec::new();
    for path in &args.orders {
        orders.extend(read_orders(path).map_err(bad_input)?);
    }
    let mut connection = address.connect().map_err(|error| classify(error.into()))?;
    let checked = benchmark.check(&mut *connection, &orders).map_err(classify)?;
    if output.is_json() {
        output::document(&checked)?;
    } else {
        for rule in &checked.rules {
            let found =
                if rule.violations == 0 { "holds".to_owned() } else { format!("{} FAIL", rule.violations) };
            println!("{:<22} {found:>9}  of {:>9}  {}", rule.rule, rule.looked_at, rule.says);
            for example in &rule.examples {
                println!("    {example}");
            }
        }
    }
    Ok(if checked.holds() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
