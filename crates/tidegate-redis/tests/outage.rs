//! What is answered while the server is not.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::store::{StoreErrorKind, within};
use tidegate::{
    Asked, Cost, Limit, Limiter, Outcome, Period, Policy, PolicyHandle, PolicySet, Rate, Timestamp,
};
use tidegate_redis::{OnStoreError, RedisStore, RedisStoreBuilder};
use tidegate_testkit_servers::{Mischief, Program, Proxy, Server};

const NOW: Timestamp = Timestamp::saturating_from_micros(1_800_000_000_000_000);

struct Node {
    clock: ManualClock,
    limiter: Limiter<RedisStore>,
}

impl Node {
    /// One whose policies answer an outage as they are named.
    async fn new(builder: RedisStoreBuilder) -> Node {
        let builder = builder
            .timeout(Duration::from_secs(1))
            .on_store_error_of("allow", OnStoreError::Allow)
            .on_store_error_of("deny", OnStoreError::Deny);
        let of = |name: &str| Policy::single(name, Limit::token_bucket(12, Rate::per_second(6))).unwrap();
        let policies = PolicySet::new([of("allow"), of("deny"), of("local")]).unwrap();
        let clock = ManualClock::new(NOW);
        let store = builder.open().await.unwrap();
        Node { limiter: Limiter::builder(policies).store(store).clock(clock.clone()).build(), clock }
    }

    fn policy(&self, name: &str) -> PolicyHandle<RedisStore> {
        self.limiter.policy(name).unwrap()
    }
}

/// How many of cost 1 pass, and whether each was told to be degraded.
async fn passes(policy: &PolicyHandle<RedisStore>, key: &str, asked: usize) -> usize {
    let mut passed = 0;
    for _ in 0..asked {
        let decision = policy.check(key, 1).await.unwrap();
        assert!(decision.is_degraded());
        passed += usize::from(decision.is_allowed());
    }
    passed
}

#[tokio::test]
async fn each_policy_answers_an_outage_as_it_was_told() {
    let mut server = Server::start(Program::Redis7);
    let node = Node::new(RedisStore::builder(server.url())).await;
    for name in ["allow", "deny", "local"] {
        let decision = node.policy(name).check("ann", 5).await.unwrap();
        assert!(decision.is_allowed() && !decision.is_degraded());
        assert_eq!(decision.remaining(), 7);
    }
    server.kill();
    let allowed = node.policy("allow").check("ann", 12).await.unwrap();
    assert!(allowed.is_allowed() && allowed.is_degraded() && !allowed.is_metered());
    let error = node.policy("deny").check("ann", 1).await.unwrap_err();
    assert!(error.store.contains("redis://"), "{error}");
    // Of the seven that were left this node, the only one, has all.
    assert_eq!(passes(&node.policy("local"), "ann", 10).await, 7);
    assert_eq!(passes(&node.policy("local"), "new", 20).await, 12);
    let refused = node.policy("local").check("ann", 1).await.unwrap();
    assert_eq!(refused.outcome(), Outcome::Denied);
    assert_eq!(refused.retry_after().unwrap().as_micros(), 166_667);
    for policy in ["allow", "local"] {
        let too_much = node.policy(policy).check("ann", 13).await.unwrap();
        assert_eq!(too_much.is_allowed(), policy == "allow");
    }
}

