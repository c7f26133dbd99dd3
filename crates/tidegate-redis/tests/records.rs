//! What lies in the server: how long it lives, how much it takes, and what happens when it is not ours.
#![allow(clippy::unwrap_used)]

#[path = "../../tidegate/tests/judged/mod.rs"]
mod judged;
mod shared;

use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::store::StoreErrorKind;
use tidegate::{
    Asked, Cost, Limit, Limiter, Period, Policy, PolicyHandle, PolicySet, Rate, Timestamp, Units,
};
use tidegate_redis::{OnDamaged, OnStoreError, RedisStore, RedisStoreBuilder};
use tidegate_testkit_servers::{Program, Reply, Server};

const NOW: Timestamp = Timestamp::saturating_from_micros(1_800_000_000_000_000);

fn policies() -> PolicySet {
    let bucket = Limit::token_bucket(1_000, Rate::per_second(100));
    let log = Limit::sliding_window_log(100, Period::MINUTE).unwrap();
    let four = Policy::builder("four")
        .limit("bucket", bucket)
        .limit("hour", Limit::fixed_window(9_000, Period::HOUR))
        .limit("day", Limit::fixed_window(90_000, Period::DAY))
        .limit("counter", Limit::sliding_window_counter(9_000, Period::MINUTE));
    let blink = Period::from_micros(1_000).unwrap();
    let blinks = Policy::builder("blink")
        .limit("bucket", Limit::token_bucket(5, Rate::new(5, blink)))
        .limit("log", Limit::sliding_window_log(5, blink).unwrap());
    PolicySet::new([
        Policy::single("bucket", bucket).unwrap(),
        Policy::single("never", Limit::token_bucket(5, Rate::ZERO)).unwrap(),
        Policy::single("shut", Limit::token_bucket(0, Rate::per_second(1))).unwrap(),
        Policy::single("log", log).unwrap(),
        Policy::single("long", Limit::sliding_window_log(65_536, Period::DAY).unwrap()).unwrap(),
        four.build().unwrap(),
        blinks.build().unwrap(),
    ])
    .unwrap()
}

async fn limiter(builder: RedisStoreBuilder) -> Limiter<RedisStore> {
    let builder = builder.prefix("tg1").timeout(Duration::from_secs(30)).on_store_error(OnStoreError::Deny);
    let store = builder.open().await.unwrap();
    Limiter::builder(policies()).store(store).clock(ManualClock::new(NOW)).build()
}

async fn admits(policy: &PolicyHandle<RedisStore>, key: &str, cost: u32) -> bool {
    policy.check(key, cost).await.unwrap().is_allowed()
}

fn number(server: &Server, command: &[&str]) -> i64 {
    match server.command(command) {
        Reply::Integer(number) => number,
        other => panic!("{command:?} was answered {other:?}"),
    }
}

#[tokio::test]
async fn a_record_lives_until_its_loss_changes_nothing_and_a_second_more() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    assert!(admits(&limiter.policy("bucket").unwrap(), "ann", 250).await);
    let lives = number(&server, &["PTTL", "tg1:{kann}:bucket"]);
    assert!((3_000..=3_502).contains(&lives), "{lives} ms, for 2.5 s until it is full and a second");
    assert!(admits(&limiter.policy("never").unwrap(), "ann", 1).await);
    assert_eq!(number(&server, &["PTTL", "tg1:{kann}:never"]), -1);
    assert!(admits(&limiter.policy("log").unwrap(), "ann", 1).await);
    let lives = number(&server, &["PTTL", "tg1:{kann}:log"]);
    assert!((60_000..=61_002).contains(&lives), "{lives} ms");
    assert_eq!(number(&server, &["DBSIZE"]), 3, "one key for each client and policy");
}

