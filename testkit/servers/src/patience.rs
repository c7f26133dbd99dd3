//! Waiting for servers, which tell nobody when they are ready.

use std::thread::sleep;
use std::time::Duration;

/// How often we look, at most: a minute in all, on a machine that has other things to do too.
const LOOKS: u32 = 6000;
const BETWEEN: Duration = Duration::from_millis(10);

/// Looks until `seen` says `Ok`, and panics with `what` and the last thing seen when that does not come.
pub(crate) fn until<T>(what: &str, mut seen: impl FnMut() -> Result<T, String>) -> T {
    let mut last = String::new();
    for _ in 0..LOOKS {
        match seen() {
            Ok(it) => return it,
            Err(instead) => last = instead,
        }
        sleep(BETWEEN);
    }
    panic!("waited in vain until {what}; last: {last}");
}