#[tokio::test]
async fn what_is_not_a_check_is_done_to_this_nodes_share() {
    let mut server = Server::start(Program::Redis7);
    let node = Node::new(RedisStore::builder(server.url())).await;
    let (allow, deny, local) = (node.policy("allow"), node.policy("deny"), node.policy("local"));
    assert_eq!(local.penalize("ann", 5_u32).await.unwrap().after.remaining(), 7);
    server.kill();
    let done = local.penalize("ann", 3_u32).await.unwrap();
    assert!(done.after.is_degraded());
    assert_eq!((done.after.remaining(), done.cuts()), (4, &[0][..]), "what the server said last counts");
    assert_eq!(local.credit("ann", 2_u32).await.unwrap().remaining(), 6);
    let done = local.penalize("ann", 30_u32).await.unwrap();
    assert_eq!((done.after.is_allowed(), done.cuts()), (false, &[12][..]), "into debt, down to -12");
    assert!(!local.check("ann", 1).await.unwrap().is_allowed());
    let reset = local.reset("ann").await.unwrap();
    assert_eq!((reset.remaining(), reset.is_degraded()), (12, true));
    assert_eq!(passes(&local, "ann", 20).await, 12);
    // It keeps deciding, however long it takes.
    let mut fits = 0;
    for _ in 0..20 {
        fits += u32::from(local.penalize("new", 1_u32).await.unwrap().after.is_allowed());
    }
    assert_eq!(fits, 12);
    for done in
        [allow.penalize("ann", 99_u32).await.unwrap().after, allow.credit("ann", 9_u32).await.unwrap()]
    {
        assert!(done.is_allowed() && done.is_degraded() && !done.is_metered());
    }
    assert!(allow.reset("ann").await.unwrap().is_degraded());
    assert!(deny.penalize("ann", 1_u32).await.is_err());
    assert!(deny.credit("ann", 1_u32).await.is_err());
    assert_eq!(deny.reset("ann").await.unwrap_err().kind, StoreErrorKind::Outage);
}

#[tokio::test]
async fn what_may_have_been_done_counts_against_the_client() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let builder = RedisStore::builder(proxy.url());
    let classic = Policy::single("classic", Limit::token_bucket(12, Rate::per_second(6))).unwrap();
    let store = builder.timeout(Duration::from_secs(1)).classic("classic", "b:").open().await.unwrap();
    let limiter = Limiter::builder(classic).store(store).clock(ManualClock::new(NOW)).build();
    // One that is changed by a single command: whether it ran is not known.
    let policy = limiter.policy("classic").unwrap();
    assert_eq!(policy.check("ann", 8).await.unwrap().remaining(), 4);
    proxy.set(Mischief::LoseNextReply);
    let credited = policy.credit("ann", 5_u32).await.unwrap();
    assert_eq!((credited.remaining(), credited.is_degraded()), (4, true), "not given back twice");
    proxy.set(Mischief::LoseNextReply);
    let charged = policy.penalize("ann", 1_u32).await.unwrap();
    assert_eq!((charged.after.remaining(), charged.after.is_degraded()), (3, true));
    proxy.set(Mischief::None);
    // The server has done both.
    while policy.peek("ann").await.unwrap().is_degraded() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(policy.peek("ann").await.unwrap().remaining(), 8);
}

#[tokio::test]
async fn a_black_hole_charges_and_gives_back_here() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let node = Node::new(RedisStore::builder(proxy.url())).await;
    let local = node.policy("local");
    assert_eq!(local.check("ann", 2).await.unwrap().remaining(), 10);
    proxy.set(Mischief::BlackHole);
    assert_eq!(local.penalize("ann", 4_u32).await.unwrap().after.remaining(), 6);
    // The record is read before it is changed, and not even that was answered.
    assert_eq!(local.credit("ann", 1_u32).await.unwrap().remaining(), 7);
    assert_eq!(passes(&local, "ann", 20).await, 7);
}