#[tokio::test]
async fn what_never_becomes_as_new_can_be_given_a_life() {
    let server = Server::start(Program::Redis7);
    let day = Duration::from_secs(24 * 3600);
    let limiter = limiter(RedisStore::builder(server.url()).expire_unending(day)).await;
    let in_a_day = |key: &str| {
        let lives = number(&server, &["PTTL", key]);
        assert!((86_000_000..=86_400_000).contains(&lives), "{key} lives {lives} ms");
    };
    let never = limiter.policy("never").unwrap();
    // By each of the scripts that write: of one check, of several, of a group, and of changes.
    assert!(admits(&never, "one", 1).await);
    let decided = never.check_batch(&["two", "three"], 1_u32).await;
    assert!(decided.iter().all(|it| it.as_ref().is_ok_and(|it| it.is_allowed())));
    let decided = never.check_batch(&["four", "four"], 1_u32).await;
    assert!(decided.iter().all(|it| it.as_ref().is_ok_and(|it| it.is_allowed())));
    let bucket = limiter.policy("bucket").unwrap();
    let asked = [&never, &bucket].map(|policy| tidegate::Asked { policy, key: b"five", cost: Cost::ONE });
    assert!(limiter.check_all(&asked).await.unwrap().iter().all(|decision| decision.is_allowed()));
    never.penalize("six", 1_u32).await.unwrap();
    for key in ["one", "two", "three", "four", "five", "six"] {
        in_a_day(&format!("tg1:{{k{key}}}:never"));
    }
    let lives = number(&server, &["PTTL", "tg1:{kfive}:bucket"]);
    assert!(lives <= 1_012, "what becomes as new lives as long as ever, not {lives} ms");
}

#[tokio::test]
async fn looks_and_refusals_write_nothing() {
    let server = Server::start(Program::Valkey8);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    for name in ["bucket", "never", "log", "four", "blink"] {
        let policy = limiter.policy(name).unwrap();
        assert!(policy.peek("ann").await.unwrap().is_allowed());
        assert!(!policy.check("ann", Cost::MAX).await.unwrap().is_allowed());
        assert!(policy.credit("ann", Units::ZERO).await.unwrap().is_allowed());
        policy.reset("ann").await.unwrap();
    }
    assert!(!admits(&limiter.policy("shut").unwrap(), "ann", 1).await);
    assert_eq!(number(&server, &["DBSIZE"]), 0);
}

#[tokio::test]
async fn the_keyspace_is_empty_again_after_a_while() {
    let server = Server::start(Program::Redis8);
    let limiter = limiter(RedisStore::builder(server.url()).spare(Duration::from_millis(20))).await;
    let policy = limiter.policy("blink").unwrap();
    for key in 0..200 {
        assert!(admits(&policy, &key.to_string(), 3).await);
    }
    until_empty(&server).await;
}

/// The server's own clock: nothing of ours waits for it.
async fn until_empty(server: &Server) {
    let mut left = i64::MAX;
    for _ in 0..500 {
        left = number(server, &["DBSIZE"]);
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{left} keys are left");
}

#[tokio::test]
async fn a_reset_leaves_nothing_behind() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    for name in ["bucket", "never", "log", "four", "blink"] {
        let policy = limiter.policy(name).unwrap();
        assert!(admits(&policy, "ann", 2).await);
        policy.reset("ann").await.unwrap();
    }
    assert_eq!(number(&server, &["DBSIZE"]), 0);
}

