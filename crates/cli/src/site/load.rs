//! `weir site load`.

use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use weir_web_site::Benchmark;
use weir_web_site::database::Address;
use weir_web_site::load::{LoadOptions, load};

use super::classify;
use crate::exit::bad_input;
use crate::output::{self, Output};

/// Fill an empty database with a benchmark's tables.
///
/// The rows depend on benchmark, scale and seed only, not on the database or the number of jobs. A
/// database that holds the same site already is left as it is; one that holds another, or half of one, is
/// refused unless
/// --replace is given.
#[derive(clap::Args)]
pub struct Args {
    /// The benchmark: tpcw, rubis or rubbos
    #[arg(long)]
    benchmark: String,
    /// The database: postgresql:///NAME?user=U&socket=PATH or mariadb://U@HOST:PORT/NAME?password_file=FILE
    #[arg(long, value_name = "URL")]
    database: String,
    /// TPC-W: books in the shop
    #[arg(long, default_value_t = 1000)]
    items: u64,
    /// TPC-W: emulated browsers that the shop is made for, 2,880 customers each
    #[arg(long, default_value_t = 10)]
    browsers: u64,
    /// RUBiS, RUBBoS: size, as a share of the published database
    #[arg(long, default_value_t = 0.01)]
    scale: f64,
    /// Seed; the same seed gives the same rows
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Connections that load at the same time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Drop what is there
    #[arg(long)]
    replace: bool,
}

pub fn run(args: &Args, output: Output) -> anyhow::Result<ExitCode> {
    let benchmark: Benchmark = args.benchmark.parse().map_err(classify)?;
    let address: Address = args.database.parse().map_err(bad_input)?;
    if !(1..=64).contains(&args.jobs) {
        return Err(bad_input(format!("--jobs is {}; it must be from 1 to 64", args.jobs)));
    }
    let scale = weir_web_site::benchmark::Scale {
        items: args.items,
        browsers: args.browsers,
        share: args.scale,
        seed: args.seed,
    };
    let population = benchmark.population(scale).map_err(classify)?;
    let bar = ProgressBar::new(1);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} units, {eta} left") {
        bar.set_style(style);
    }
    let options = LoadOptions { jobs: args.jobs, replace: args.replace, hot: None };
    let loaded = load(&address, &*population, options, &|progress| {
        bar.set_length(progress.of);
        bar.set_position(progress.done);
    });
    bar.finish_and_clear();
    let loaded = loaded.map_err(classify)?;
    if output.is_json() {
        output::document(&loaded)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (table, rows) in &loaded.rows {
        println!("{table:<20} {rows:>12} rows");
    }
    if loaded.already {
        println!("{address}: holds the same site already");
    } else {
        println!("{address}: loaded in {:.1} s, indexed in {:.1} s", loaded.rows_s, loaded.indexes_s);
    }
    Ok(ExitCode::SUCCESS)
}