#[tokio::test]
async fn a_user_without_rights_is_out_as_well() {
    let server = Server::start(Program::Redis7);
    let node = Node::new(RedisStore::builder(server.url())).await;
    let (allow, deny, local) = (node.policy("allow"), node.policy("deny"), node.policy("local"));
    assert_eq!(local.check("ann", 2).await.unwrap().remaining(), 10);
    for rights in ["-evalsha", "-set", "-get", "resetkeys"] {
        server.command(&["ACL", "SETUSER", "default", rights]);
        let error = deny.check("ann", 1).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Outage, "{rights}: {error}");
        let (names_it, names_script) =
            (error.reason.contains("'evalsha'"), error.reason.contains("\"check one\""));
        assert!(names_script && (names_it || rights != "-evalsha"), "{rights}: {error}");
        assert!(local.check("ann", 1).await.unwrap().is_degraded(), "{rights}");
        assert!(local.penalize("ann", 1_u32).await.unwrap().after.is_degraded(), "{rights}");
        assert!(!allow.check("ann", 1).await.unwrap().is_metered(), "{rights}");
        server.command(&["ACL", "SETUSER", "default", "+@all", "~*"]);
        assert!(!deny.check("ann", 1).await.unwrap().is_degraded(), "{rights}");
    }
}

#[tokio::test]
async fn waiting_goes_on_in_an_outage() {
    let mut server = Server::start(Program::Redis7);
    let node = Node::new(RedisStore::builder(server.url())).await;
    let local = node.policy("local");
    server.kill();
    assert!(local.acquire("ann", 12).await.unwrap().is_degraded());
    let second = tokio::spawn(local.acquire("ann", 3));
    while local.check("ann", 1).await.unwrap().retry_after().unwrap().as_micros() < 500_000 {
        tokio::task::yield_now().await;
    }
    node.clock.advance(Duration::from_millis(500));
    assert!(second.await.unwrap().unwrap().is_allowed());
}

#[tokio::test]
async fn the_shares_of_all_nodes_add_up_to_what_was_left() {
    let mut server = Server::start(Program::Redis7);
    let mut nodes = Vec::new();
    for replica in ["1/3", "2/3", "3/3"] {
        nodes.push(Node::new(RedisStore::builder(server.url()).replica(replica.parse().unwrap())).await);
    }
    // Seven are left of a key that all have asked about, and twelve of one that nobody has.
    for node in &nodes {
        node.policy("local").check("ann", 1).await.unwrap();
    }
    nodes[1].policy("local").check("ann", 2).await.unwrap();
    let left = nodes[0].policy("local").peek("ann").await.unwrap().remaining();
    for node in &nodes {
        assert_eq!(node.policy("local").peek("ann").await.unwrap().remaining(), left);
    }
    server.kill();
    let (mut known, mut unknown) = (0, 0);
    for node in &nodes {
        known += passes(&node.policy("local"), "ann", 12).await;
        unknown += passes(&node.policy("local"), "new", 20).await;
    }
    assert_eq!((known as u64, unknown), (left, 12));
    // And so do their rates: over a second six in all.
    let mut refilled = 0;
    for node in &nodes {
        node.clock.advance(Duration::from_secs(1));
        refilled += passes(&node.policy("local"), "new", 20).await;
    }
    assert_eq!(refilled, 6);
    // What is above the share may fit when the store is back: not refused for good.
    let above = nodes[0].policy("local").check("new", 11).await.unwrap();
    assert_eq!((above.outcome(), above.retry_after()), (Outcome::Denied, None));
    let never = nodes[0].policy("local").check("new", 13).await.unwrap();
    assert_eq!(never.outcome(), Outcome::CostExceedsCapacity);
}

#[tokio::test]
async fn a_share_keeps_its_level_when_the_server_comes_and_goes() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let node = Node::new(RedisStore::builder(proxy.url())).await;
    let local = node.policy("local");
    for _ in 0..3 {
        proxy.set(Mischief::BlackHole);
        assert!(local.check("ann", 1).await.unwrap().is_degraded());
        proxy.set(Mischief::None);
        proxy.cut();
        // Until there is a connection again.
        while node.policy("deny").peek("else").await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    proxy.set(Mischief::BlackHole);
    // Three were taken here, whatever the server may have seen of them.
    assert_eq!(passes(&local, "ann", 12).await, 9);
}

