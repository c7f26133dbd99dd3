//! One way to run property tests: the same input every time, unless the environment asks for other.

use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

/// What makes an unseeded run the same every time.
const SEED: u64 = 0x7469_6465_6761_7465;

/// Puts `cases` random inputs to `holds`, and shrinks the first that fails. `PROPTEST_CASES` asks for another
/// number of them, `PROPTEST_RNG_SEED` for others.
///
/// # Panics
/// With the smallest input that fails and what is wrong with it.
pub(super) fn for_all<S: Strategy>(cases: u32, inputs: &S, holds: impl Fn(S::Value) -> Result<(), String>)
where
    S::Value: Debug,
{
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if matches!(config.rng_seed, RngSeed::Random) {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    let failed = TestRunner::new(config).run(inputs, |input| holds(input).map_err(TestCaseError::fail));
    match failed {
        Ok(()) => {}
        Err(TestError::Fail(fault, input)) => panic!("{fault}\nfor {input:#?}"),
        Err(TestError::Abort(reason)) => panic!("no input: {reason}"),
    }
}
