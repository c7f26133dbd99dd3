//! Two loops over jobs of their own that share one pace: a job each quarter of a second, of the one or the other.
//!
//! ```text
//! cargo run -p tidegate-stream --example jobs
//! ```

use std::error::Error;

use tidegate::{Limit, Limiter, Policy, Rate};
use tidegate_stream::{Pace, ThrottleExt};

/// Four a second, evenly spaced, however they arrive.
pub fn policy() -> Result<Policy, Box<dyn Error>> {
    Ok(Policy::single("jobs", Limit::leaky_bucket(4, Rate::per_second(4))?)?)
}

/// Does so many jobs.
pub async fn work(mut pace: Pace, jobs: u32, mut job: impl FnMut(u32)) -> Result<(), tidegate::AcquireError> {
    for number in 0..jobs {
        pace.next().await?;
        job(number);
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let limiter = Limiter::new(policy()?);
    let jobs = limiter.policy("jobs")?;
    let one = work(jobs.pace("disk"), 5, |number| println!("loop one: job {number}"));
    let two = work(jobs.pace("disk"), 5, |number| println!("loop two: job {number}"));
    let (one, two) = tokio::join!(one, two);
    one?;
    Ok(two?)
}
