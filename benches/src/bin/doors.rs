//! The doors of a server beside their peers, in one run: the server on one core, the load on the other.
//!
//! `cargo xtask bench doors [--quick] [--only resp]`

use anyhow::Result;
use clap::Parser;
use tidegate_benches::doors::lanes::{Door, Lane, Servers};
use tidegate_benches::timing::median;

/// Measures RESP beside Redis, HTTP and gRPC beside throttlecrab.
#[derive(Parser)]
struct Arguments {
    /// A tenth of the requests, in fewer rounds: enough to see that it runs.
    #[arg(long)]
    quick: bool,
    /// Only the door whose name contains this: resp, http, grpc.
    #[arg(long, default_value = "")]
    only: String,
    /// Rounds to take the medians of.
    #[arg(long)]
    rounds: Option<usize>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (effort, rounds) = if arguments.quick { (1, 1) } else { (10, 5) };
    let rounds = arguments.rounds.unwrap_or(rounds).max(1);
    let servers = Servers::start()?;
    let doors: [(&str, Open); 3] =
        [("resp", Servers::resp), ("http", Servers::http), ("grpc", Servers::grpc)];
    for (_, door) in doors.into_iter().filter(|(name, _)| name.contains(&arguments.only)) {
        let door = door(&servers)?;
        for depth in door.depths {
            show(&door, *depth, &measure(&door.lanes, *depth, effort, rounds)?);
        }
    }
    println!("Medians of {rounds}. CPU: the server's time of the processor for a request, in microseconds.");
    println!(
        "Busy: how much of its core it took. Where that is far from all, the program that asks is the limit."
    );
    Ok(())
}

/// Opens the lanes at one door.
type Open = fn(&Servers) -> Result<Door>;

/// What one lane reached.
struct Reached {
    per_second: f64,
    p99_ms: f64,
    cpu_us: f64,
}

/// The medians of each lane. Every round asks all of them, so that whatever else the machine does meets all.
fn measure(lanes: &[Lane], depth: u32, effort: u64, rounds: usize) -> Result<Vec<Reached>> {
    let mut readings: Vec<[Vec<f64>; 3]> = lanes.iter().map(|_| Default::default()).collect();
    for round in 0..=rounds {
        for (lane, [per_second, p99, cpu]) in lanes.iter().zip(&mut readings) {
            let before = lane.server.cpu_ns()?;
            // The first round fills tables and is not told.
            let load = lane.ask(depth, if round == 0 { effort.div_ceil(3) } else { effort })?;
            if round > 0 {
                per_second.push(load.per_second);
                p99.push(load.p99_ms.unwrap_or(f64::NAN));
                cpu.push((lane.server.cpu_ns()? - before) as f64 / 1_000.0 / load.answered);
            }
        }
    }
    let reached = readings.into_iter().map(|[per_second, p99, cpu]| Reached {
        per_second: median(per_second),
        p99_ms: median(p99),
        cpu_us: median(cpu),
    });
    Ok(reached.collect())
}

fn show(door: &Door, depth: u32, reached: &[Reached]) {
    let peers = &door.lanes[..door.peers.min(door.lanes.len())];
    println!("{}, 50 connections, {depth} at once on each\n", door.title);
    print!("{:30} {:>10}", "", "requests/s");
    for peer in peers {
        print!("  of {:>1$}", peer.name, peer.name.len());
    }
    println!("  {:>7}  {:>7}  {:>9}  {:>5}", "p99 ms", "CPU us", "of CPU", "busy");
    for (lane, it) in door.lanes.iter().zip(reached) {
        print!("{:30} {:>10.0}", lane.name, it.per_second);
        for (peer, of) in peers.iter().zip(reached) {
            print!("  {:>1$.2}x", it.per_second / of.per_second, peer.name.len() + 2);
        }
        let p99 = if it.p99_ms.is_nan() { "-".to_owned() } else { format!("{:.2}", it.p99_ms) };
        let busy = it.per_second * it.cpu_us / 10_000.0;
        println!("  {p99:>7}  {:>7.2}  {:>8.2}x  {busy:>4.0}%", it.cpu_us, it.cpu_us / reached[0].cpu_us);
    }
    println!();
}
