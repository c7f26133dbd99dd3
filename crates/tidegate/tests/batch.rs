//! Many checks at once: to the last figure what one after the other would have been.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tidegate::clock::ManualClock;
use tidegate::{
    Asked, Cost, Decision, KeyPattern, Limit, Limiter, MemoryStore, OnFull, Period, Policy, PolicyHandle,
    PolicySet, Rate, Timestamp, Wait,
};

const POLICIES: [&str; 4] = ["bucket", "window", "log", "several"];

/// Other figures, and other overrides, for each `version`.
fn policies(version: u32) -> PolicySet {
    let bucket = |more| Limit::token_bucket(7 + version + more, Rate::new(3, Period::from_secs(2).unwrap()));
    let window = Limit::fixed_window(9 + version % 2, Period::from_secs(5).unwrap());
    let log = Limit::sliding_window_log(6, Period::from_secs(3).unwrap()).unwrap();
    let counter = Limit::sliding_window_counter(8 + version % 3, Period::from_secs(4).unwrap());
    let exact = KeyPattern::exact([version as u8 % 5]);
    let overridden = Policy::builder("bucket").limit("b", bucket(0)).override_for(exact, [("b", bucket(20))]);
    let several = Policy::builder("several").limit("log", log).limit("counter", counter);
    // With a limit more the words of a state are more, too.
    let several = if version.is_multiple_of(2) { several } else { several.limit("bucket", bucket(0)) };
    PolicySet::new([
        overridden.build().unwrap(),
        Policy::single("window", window).unwrap(),
        Policy::single("log", log).unwrap(),
        several.build().unwrap(),
    ])
    .unwrap()
}

/// What one check asks: which policy, which key, how much.
type Ask = (usize, u8, u32);

#[derive(Debug, Clone)]
enum Step {
    Check(Vec<Ask>),
    Reload(u32),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let ask = (0..POLICIES.len(), 0..5_u8, 0..5_u32);
    // One key again and again, a few, and more than are read ahead at once.
    let batch = prop_oneof![
        prop::collection::vec(ask.clone(), 0..6),
        prop::collection::vec((0..1_usize, 0..2_u8, 0..3_u32), 0..20),
        prop::collection::vec(ask, 10..50),
    ];
    let step = prop_oneof![5 => batch.prop_map(Step::Check), 1 => (0..6_u32).prop_map(Step::Reload)];
    prop::collection::vec((0..1_500_000_u64, step), 1..40)
}

/// How many keys a store may hold, and what it does then.
fn bounds() -> impl Strategy<Value = Option<(usize, OnFull)>> {
    prop::option::of((1..20_usize, prop_oneof![Just(OnFull::Shed), Just(OnFull::RefuseNew)]))
}

fn store(bounds: Option<(usize, OnFull)>) -> MemoryStore {
    let builder = MemoryStore::builder().secret(5).shards(4);
    match bounds {
        None => builder.build(),
        Some((most, on_full)) => builder.max_keys(most).on_full(on_full).build(),
    }
}

struct Run {
    limiter: Limiter,
    /// From before all reloads.
    handles: Vec<PolicyHandle>,
}

impl Run {
    fn new(store: MemoryStore) -> Self {
        let limiter = Limiter::builder(policies(0)).clock(ManualClock::default()).store(store).build();
        let handles = POLICIES.iter().map(|name| limiter.policy(name).unwrap()).collect();
        Run { limiter, handles }
    }

    fn at_once(&self, now: Timestamp, asks: &[Ask]) -> Vec<Decision> {
        let asked: Vec<Asked<'_>> = asks
            .iter()
            .map(|(policy, key, cost)| Asked {
                policy: &self.handles[*policy],
                key: std::slice::from_ref(key),
                cost: Cost::from(*cost),
            })
            .collect();
        self.limiter.check_batch_at(&asked, now)
    }

    fn one_by_one(&self, now: Timestamp, asks: &[Ask]) -> Vec<Decision> {
        let check = |(policy, key, cost): &Ask| self.handles[*policy].check_at([*key], *cost, now);
        asks.iter().map(check).collect()
    }
}

/// All there is to a decision, in words.
fn words(decisions: &[Decision]) -> Vec<String> {
    decisions.iter().map(|decision| format!("{decision:?}")).collect()
}

proptest! {
    #[test]
    fn at_once_is_one_by_one(bounds in bounds(), steps in steps()) {
        let (batched, single) = (Run::new(store(bounds)), Run::new(store(bounds)));
        let mut now = Timestamp::from_micros(1_000_000_000).unwrap();
        for (later, step) in steps {
            now = now.saturating_add(Wait::from_micros(u128::from(later)));
            match step {
                Step::Check(asks) => {
                    let decided = batched.at_once(now, &asks);
                    prop_assert_eq!(words(&decided), words(&single.one_by_one(now, &asks)));
                }
                Step::Reload(version) => {
                    batched.limiter.reload(policies(version)).unwrap();
                    single.limiter.reload(policies(version)).unwrap();
                }
            }
            prop_assert_eq!(batched.limiter.store().stats(), single.limiter.store().stats());
        }
    }
}