#[tokio::test]
async fn what_is_not_ours_is_an_error_that_names_it() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    let policy = limiter.policy("bucket").unwrap();
    assert!(admits(&policy, "ann", 1).await);
    let whole = bytes(&server, "tg1:{kann}:bucket");
    let state = whole.len() - 24;
    let not_numbers = [&whole[..state], &f64::NAN.to_be_bytes(), &whole[state + 8..]].concat();
    let half = [&whole[..state + 8], &0.5_f64.to_be_bytes(), &whole[state + 16..]].concat();
    let damaged: [&[u8]; 7] =
        [b"", b"42", b"\x01", &whole[..whole.len() - 1], &[&whole[..], b"x"].concat(), &not_numbers, &half];
    for record in damaged {
        server.command(&[b"SET", &b"tg1:{kann}:bucket"[..], record]);
        for asked in
            [policy.check("ann", 1).await, policy.peek("ann").await, policy.credit("ann", 1_u32).await]
        {
            match (record.is_empty(), asked) {
                // Nothing at all is as good as absent.
                (true, Ok(decision)) => assert!(decision.is_allowed()),
                (false, Err(error)) => {
                    assert_eq!(error.kind, StoreErrorKind::Damaged, "{error}");
                    assert!(error.reason.contains("tg1:{kann}:bucket"), "{error}");
                    assert!(error.reason.contains("on_damaged"), "{error}");
                }
                (_, other) => panic!("{record:?}: {other:?}"),
            }
        }
    }
    server.command(&["DEL", "tg1:{kann}:bucket"]);
    server.command(&["LPUSH", "tg1:{kann}:bucket", "x"]);
    for asked in [policy.check("ann", 1).await, policy.peek("ann").await, policy.credit("ann", 1_u32).await] {
        let error = asked.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Damaged);
        assert!(error.reason.contains("tg1:{kann}:bucket"), "{error}");
        assert!(error.reason.contains("another type"), "{error}");
    }
}

/// Records of logs, small and read as a whole, and larger ones of which only parts are read.
#[tokio::test]
async fn a_damaged_log_is_an_error_that_names_it() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    let policy = limiter.policy("log").unwrap();
    for entries in [3_u64, 90] {
        server.command(&["FLUSHALL"]);
        for micros in 0..entries {
            let at = Timestamp::from_micros(NOW.as_micros() + micros).unwrap();
            assert!(policy.check_at("ann", 1, at).await.unwrap().is_allowed());
        }
        let whole = bytes(&server, "tg1:{kann}:log");
        let slots = if entries == 3 { 3 } else { (whole.len() - 40) / 16 };
        let state = whole.len() - 16 * slots - 40;
        assert_eq!(
            numbers(&whole[state + 8..state + 40]),
            [entries as f64, 0.0, entries as f64, slots as f64]
        );
        let with = |place: usize, number: f64| {
            let mut damaged = whole.clone();
            damaged[state + 8 * place..state + 8 * place + 8].copy_from_slice(&number.to_be_bytes());
            damaged
        };
        let (oldest, newest) = (5, 5 + 2 * (entries as usize - 1));
        let mut damaged = vec![
            whole[..whole.len() - 1].to_vec(),
            whole[..state + 40].to_vec(),
            [&whole[..], &[0; 16]].concat(),
            [&b"\x01"[..], &whole[1..]].concat(),
        ];
        for number in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, -1.0, 0.5, 1e300, 2e15] {
            // The total, the head, the length and the slots; a total that is too large may be right.
            let fields = if number == 2e15 { 2..5 } else { 1..5 };
            damaged.extend(fields.map(|place| with(place, number)));
        }
        for number in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, -1.0, 0.5, 1e300] {
            damaged.extend([oldest, oldest + 1, newest, newest + 1].map(|place| with(place, number)));
        }
        let asked = || tidegate::Asked { policy: &policy, key: b"ann", cost: Cost::ONE };
        for record in &damaged {
            server.command(&[b"SET", &b"tg1:{kann}:log"[..], record]);
            let whole_logs = limiter.check_all(&[asked(), asked()]).await.map(|decided| decided[0]);
            for asked in [
                policy.check("ann", 1).await,
                policy.peek("ann").await,
                policy.check("ann", 100).await,
                policy.credit("ann", 1_u32).await,
                limiter.check_all(&[asked()]).await.map(|decided| decided[0]),
                whole_logs,
            ] {
                let error = asked.expect_err(&format!("{entries} entries: {record:?}"));
                assert!(error.reason.contains("the record tg1:{kann}:log is damaged"), "{error}");
            }
            assert_eq!(&bytes(&server, "tg1:{kann}:log"), record, "nothing was charged");
        }
        // Totals near the end of what is exact are counted anew, with the same answers.
        server.command(&[b"SET", &b"tg1:{kann}:log"[..], &far(&whole, state, entries as usize)]);
        let left = 100 - entries;
        assert_eq!(policy.peek("ann").await.unwrap().remaining(), left);
        assert_eq!(policy.check("ann", 1).await.unwrap().remaining(), left - 1);
        let record = bytes(&server, "tg1:{kann}:log");
        assert_eq!(numbers(&record[state + 8..state + 16]), [entries as f64 + 1.0]);
    }
}

