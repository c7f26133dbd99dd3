//! The example of the README: `cargo run --example quickstart -p tidegate`.

use tidegate::{Limit, Limiter, Period, Policy, Rate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = Policy::builder("api")
        .limit("burst", Limit::token_bucket(100, Rate::per_second(10)))
        .limit("daily", Limit::fixed_window(10_000, Period::DAY))
        .build()?;
    let api = Limiter::new(policy).policy("api")?;
    for cost in [60, 60, 200] {
        let decision = api.check("user:42", cost);
        println!("cost {cost}: {}, {} left", decision.outcome(), decision.remaining());
    }
    Ok(())
}