fn limiter(names: &[&str], limit: Limit) -> (Limiter, Vec<PolicyHandle>, ManualClock) {
    let clock = ManualClock::default();
    let set = PolicySet::new(names.iter().map(|name| Policy::single(*name, limit).unwrap())).unwrap();
    let limiter = Limiter::builder(set).clock(clock.clone()).build();
    let handles = names.iter().map(|name| limiter.policy(name).unwrap()).collect();
    (limiter, handles, clock)
}

fn one<'a>(policy: &'a PolicyHandle, key: &'a str) -> Asked<'a> {
    Asked { policy, key: key.as_bytes(), cost: Cost::ONE }
}

#[test]
fn one_policy_and_many_keys() {
    let (_, handles, _) = limiter(&["api"], Limit::token_bucket(2, Rate::ZERO));
    let api = &handles[0];
    assert!(api.check_batch(&[] as &[&str], 1).is_empty());
    assert_eq!(api.check_batch(&["alone"], 1)[0].remaining(), 1);
    let keys: Vec<String> = (0..100).map(|number| format!("key {}", number % 40)).collect();
    let decided = api.check_batch(&keys, 1);
    for (place, decision) in decided.iter().enumerate() {
        assert_eq!(decision.is_allowed(), place < 80, "{place}");
        assert_eq!(decision.remaining(), u64::from(place < 40), "{place}");
    }
}

#[test]
fn a_refused_check_keeps_no_other_from_being_charged() {
    let (limiter, handles, _) = limiter(&["a", "b"], Limit::token_bucket(1, Rate::ZERO));
    let [a, b] = [&handles[0], &handles[1]];
    let decided = limiter.check_batch(&[one(a, "k"), one(a, "k"), one(b, "k"), one(a, "other")]);
    assert_eq!(decided.iter().map(Decision::is_allowed).collect::<Vec<_>>(), [true, false, true, true]);
}

#[test]
#[should_panic(expected = "another limiter")]
fn a_policy_of_another_limiter_is_refused() {
    let (limiter, ..) = self::limiter(&["api"], Limit::token_bucket(1, Rate::ZERO));
    let (_, others, _) = self::limiter(&["api"], Limit::token_bucket(1, Rate::ZERO));
    limiter.check_batch(&[one(&others[0], "k")]);
}

/// Of all keys of a batch, those with a line are refused; the others are decided as ever.
#[tokio::test]
async fn nobody_overtakes_a_line_as_part_of_a_batch() {
    let (limiter, handles, clock) = limiter(&["a", "b"], Limit::token_bucket(2, Rate::per_second(1)));
    let [a, b] = [&handles[0], &handles[1]];
    a.check("k", 1);
    let waits = tokio::spawn(a.acquire("k", 2));
    tokio::task::yield_now().await;
    let peek = Asked { cost: Cost::PEEK, ..one(a, "k") };
    let asked = [one(b, "k"), one(a, "k"), peek, one(a, "other"), one(a, "k")];
    let (behind, stands) = (a.check("k", 1), a.peek("k"));
    let decided = limiter.check_batch(&asked);
    let admitted: Vec<bool> = decided.iter().map(Decision::is_allowed).collect();
    assert_eq!(admitted, [true, false, true, true, false]);
    assert_eq!(words(&[decided[1], decided[2], decided[4]]), words(&[behind, stands, behind]));
    assert!(a.check_batch(&["k", "k"], 1).iter().all(|decision| !decision.is_allowed()), "all in line");
    clock.advance(Duration::from_secs(1));
    assert!(waits.await.unwrap().unwrap().is_allowed());
    assert_eq!(a.check_batch(&["k"], 1)[0].remaining(), 0, "the one that is in line has had both");
}

/// From all sides, over few shards, so that batches find each other's locks taken.
#[test]
fn batches_of_many_threads_admit_exactly_what_there_is() {
    const KEYS: usize = 40;
    let set = Policy::single("api", Limit::token_bucket(1_000, Rate::ZERO)).unwrap();
    let store = MemoryStore::builder().shards(8).build();
    let limiter = Limiter::builder(set).store(store).clock(ManualClock::default()).build();
    let admitted: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..6_usize {
            let (api, admitted) = (limiter.policy("api").unwrap(), &admitted);
            scope.spawn(move || {
                for round in 0..1_000 {
                    let places: Vec<usize> =
                        (0..20).map(|at| (thread * 7 + round * 3 + at * 11) % KEYS).collect();
                    let keys: Vec<[u8; 1]> = places.iter().map(|place| [*place as u8]).collect();
                    for (place, decision) in places.iter().zip(api.check_batch(&keys, 1)) {
                        admitted[*place].fetch_add(u64::from(decision.is_allowed()), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    // Each is asked for three thousand times.
    assert!(admitted.iter().all(|admitted| admitted.load(Ordering::Relaxed) == 1_000), "{admitted:?}");
}