/// A record of one log of `entries`, after so much that its running totals are near 2^53.
fn far(record: &[u8], state: usize, entries: usize) -> Vec<u8> {
    let mut far = record.to_vec();
    let places = std::iter::once(1).chain((0..entries).map(|entry| 6 + 2 * entry));
    for place in places {
        let number = &mut far[state + 8 * place..state + 8 * place + 8];
        let total = f64::from_be_bytes(number.try_into().unwrap()) + 9e15;
        number.copy_from_slice(&total.to_be_bytes());
    }
    far
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(8).map(|chunk| f64::from_be_bytes(chunk.try_into().unwrap())).collect()
}

#[tokio::test]
async fn one_record_that_is_none_is_no_other_keys_business() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    for name in ["bucket", "log", "four"] {
        let policy = limiter.policy(name).unwrap();
        server.command(&["LPUSH", &format!("tg1:{{kbad}}:{name}"), "x"]);
        let tasks: Vec<_> = (0..60_u32)
            .map(|number| {
                let (policy, key) = (policy.clone(), if number % 6 == 0 { "bad" } else { "good" });
                tokio::spawn(async move { (key, policy.check(key, 1).await) })
            })
            .collect();
        for task in tasks {
            let (key, asked) = task.await.unwrap();
            assert_eq!(asked.is_ok(), key == "good", "{name}, {key}: {asked:?}");
        }
        // And all of different keys, the bad one among them.
        let keys = ["one", "two", "bad", "three"];
        let decided = policy.check_batch(&keys, 1_u32).await;
        let answered: Vec<bool> = decided.iter().map(Result::is_ok).collect();
        assert_eq!(answered, [true, true, false, true], "{decided:?}");
        for key in ["one", "two", "three"] {
            let left = policy.peek(key).await.unwrap().limits()[0].remaining();
            assert_eq!(left, if name == "log" { 99 } else { 999 }, "{name}: {key} was charged once");
        }
        let left = policy.peek("good").await.unwrap().limits()[0].remaining();
        assert_eq!(left, if name == "log" { 50 } else { 950 }, "each was charged once");
    }
}

#[tokio::test]
async fn scripts_of_several_kinds_forgotten_at_once_are_all_told_again() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    let names = ["bucket", "never", "log", "four", "blink"];
    let policies: Vec<_> = names.iter().map(|name| limiter.policy(name).unwrap()).collect();
    for _ in 0..5 {
        server.command(&["SCRIPT", "FLUSH"]);
        let keys = ["ann", "bob"];
        let asked = policies.iter().flat_map(|policy| {
            keys.map(|key| tidegate::Asked { policy, key: key.as_bytes(), cost: Cost::PEEK })
        });
        let decided = limiter.check_batch(&asked.collect::<Vec<_>>()).await;
        assert!(decided.iter().all(|decided| decided.as_ref().is_ok_and(|it| it.is_allowed())));
    }
}

/// What lies where a record or its log should, and is none.
const DAMAGES: [&[&str]; 4] = [
    &["SET", "tg1:{kbad}:bucket", "whatever this may be"],
    &["LPUSH", "tg1:{kbad}:bucket", "x"],
    &["SET", "tg1:{kbad}:log", "whatever this may be"],
    &["HSET", "tg1:{kbad}:log", "x", "y"],
];

