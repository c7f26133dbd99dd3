use tidegate_testkit_servers::{Cluster, Program, Setup};

use super::*;

/// Two keys in slot 15495, which is the third master's.
const TOGETHER: [&str; 2] = ["{a}1", "{a}2"];
const SLOT: &str = "15495";

static COUNT_BOTH: Script = Script {
    name: "count both",
    source: "return {redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2])}",
};

fn count_both() -> Call {
    call(&COUNT_BOTH, &TOGETHER.map(str::as_bytes), &[])
}

async fn cluster(program: Program, masters: usize, replicas: usize) -> Cluster {
    tokio::task::spawn_blocking(move || Cluster::start(program, masters, replicas)).await.unwrap()
}

/// Sends a slot on its way from one node to another: keys that are not there any more are asked for at the other.
fn migrate(cluster: &Cluster, from: usize, to: usize) {
    let (source, target) = (cluster.id(from), cluster.id(to));
    let ok = text("OK");
    assert_eq!(cluster.node(to).command(&["CLUSTER", "SETSLOT", SLOT, "IMPORTING", &source]), ok);
    assert_eq!(cluster.node(from).command(&["CLUSTER", "SETSLOT", SLOT, "MIGRATING", &target]), ok);
}

fn move_key(cluster: &Cluster, key: &str, from: usize, to: usize) {
    let port = cluster.node(to).port().to_string();
    let moved = cluster.node(from).command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
    assert_eq!(moved, text("OK"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_slot_is_found_from_one_seed() {
    for program in Program::ALL {
        let cluster = cluster(program, 3, 0).await;
        let seed = format!("redis+cluster://{}", cluster.node(1).address());
        let link = open(&seed).await;
        let keys: Vec<_> = (0..200).map(|number| format!("key {number}")).collect();
        for key in &keys {
            assert_eq!(link.call(&count(key), LONG).await, Ok(Value::Int(1)), "{program:?}: {key}");
            let slot = cluster.node(0).command(&["CLUSTER", "KEYSLOT", key]).integer();
            assert_eq!(i64::from(slot_of(key.as_bytes())), slot, "{key}");
        }
        assert_eq!(link.times(&|| 0, LONG).await.len(), 3);
        let keys: Vec<_> = keys.into_iter().map(String::into_bytes).collect();
        assert_eq!(link.delete(&keys, LONG).await, Ok(200));
        let apart = call(&COUNT_BOTH, &[b"a", b"b"], &[]);
        let said = link.call(&apart, LONG).await;
        assert!(matches!(&said, Err(Failure::Refused(said)) if said.starts_with("CROSSSLOT ")), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_move_are_followed_and_charged_once() {
    let cluster = cluster(Program::Redis7, 3, 0).await;
    let link = Arc::new(open(&cluster.url()).await);
    let both = |one, other| Ok(Value::Array(vec![Value::Int(one), Value::Int(other)]));
    let count_first = || count(TOGETHER[0]);
    assert_eq!(link.call(&count_first(), LONG).await, Ok(Value::Int(1)));

    // ASK: a key that is not at the old node any more, at a new one that does not know the script.
    migrate(&cluster, 2, 0);
    assert_eq!(link.call(&count_first(), LONG).await, Ok(Value::Int(2)), "it is still here");
    assert_eq!(link.call(&count(TOGETHER[1]), LONG).await, Ok(Value::Int(1)), "it is there");

    // TRYAGAIN, for as long as one key is here and one there.
    // Who gives up between two attempts knows that nothing ran; within one it is not known. The counts below say it.
    loop {
        match link.call(&count_both(), Duration::from_millis(50)).await {
            Err(Failure::NotRun(_)) => break,
            Err(Failure::MayHaveRun(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    let waits = tokio::spawn({
        let link = Arc::clone(&link);
        async move { link.call(&count_both(), LONG).await }
    });
    tokio::time::sleep(Duration::from_millis(30)).await;
    move_key(&cluster, TOGETHER[0], 2, 0);
    assert_eq!(waits.await.unwrap(), both(3, 2));
    cluster.node(0).command(&["SCRIPT", "FLUSH"]);
    assert_eq!(
        link.call(&count_both(), LONG).await,
        both(4, 3),
        "ASKING stands before the second attempt too"
    );

    // MOVED, to where no connection may be yet.
    for node in [0, 2, 1] {
        cluster.node(node).command(&["CLUSTER", "SETSLOT", SLOT, "NODE", &cluster.id(0)]);
    }
    assert_eq!(link.call(&count_both(), LONG).await, both(5, 4));
    assert_eq!(link.delete(&TOGETHER.map(|key| key.as_bytes().to_vec()), LONG).await, Ok(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_takes_over_is_followed() {
    let mut cluster = cluster(Program::Valkey8, 3, 1).await;
    let link = Arc::new(open(&cluster.url()).await);
    assert_eq!(link.call(&count_both(), LONG).await, Ok(Value::Array(vec![Value::Int(1), Value::Int(1)])));

    // In good order: no call is lost.
    let calls = at_once(50, &link, |link| async move {
        for _ in 0..40 {
            link.call(&count_both(), LONG).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let fails_over = tokio::task::spawn_blocking(move || {
        cluster.fail_over_to(5);
        cluster
    });
    let (_, back) = tokio::join!(calls, fails_over);
    cluster = back.unwrap();
    assert_eq!(cluster.node(5).command(&["GET", TOGETHER[0]]), text("2001"));

    // kill -9 of the new master: the old one takes over, nothing is charged twice.
    let before: i64 = link.call(&count(TOGETHER[0]), LONG).await.map(|_| 2002).unwrap();
    cluster.node_mut(5).kill();
    let (mut ran, mut perhaps) = (0, 0);
    while ran < 100 {
        match link.call(&count(TOGETHER[0]), LONG).await {
            Ok(_) => ran += 1,
            Err(Failure::MayHaveRun(_)) => perhaps += 1,
            Err(Failure::NotRun(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(refused) => panic!("{refused}"),
        }
    }
    let counted: i64 = cluster.node(2).command(&["GET", TOGETHER[0]]).text().parse().unwrap();
    assert!(
        counted >= ran && counted <= before + ran + perhaps,
        "{counted} of {before}, {ran} and perhaps {perhaps}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_answers_nothing_is_left_for_its_replica() {
    let start = || {
        let how = |setup: Setup| setup.option("cluster-require-full-coverage", "no");
        Cluster::start_with(Program::Redis8, 3, 1, how)
    };
    let cluster = tokio::task::spawn_blocking(start).await.unwrap();
    let link = open(&cluster.url()).await;
    let key = TOGETHER[0];
    let before = link.call(&count(key), LONG).await;
    assert_eq!(before, Ok(Value::Int(1)));
    cluster.node(2).freeze();
    let (mut ran, mut perhaps, mut not_run) = (0, 0, 0);
    while ran < 10 {
        match link.call(&count(key), Duration::from_millis(50)).await {
            Ok(_) => ran += 1,
            Err(Failure::MayHaveRun(_)) => perhaps += 1,
            Err(Failure::NotRun(_)) => {
                not_run += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(refused) => panic!("{refused}"),
        }
        // The others go on as before.
        assert!(link.call(&count("b"), LONG).await.is_ok(), "slot 3300 is the first's");
    }
    // Five waited, a probe or two let some more through; the others did not wait at all.
    assert!(perhaps >= 5 && not_run > perhaps, "{perhaps} waited, {not_run} did not");
    let counted: i64 = cluster.node(5).command(&["GET", key]).text().parse().unwrap();
    assert!((ran..=1 + ran + perhaps).contains(&counted), "{counted} of {ran} and perhaps {perhaps}");
    cluster.node(2).thaw();
}

#[cfg(feature = "tls")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_cluster_with_a_password() {
    let certificates = Arc::new(tidegate_testkit_servers::Certificates::make());
    let theirs = Arc::clone(&certificates);
    let start = move || {
        Cluster::start_with(Program::Redis7, 3, 1, |setup| {
            let setup = setup.password("s3cret").option("masterauth", "s3cret").encrypted(&theirs, false);
            setup.option("tls-cluster", "yes").option("tls-replication", "yes")
        })
    };
    let cluster = tokio::task::spawn_blocking(start).await.unwrap();
    let hosts = cluster.url().replace("redis+cluster://", "");
    let link = open(&format!("rediss+cluster://:s3cret@{hosts}?ca={}", certificates.ca().display())).await;
    for number in 0..50 {
        assert_eq!(link.call(&count(&format!("key {number}")), LONG).await, Ok(Value::Int(1)));
    }
    let cluster = tokio::task::spawn_blocking(move || {
        cluster.fail_over_to(5);
        cluster
    });
    let cluster = cluster.await.unwrap();
    assert_eq!(link.call(&count_both(), LONG).await, Ok(Value::Array(vec![Value::Int(1), Value::Int(1)])));
    assert_eq!(cluster.node(5).command(&["GET", TOGETHER[0]]), text("1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_is_down_says_so_and_nothing_runs() {
    let mut cluster = cluster(Program::Redis7, 3, 0).await;
    let link = open(&cluster.url()).await;
    cluster.node_mut(0).kill();
    let said = loop {
        match link.call(&count("a"), LONG).await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(Failure::NotRun(said)) => break said,
            other => panic!("{other:?}"),
        }
    };
    assert!(said.starts_with("CLUSTERDOWN "), "{said}");
    // A key of the node that is gone costs no waiting.
    let gone = link.call(&count("b"), Duration::MAX).await;
    assert!(matches!(gone, Err(Failure::NotRun(_) | Failure::MayHaveRun(_))), "{gone:?}");
}

#[tokio::test]
async fn links_that_cannot_be_opened_say_why() {
    let server = tidegate_testkit_servers::Server::start(Program::Redis7);
    let url = format!("redis+cluster://{},127.0.0.1:1", server.address());
    let said = Link::open(&url.parse().unwrap(), &Options::default()).await.unwrap_err().to_string();
    assert!(
        said.contains("cluster support disabled") && said.contains("127.0.0.1:1: Connection refused"),
        "{said}"
    );
}
