//! Checks in memory, in this process: Tidegate, governor, and a map under a lock.
//!
//! `cargo xtask bench memory [--quick] [--format json]`

use anyhow::Result;
use clap::{Parser, ValueEnum};
use serde::Serialize;
use tidegate_benches::allocation::{Counting, bytes_of};
use tidegate_benches::contender::{ALL, Contender, PEER};
use tidegate_benches::report::{Row, Table};
use tidegate_benches::timing::{median, throughput};
use tidegate_benches::trace::{Keys, Popularity, Trace};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Measures checks in memory beside governor and a Mutex<HashMap>.
#[derive(Parser)]
struct Arguments {
    /// A tenth of the checks, in fewer rounds: enough to see that it runs.
    #[arg(long)]
    quick: bool,
    /// How to print the results.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Only contenders whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[derive(Serialize)]
struct Results {
    rounds: usize,
    checks_a_round: usize,
    million_checks_per_second: Table,
    bytes_per_key: Table,
}

const SCENARIOS: [(&str, Keys); 3] = [
    ("one hot key", Keys { count: 1, popularity: Popularity::Uniform }),
    ("100k uniform", Keys { count: 100_000, popularity: Popularity::Uniform }),
    ("1M Zipf", Keys { count: 1_000_000, popularity: Popularity::Zipf }),
];
const THREADS: [usize; 2] = [1, 2];
const KEYS_FOR_BYTES: usize = 1_000_000;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (rounds, checks) = if arguments.quick { (3, 200_000) } else { (7, 2_000_000) };
    let chosen: Vec<_> = ALL.iter().filter(|make| make().name().contains(&arguments.only)).collect();
    let contenders = || chosen.iter().map(|make| make()).collect::<Vec<_>>();
    let mut columns = Vec::new();
    let mut rows: Vec<Row> = contenders().iter().map(|it| Row { name: it.name(), figures: vec![] }).collect();
    for (name, keys) in SCENARIOS {
        for threads in THREADS {
            columns.push(format!("{name}, {threads} thread{}", if threads == 1 { "" } else { "s" }));
            let traces: Vec<Trace> = (0..threads).map(|seed| keys.trace(checks, seed as u64)).collect();
            let medians = measure(&contenders(), &keys.each(), &traces, rounds);
            rows.iter_mut().zip(medians).for_each(|(row, median)| row.figures.push(median));
        }
    }
    let title = "Million checks/s, medians".to_owned();
    let speed = Table { title, columns, rows };
    let each = Keys { count: KEYS_FOR_BYTES, popularity: Popularity::Uniform }.each();
    let bytes = chosen.iter().map(|make| {
        let (contender, bytes) = bytes_of(|| {
            let contender = make();
            contender.decide(&each);
            contender
        });
        let per_key = |bytes: u64| bytes as f64 / KEYS_FOR_BYTES as f64;
        Row { name: contender.name(), figures: vec![per_key(bytes.left), per_key(bytes.peak)] }
    });
    let bytes = Table {
        title: "Bytes a key, a million keys of 16 bytes".to_owned(),
        columns: vec!["held".to_owned(), "at the most".to_owned()],
        rows: bytes.collect(),
    };
    let peer = chosen.iter().position(|make| make().name() == ALL[PEER]().name()).unwrap_or(0);
    match arguments.format {
        Format::Table => println!("{}\n{}", speed.compared_with(peer), bytes.compared_with(peer)),
        Format::Json => {
            let results = Results {
                rounds,
                checks_a_round: checks,
                million_checks_per_second: speed,
                bytes_per_key: bytes,
            };
            println!("{}", serde_json::to_string_pretty(&results)?);
        }
    }
    Ok(())
}

/// The median of each contender. Every round asks all of them, so that whatever else the machine does meets all.
fn measure(contenders: &[Box<dyn Contender>], each: &Trace, traces: &[Trace], rounds: usize) -> Vec<f64> {
    contenders.iter().for_each(|contender| {
        contender.decide(each);
    });
    let mut figures = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        for (contender, figures) in contenders.iter().zip(&mut figures) {
            figures.push(throughput(&**contender, traces));
        }
    }
    figures.into_iter().map(median).collect()
}