#[tokio::test]
async fn what_may_have_run_counts_as_charged() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let node = Node::new(RedisStore::builder(proxy.url())).await;
    let local = node.policy("local");
    assert_eq!(local.check("ann", 4).await.unwrap().remaining(), 8);
    proxy.set(Mischief::LoseNextReply);
    // It ran: the server has three left. Nobody here knows, and it counts here as well.
    let lost = local.check("ann", 5).await.unwrap();
    assert!(lost.is_allowed() && lost.is_degraded());
    assert_eq!(lost.remaining(), 3);
    proxy.set(Mischief::BlackHole);
    // This one did not run; it may have, so it counts, into debt.
    let lost = local.check("ann", 4).await.unwrap();
    assert!(!lost.is_allowed());
    assert_eq!(lost.retry_after().unwrap().as_micros(), 166_667);
    let peek = local.peek("ann").await.unwrap();
    assert!(!peek.is_allowed(), "four on credit: {peek:?}");
}

#[tokio::test]
async fn groups_hold_together_without_the_server() {
    let mut server = Server::start(Program::Redis7);
    let node = Node::new(RedisStore::builder(server.url())).await;
    let (allow, deny, local) = (node.policy("allow"), node.policy("deny"), node.policy("local"));
    server.kill();
    let asked = |policy, key, cost: u32| Asked { policy, key, cost: Cost::from(cost) };
    let fits = [asked(&local, &b"ann"[..], 7), asked(&local, b"bob", 12), asked(&allow, b"ann", 99)];
    let decided = node.limiter.check_all(&fits).await.unwrap();
    assert!(decided.iter().all(|it| it.is_allowed() && it.is_degraded()));
    let over = [asked(&local, &b"ann"[..], 5), asked(&local, b"bob", 1)];
    let decided = node.limiter.check_all(&over).await.unwrap();
    assert_eq!(decided.iter().map(|it| it.is_allowed()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(local.peek("ann").await.unwrap().remaining(), 5, "a group that did not fit drained it");
    let twice = [asked(&local, &b"ann"[..], 3), asked(&local, b"ann", 3)];
    assert!(!node.limiter.check_all(&twice).await.unwrap().iter().all(|it| it.is_allowed()));
    // With one that must not be decided without the store there is no answer, and nobody is charged.
    for _ in 0..20 {
        let group = [asked(&local, &b"ann"[..], 1), asked(&deny, b"ann", 1), asked(&allow, b"ann", 1)];
        assert!(node.limiter.check_all(&group).await.is_err());
    }
    assert_eq!(local.peek("ann").await.unwrap().remaining(), 5, "a group without an answer drained it");
}

/// Whose checks are answered, and what is left to each.
async fn batch(node: &Node, members: &[(&str, &str, u32)]) -> Vec<Result<(bool, bool), String>> {
    let policies: Vec<_> = members.iter().map(|(policy, ..)| node.policy(policy)).collect();
    let asked = members.iter().zip(&policies).map(|((_, key, cost), policy)| Asked {
        policy,
        key: key.as_bytes(),
        cost: Cost::from(*cost),
    });
    let told = node.limiter.check_batch(&asked.collect::<Vec<_>>()).await.into_iter();
    told.map(|it| it.map(|it| (it.is_allowed(), it.is_degraded())).map_err(|it| it.reason)).collect()
}

#[tokio::test]
async fn a_check_without_an_answer_takes_none_of_its_batch_with_it() {
    let mut server = Server::start(Program::Redis7);
    let node = Node::new(RedisStore::builder(server.url())).await;
    let members = [
        ("deny", "ann", 1),
        ("local", "ann", 7),
        ("deny", "bad", 1),
        ("allow", "ann", 13),
        ("local", "bad", 1),
        ("local", "ann", 5),
        ("local", "ann", 1),
        ("deny", "bob", 12),
    ];
    for policy in ["deny", "local"] {
        server.command(&["SET", &format!("tg1:{{kbad}}:{policy}"), "whatever this may be"]);
    }
    let told = batch(&node, &members).await;
    let damaged = |it: &Result<_, String>| it.as_ref().is_err_and(|said| said.contains("damaged"));
    let damaged: Vec<bool> = told.iter().map(damaged).collect();
    assert_eq!(damaged, [false, false, true, false, true, false, false, false], "{told:?}");
    let answered = |it: &Result<(bool, bool), String>| it.clone().ok();
    let (yes, no) = (Some((true, false)), Some((false, false)));
    assert_eq!(told.iter().map(answered).collect::<Vec<_>>(), [yes, yes, None, no, None, yes, no, yes]);
    server.kill();
    // In an outage nobody knows that a record is damaged.
    let told = batch(&node, &members.map(|(policy, key, _)| (policy, key, 13))).await;
    let (let_pass, refused) = (Some((true, true)), Some((false, true)));
    assert_eq!(
        told.iter().map(answered).collect::<Vec<_>>(),
        [None, refused, None, let_pass, refused, refused, refused, None]
    );
    let told = batch(&node, &[("local", "new", 12), ("deny", "new", 1), ("local", "new", 1)]).await;
    assert_eq!(told.iter().map(answered).collect::<Vec<_>>(), [let_pass, None, refused]);
}

#[tokio::test]
async fn a_server_without_room_is_out_as_well() {
    let server = Server::setup(Program::Redis7).option("maxmemory", "1").start();
    let node = Node::new(RedisStore::builder(server.url())).await;
    assert!(node.policy("allow").check("ann", 1).await.unwrap().is_degraded());
    let error = node.policy("deny").check("ann", 1).await.unwrap_err();
    assert!(error.reason.contains("OOM"), "{error}");
    assert_eq!(passes(&node.policy("local"), "ann", 20).await, 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_lets_nothing_pass_that_it_does_not_count() {
    let server = Server::start(Program::Redis7);
    let store = RedisStore::builder(server.url())
        .timeout(Duration::from_millis(200))
        .on_store_error(OnStoreError::Deny)
        .open()
        .await
        .unwrap();
    let policy = Policy::single("api", Limit::token_bucket(2_000, Rate::ZERO)).unwrap();
    let limiter = Limiter::builder(policy).store(store).clock(ManualClock::new(NOW)).build();
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let api = limiter.policy("api").unwrap();
        tasks.push(tokio::spawn(async move {
            let (mut admitted, mut unknown) = (0, 0);
            for _ in 0..100 {
                match api.check("all", 1).await {
                    Ok(decision) => admitted += u64::from(decision.is_allowed()),
                    Err(_) => unknown += 1,
                }
            }
            (admitted, unknown)
        }));
    }
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        server.freeze();
        tokio::time::sleep(Duration::from_millis(400)).await;
        server.thaw();
    }
    let (mut admitted, mut unknown) = (0, 0);
    for task in tasks {
        let (passed, lost) = task.await.unwrap();
        (admitted, unknown) = (admitted + passed, unknown + lost);
    }
    let api = limiter.policy("api").unwrap();
    let mut left = None;
    while left.is_none() {
        left = api.peek("all").await.ok().map(|decision| decision.remaining());
    }
    let charged = 2_000 - left.unwrap();
    assert!(admitted <= charged, "{admitted} passed, and {charged} were counted");
    assert!(charged <= admitted + unknown, "{charged} were counted of {admitted} and {unknown} unknown");
    assert!(unknown > 0, "it was frozen, and nobody noticed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_checks_at_once_share_two_connections() {
    let server = Server::start(Program::Redis7);
    let store = RedisStore::builder(server.url()).timeout(Duration::from_secs(20)).open().await.unwrap();
    let policy = Policy::single("api", Limit::token_bucket(5_000, Rate::ZERO)).unwrap();
    let limiter = Limiter::builder(policy).store(store).clock(ManualClock::new(NOW)).build();
    let tasks: Vec<_> = (0..2_000)
        .map(|_| {
            let api = limiter.policy("api").unwrap();
            tokio::spawn(async move { api.check("all", 1).await.unwrap() })
        })
        .collect();
    let clients: usize = server.info("connected_clients").unwrap().parse().unwrap();
    // One of them asks how many there are.
    assert!(clients <= 3, "{clients} connections");
    for task in tasks {
        let decision = task.await.unwrap();
        assert!(decision.is_allowed() && !decision.is_degraded());
    }
    assert_eq!(limiter.policy("api").unwrap().peek("all").await.unwrap().remaining(), 3_000);
}

#[tokio::test]
async fn waiting_works_over_the_server_too() {
    let server = Server::start(Program::Redis7);
    let node = Node::new(RedisStore::builder(server.url())).await;
    let local = node.policy("local");
    local.acquire("ann", 12).await.unwrap();
    let second = tokio::spawn(local.acquire("ann", 3));
    // Until it waits, plain checks are not told of it.
    while local.check("ann", 1).await.unwrap().retry_after().unwrap().as_micros() < 500_000 {
        tokio::task::yield_now().await;
    }
    assert!(!second.is_finished());
    node.clock.advance(Duration::from_millis(500));
    assert!(second.await.unwrap().unwrap().is_allowed());
    assert_eq!(local.peek("ann").await.unwrap().remaining(), 0);
}

#[tokio::test]
async fn whoever_has_less_time_is_answered_within_it() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let store = RedisStore::builder(proxy.url()).timeout(Duration::from_secs(60)).open().await.unwrap();
    let policy = Policy::single("api", Limit::token_bucket(12, Rate::ZERO)).unwrap();
    let limiter = Limiter::builder(policy).store(store).clock(ManualClock::new(NOW)).build();
    let api = limiter.policy("api").unwrap();
    api.check("ann", 2).await.unwrap();
    proxy.set(Mischief::BlackHole);
    // Eight at once: some of them wait for others.
    let checks = (0..8).map(|_| {
        let api = api.clone();
        tokio::spawn(within(Duration::from_millis(20), Box::pin(async move { api.check("ann", 1).await })))
    });
    for check in checks.collect::<Vec<_>>() {
        let decision =
            tokio::time::timeout(Duration::from_secs(20), check).await.expect("far sooner than a minute");
        assert!(decision.unwrap().unwrap().is_degraded());
    }
}

/// A server that takes 30 ms is slow, not out: those who wait for 5 ms are answered without it, and nobody else is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn haste_says_nothing_about_the_server() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let node = Node::new(RedisStore::builder(proxy.url()).timeout(Duration::from_secs(60))).await;
    let (local, deny) = (node.policy("local"), node.policy("deny"));
    assert!(deny.check("bob", 1).await.unwrap().is_allowed());
    proxy.set(Mischief::Delay(Duration::from_millis(30)));
    for round in 0..11_u64 {
        let hasty = (0..8).map(|_| {
            let local = local.clone();
            let asked = Box::pin(async move { local.check("ann", 1).await });
            tokio::spawn(within(Duration::from_millis(5), asked))
        });
        for hasty in hasty.collect::<Vec<_>>() {
            assert!(hasty.await.unwrap().unwrap().is_degraded());
        }
        let patient = deny.check("bob", 1).await.expect("the server was not given up");
        assert_eq!((patient.is_degraded(), patient.remaining()), (false, 10 - round), "{round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_keeps_its_data_admits_no_more_than_there_is() {
    let setup = Server::setup(Program::Redis7).option("appendonly", "yes").option("appendfsync", "always");
    let mut server = setup.start();
    let store = RedisStore::builder(server.url())
        .timeout(Duration::from_millis(500))
        .on_store_error(OnStoreError::Deny)
        .open()
        .await
        .unwrap();
    let policy = Policy::single("api", Limit::token_bucket(600, Rate::ZERO)).unwrap();
    let limiter = Limiter::builder(policy).store(store).clock(ManualClock::new(NOW)).build();
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let api = limiter.policy("api").unwrap();
        tasks.push(tokio::spawn(async move {
            let (mut admitted, mut unknown) = (0_u64, 0);
            loop {
                match api.check("all", 1).await {
                    Ok(decision) if decision.is_allowed() => admitted += 1,
                    Ok(_) => return (admitted, unknown),
                    Err(_) => {
                        unknown += 1;
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
            }
        }));
    }
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        server.restart();
    }
    let (mut admitted, mut unknown) = (0, 0);
    for task in tasks {
        let (passed, lost) = task.await.unwrap();
        (admitted, unknown) = (admitted + passed, unknown + lost);
    }
    assert!(admitted <= 600, "{admitted} of 600");
    assert!(admitted + unknown >= 600, "{admitted} passed and {unknown} were lost, of 600");
}

#[tokio::test]
async fn figures_changed_during_an_outage_refill_no_share() {
    let mut server = Server::start(Program::Redis7);
    let store = RedisStore::builder(server.url()).timeout(Duration::from_secs(5)).open().await.unwrap();
    let window = |limit: u32| Limit::fixed_window(limit, Period::DAY);
    let policies = |capacity: u32| {
        let several = Policy::builder("several")
            .limit("bucket", Limit::token_bucket(capacity, Rate::ZERO))
            .limit("window", window(capacity + 50))
            .build();
        let one = |name, limit| Policy::single(name, limit).unwrap();
        let bucket = Limit::token_bucket(capacity, Rate::ZERO);
        PolicySet::new([one("bucket", bucket), one("window", window(capacity)), several.unwrap()]).unwrap()
    };
    let limiter = Limiter::builder(policies(100)).store(store).clock(ManualClock::new(NOW)).build();
    let names = ["bucket", "window", "several"];
    for name in names {
        let policy = limiter.policy(name).unwrap();
        assert_eq!(policy.check("told", 90).await.unwrap().remaining(), 10);
        assert_eq!(policy.check("touched", 90).await.unwrap().remaining(), 10);
    }
    server.kill();
    for name in names {
        assert_eq!(limiter.policy(name).unwrap().check("touched", 1).await.unwrap().remaining(), 9);
    }
    limiter.reload(policies(110)).unwrap();
    for (name, more) in [("bucket", 0), ("window", 10), ("several", 0)] {
        let policy = limiter.policy(name).unwrap();
        // A bucket keeps its tokens, a window what was counted.
        for (key, left) in [("told", 10), ("touched", 9)] {
            let decision = policy.check(key, 0).await.unwrap();
            assert_eq!(decision.limits()[0].remaining(), left + more, "{name}, {key}");
            assert!(!policy.check(key, 30).await.unwrap().is_allowed());
        }
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_says_what_it_is() {
    let why = async |url: String| RedisStore::builder(url).open().await.unwrap_err().reason;
    let replica = Server::setup(Program::Redis7).option("replicaof", "127.0.0.1 1").start();
    let said = why(replica.url()).await;
    assert!(said.contains("it is a replica; the store has to be a master"), "{said}");
    assert!(!said.contains("the user needs"), "{said}");
    let server = Server::start(Program::Redis7);
    server.command(&["ACL", "SETUSER", "default", "-set"]);
    let said = why(server.url()).await;
    assert!(said.contains("the user needs EVALSHA"), "{said}");
    let empty = std::env::temp_dir().join(format!("tidegate-empty-{}", std::process::id()));
    std::fs::write(&empty, "\n").unwrap();
    let said = why(format!("{}?password_file={}", server.url(), empty.display())).await;
    std::fs::remove_file(&empty).unwrap();
    assert!(said.contains("the file is empty (write the password into it)"), "{said}");
}