#[tokio::test]
async fn in_a_group_too_it_is_named_or_started_anew_and_nobody_else_is_charged() {
    for on_damaged in [OnDamaged::Refuse, OnDamaged::StartAnew] {
        let server = Server::start(Program::Redis7);
        let limiter = limiter(RedisStore::builder(server.url()).on_damaged(on_damaged)).await;
        let (bucket, log) = (limiter.policy("bucket").unwrap(), limiter.policy("log").unwrap());
        for damage in DAMAGES {
            server.command(&["DEL", damage[1]]);
            server.command(damage);
            let policy = if damage[1].ends_with("log") { &log } else { &bucket };
            let asked = [
                Asked { policy: &log, key: b"good", cost: Cost::ONE },
                Asked { policy, key: b"bad", cost: Cost::ONE },
                Asked { policy: &bucket, key: b"good", cost: Cost::ONE },
            ];
            let before = log.peek("good").await.unwrap().remaining();
            let told = limiter.check_all(&asked).await;
            let left = log.peek("good").await.unwrap().remaining();
            match on_damaged {
                OnDamaged::Refuse => {
                    let error = told.unwrap_err();
                    assert_eq!(error.kind, StoreErrorKind::Damaged, "{damage:?}: {error}");
                    assert!(error.reason.contains(damage[1]), "{damage:?}: {error}");
                    assert_eq!(left, before, "{damage:?}");
                }
                OnDamaged::StartAnew => {
                    assert!(told.unwrap().iter().all(|it| it.is_allowed()), "{damage:?}");
                    assert_eq!(left, before - 1, "{damage:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_log_whose_entries_are_none_is_no_other_keys_business() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    let log = limiter.policy("log").unwrap();
    assert!(admits(&log, "bad", 3).await);
    let whole = bytes(&server, "tg1:{kbad}:log");
    let damaged = [&whole[..whole.len() - 16], &[0xff; 16]].concat();
    server.command(&[b"SET", &b"tg1:{kbad}:log"[..], &damaged]);
    let told = log.check_batch(&["good", "bad", "good"], 1).await;
    assert_eq!(told.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true], "{told:?}");
    let error = told[1].as_ref().unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Damaged, "{error}");
    assert!(error.reason.contains("tg1:{kbad}:log"), "{error}");
    assert_eq!(log.peek("good").await.unwrap().remaining(), 98, "each was charged once");
    for asked in [log.peek("bad").await, log.credit("bad", 1_u32).await] {
        assert_eq!(asked.unwrap_err().kind, StoreErrorKind::Damaged);
    }
}

fn bytes(server: &Server, key: &str) -> Vec<u8> {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    redis::cmd("GET").arg(key).query(&mut connection).unwrap()
}

#[tokio::test]
async fn what_is_not_ours_can_be_started_anew_by_choice() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(RedisStore::builder(server.url()).on_damaged(OnDamaged::StartAnew)).await;
    for (name, capacity) in [("bucket", 1_000), ("log", 100), ("four", 1_000)] {
        let policy = limiter.policy(name).unwrap();
        for damage in ["SET", "LPUSH"] {
            server.command(&["DEL", &format!("tg1:{{kann}}:{name}")]);
            server.command(&[damage, &format!("tg1:{{kann}}:{name}"), "whatever this may be"]);
            let decision = policy.check("ann", 1).await.unwrap();
            assert_eq!((decision.is_allowed(), decision.remaining()), (true, capacity - 1), "{damage}");
            server.command(&["DEL", &format!("tg1:{{kbob}}:{name}")]);
            server.command(&[damage, &format!("tg1:{{kbob}}:{name}"), "whatever this may be"]);
            assert!(policy.credit("bob", 1_u32).await.unwrap().is_allowed());
        }
    }
}

#[tokio::test]
async fn a_record_is_small() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    let takes = |name: &str| {
        let takes = number(&server, &["MEMORY", "USAGE", &format!("tg1:{{kuser%3a42}}:{name}")]);
        println!("{name}: {takes} bytes a client");
        takes
    };
    for (name, most) in [("bucket", 128), ("never", 120), ("four", 208), ("log", 176)] {
        assert!(admits(&limiter.policy(name).unwrap(), "user:42", 1).await);
        let takes = takes(name);
        assert!(takes <= most, "{name}: {takes} bytes");
    }
    let long = limiter.policy("long").unwrap();
    for entry in 1..=2_000_u64 {
        let at = Timestamp::from_micros(NOW.as_micros() + entry).unwrap();
        assert!(long.check_at("user:42", 1, at).await.unwrap().is_allowed());
        if [2, 10, 50, 60, 100, 500, 2_000].contains(&entry) {
            let each = (takes("long") - 160) as f64 / entry as f64;
            println!("{each:.1} bytes for each of {entry} entries");
            // A ring that has just been given room for twice as many, in a string of the server's sizes.
            assert!(each <= if entry <= 50 { 24.0 } else { 42.0 }, "{each} bytes an entry");
        }
    }
}

#[tokio::test]
async fn any_bytes_are_a_key() {
    let server = Server::start(Program::Valkey9);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    let never = limiter.policy("never").unwrap();
    let keys: [&[u8]; 8] = [b"", b"}", b"{", b"{}", b"a b\r\n", &[0, 255, 254], &[b'x'; 64], &[b'x'; 65]];
    for key in keys {
        assert_eq!(never.check(key, 2).await.unwrap().remaining(), 3, "{key:?}");
    }
    assert_eq!(number(&server, &["DBSIZE"]), 8);
    for key in keys {
        assert_eq!(never.check(key, 2).await.unwrap().remaining(), 1, "{key:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_on_several_nodes_admit_exactly_what_there_is() {
    const NODES: usize = 3;
    const TASKS: usize = 12;
    let server = Server::start(Program::Redis7);
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        nodes.push(limiter(RedisStore::builder(server.url())).await);
    }
    // 1000 at once and 100 a second: over two seconds, in steps that the tasks take each in its own time, 1200.
    let mut tasks = Vec::new();
    for task in 0..TASKS {
        let bucket = nodes[task % NODES].policy("bucket").unwrap();
        tasks.push(tokio::spawn(async move {
            let mut admitted = 0;
            for step in 0..=20_u64 {
                let now = Timestamp::from_micros(NOW.as_micros() + step * 100_000).unwrap();
                for _ in 0..20 {
                    admitted += u64::from(bucket.check_at("all", 1, now).await.unwrap().is_allowed());
                }
            }
            admitted
        }));
    }
    let mut admitted = 0;
    for task in tasks {
        admitted += task.await.unwrap();
    }
    let bucket = nodes[0].policy("bucket").unwrap();
    let end = Timestamp::from_micros(NOW.as_micros() + 2_000_000).unwrap();
    let left = bucket.peek_at("all", end).await.unwrap().remaining();
    assert_eq!(admitted + left, 1_200);
    while bucket.check_at("all", 1, end).await.unwrap().is_allowed() {
        admitted += 1;
    }
    assert_eq!(admitted, 1_200);
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_given_again_and_charge_once() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(RedisStore::builder(server.url())).await;
    let never = limiter.policy("never").unwrap();
    for left in [4, 3, 2, 1, 0] {
        server.command(&["SCRIPT", "FLUSH"]);
        assert_eq!(never.check("ann", 1).await.unwrap().remaining(), left);
    }
}

#[tokio::test]
async fn a_server_that_does_not_run_the_scripts_is_told_of_at_the_start() {
    let server = Server::start(Program::Redis7);
    for (user, refused) in
        [("poor", "-evalsha"), ("poorer", "-setrange"), ("poorestofall", "-persist"), ("poorest", "-set")]
    {
        server.command(&["ACL", "SETUSER", user, "on", ">pw", "~*", "+@all", refused]);
        let url = format!("redis://{user}:pw@{}", server.address());
        let error = RedisStore::builder(url).open().await.unwrap_err();
        assert!(error.reason.starts_with("Redis 7.0"), "{error}");
        let words = ["permissions", "can't run this command"];
        assert!(words.iter().any(|words| error.reason.contains(words)), "{error}");
        assert!(!error.to_string().contains("pw"), "{error}");
    }
    until_empty(&server).await;
}
