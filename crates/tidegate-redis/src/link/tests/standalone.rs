use tidegate_testkit_servers::{Mischief, Program, Proxy, Server};

use super::*;

const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_script_runs_on_every_server_with_keys_and_arguments_to_the_byte() {
    static ECHO: Script = Script { name: "echo", source: "return {KEYS[1], ARGV[1], ARGV[2], #ARGV}" };
    for program in Program::ALL {
        let server = Server::start(program);
        let link = open(&server.url()).await;
        let all: Vec<u8> = (0..=255).collect();
        let bytes = |bytes: &[u8]| Value::BulkString(bytes.to_vec());
        let expected = Value::Array(vec![bytes(&all), bytes(b""), bytes(b"\r\n$1\r\n\0"), Value::Int(2)]);
        let answer = link.call(&call(&ECHO, &[&all], &[b"", b"\r\n$1\r\n\0"]), LONG).await;
        assert_eq!(answer, Ok(expected), "{program:?}");
        let version = link.version(LONG).await.unwrap();
        let expected = match program {
            Program::Redis7 => "Redis 7.",
            Program::Redis8 => "Redis 8.",
            Program::Valkey8 => "Valkey 8.",
            Program::Valkey9 => "Valkey 9.",
        };
        assert!(version.starts_with(expected), "{version}");
    }
}

#[tokio::test]
async fn plain_commands() {
    let server = Server::start(Program::Redis7);
    let link = open(&server.url()).await;
    for key in ["a", "b"] {
        server.command(&["SET", key, "1"]);
    }
    let keys = [b"a".to_vec(), b"b".to_vec(), b"c".to_vec()];
    assert_eq!(link.delete(&keys, LONG).await, Ok(2));
    assert_eq!(link.delete(&[], LONG).await, Ok(0));
    let Reply::List(time) = server.command(&["TIME"]) else { panic!("no list") };
    let seconds: u64 = time[0].clone().text().parse().unwrap();
    let ticks = std::sync::atomic::AtomicU64::new(0);
    let readings = link.times(&|| ticks.fetch_add(1, Ordering::Relaxed), LONG).await;
    let [Reading { server: name, before: 0, time, after: 1 }] = &readings[..] else { panic!("{readings:?}") };
    assert_eq!(*name, server.address().to_string());
    assert!(time / 1_000_000 >= seconds && time / 1_000_000 < seconds + 60, "{time} after {seconds} s");
}

#[tokio::test]
async fn a_forgotten_script_is_told_again_and_runs_once() {
    let mut server = Server::start(Program::Redis7);
    let link = Arc::new(open(&server.url()).await);
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
    server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(2)));

    server.command(&["SCRIPT", "FLUSH"]);
    server.command(&["CONFIG", "RESETSTAT"]);
    let answers = at_once(100, &link, |link| async move { link.call(&count("b"), LONG).await }).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(server.command(&["GET", "b"]), text("100"));
    let Reply::Text(stats) = server.command(&["INFO", "commandstats"]) else { panic!("no text") };
    assert!(stats.contains("cmdstat_script|load:calls=1,"), "{stats}");

    server.restart();
    recovered(&link).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
}

#[tokio::test]
async fn what_the_server_refuses_is_told_in_its_words() {
    static GIBBERISH: Script = Script { name: "gibberish", source: "return return" };
    static RAISES: Script =
        Script { name: "raises", source: "return redis.error_reply('TGBAD no such record')" };
    static LISTS: Script = Script { name: "lists", source: "return {1, {err='TGBAD in a list'}}" };
    let server = Server::start(Program::Redis7);
    let link = open(&server.url()).await;
    server.command(&["RPUSH", "list", "1"]);
    let refused = async |call: Call| match link.call(&call, LONG).await {
        Err(Failure::Refused(said)) => said,
        other => panic!("not refused: {other:?}"),
    };
    let failure = async |call: Call| link.call(&call, LONG).await.unwrap_err();
    let foreign = failure(count("list")).await;
    assert!(matches!(&foreign, Failure::Foreign(said) if said.starts_with("WRONGTYPE ")), "{foreign:?}");
    static UNPACKS: Script = Script { name: "unpacks", source: "return struct.unpack('>d', 'short')" };
    let foreign = failure(call(&UNPACKS, &[], &[])).await;
    assert!(matches!(foreign, Failure::Foreign(_)), "{foreign:?}");
    let said = refused(call(&GIBBERISH, &[], &[])).await;
    assert!(said.starts_with("script \"gibberish\": ERR Error compiling script"), "{said}");
    assert_eq!(refused(call(&RAISES, &[], &[])).await, "TGBAD no such record");
    assert_eq!(refused(call(&LISTS, &[], &[])).await, "TGBAD in a list");

    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let full = failure(count("a")).await;
    assert!(
        matches!(&full, Failure::NoRoom(said) if said.starts_with("OOM command not allowed ")),
        "{full:?}"
    );
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    server.command(&["ACL", "SETUSER", "default", "-incrby"]);
    let refusal = failure(count("a")).await;
    assert!(
        matches!(&refusal, Failure::NotAllowed { begun: true, .. }),
        "INCRBY inside a script: {refusal:?}"
    );
    server.command(&["ACL", "SETUSER", "default", "-evalsha"]);
    let refusal = failure(count("a")).await;
    assert!(matches!(&refusal, Failure::NotAllowed { begun: false, .. }), "{refusal:?}");
    assert!(refusal.to_string().contains("NOPERM ") && refusal.to_string().contains("EVALSHA"), "{refusal}");
    server.command(&["ACL", "SETUSER", "default", "+@all"]);
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
}

#[tokio::test]
async fn what_proves_that_nothing_ran_is_told_as_such() {
    static FOR_EVER: Script = Script { name: "for ever", source: "while true do end" };
    let server = Server::setup(Program::Redis7).option("busy-reply-threshold", "1").start();
    let link = Arc::new(open(&server.url()).await);
    let not_run = async |link: &Link| match link.call(&count("a"), LONG).await {
        Err(Failure::NotRun(said)) => said,
        other => panic!("ran: {other:?}"),
    };
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert!(not_run(&link).await.starts_with("READONLY "));
    server.command(&["CONFIG", "SET", "replica-serve-stale-data", "no"]);
    assert!(not_run(&link).await.starts_with("MASTERDOWN "));
    server.command(&["REPLICAOF", "NO", "ONE"]);
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    assert!(not_run(&link).await.starts_with("NOREPLICAS "));
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    link.call(&count("b"), LONG).await.unwrap();

    // A new link's hello is refused while the server is busy, so the second connection goes on from before.
    assert_eq!(
        link.call(&call(&FOR_EVER, &[], &[]), SHORT).await,
        Err(Failure::MayHaveRun("no answer within 50ms".to_owned()))
    );
    assert!(not_run(&link).await.starts_with("BUSY "));
    server.command(&["SCRIPT", "KILL"]);
    recovered(&link).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_loads_its_data_runs_nothing_until_it_has() {
    // So slowly that there is time to ask: a millisecond a key.
    let server = Server::setup(Program::Redis7)
        .option("enable-debug-command", "yes")
        .option("loading-process-events-interval-bytes", "1024")
        .option("rdbcompression", "no")
        .option("key-load-delay", "1000")
        .start();
    let link = open(&server.url()).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
    let fill = "for i = 1, 300 do redis.call('SET', 'fill' .. i, string.rep('x', 2048)) end";
    server.command(&["EVAL", fill, "0"]);
    let reloads = tokio::task::spawn_blocking(move || {
        assert_eq!(server.command(&["DEBUG", "RELOAD"]), text("OK"));
        server
    });
    let mut ran = 1;
    let said = loop {
        match link.call(&count("a"), LONG).await {
            Ok(_) => ran += 1,
            Err(Failure::NotRun(said)) => break said,
            other => panic!("{other:?}"),
        }
    };
    assert!(said.starts_with("LOADING "), "{said}");
    let server = reloads.await.unwrap();
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(ran + 1)));
    drop(server);
}

#[tokio::test]
async fn a_reply_lost_after_execution_charges_once_and_is_told() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let link = open(&proxy.url()).await;
    link.call(&count("a"), LONG).await.unwrap();
    proxy.set(Mischief::LoseNextReply);
    let lost = link.call(&count("a"), LONG).await;
    assert!(matches!(&lost, Err(Failure::MayHaveRun(said)) if said.contains(": no answer: ")), "{lost:?}");
    recovered(&link).await;
    assert_eq!(server.command(&["GET", "a"]), text("2"));
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(3)));
}

#[tokio::test]
async fn cut_connections_are_made_anew_and_nothing_is_sent_twice() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let link = Arc::new(open(&proxy.url()).await);
    let (mut ran, mut perhaps) = (0, 0);
    for _ in 0..10 {
        let calls = at_once(50, &link, |link| async move {
            tokio::task::yield_now().await;
            link.call(&count("a"), LONG).await
        });
        let (answers, ()) = tokio::join!(calls, async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            proxy.cut();
        });
        for answer in answers {
            match answer {
                Ok(_) => ran += 1,
                Err(Failure::MayHaveRun(_)) => perhaps += 1,
                Err(Failure::NotRun(_)) => {}
                Err(refused) => panic!("{refused}"),
            }
        }
        recovered(&link).await;
    }
    let counted: u32 = server.command(&["GET", "a"]).text().parse().unwrap();
    assert!((ran..=ran + perhaps).contains(&counted), "{counted} of {ran} and perhaps {perhaps}");
}

#[tokio::test]
async fn a_black_hole_is_given_up_at_the_deadline_and_left_for_another_connection() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let options = Options { give_up_after: u32::MAX, ..Options::default() };
    let link = Link::open(&proxy.url().parse().unwrap(), &options).await.unwrap();
    proxy.set(Mischief::BlackHole);
    let answer = tokio::time::timeout(LONG, link.call(&count("a"), SHORT)).await;
    assert_eq!(answer, Ok(Err(Failure::MayHaveRun("no answer within 50ms".to_owned()))));
    // Soon nobody waits any longer: the connections are given up, and new ones are not answered.
    loop {
        match link.call(&count("a"), SHORT).await {
            Err(Failure::MayHaveRun(_)) => {}
            Err(Failure::NotRun(said)) => {
                let why = ["did not answer", "no connection within 1s"];
                break assert!(why.iter().any(|why| said.contains(why)), "{said}");
            }
            other => panic!("{other:?}"),
        }
    }
    proxy.set(Mischief::None);
    recovered(&link).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
}

#[tokio::test]
async fn what_a_frozen_server_was_sent_runs_once_when_it_is_thawed() {
    let server = Server::start(Program::Redis7);
    let link = open(&server.url()).await;
    link.call(&count("a"), LONG).await.unwrap();
    server.freeze();
    for _ in 0..3 {
        let answer = link.call(&count("a"), SHORT).await;
        assert_eq!(answer, Err(Failure::MayHaveRun("no answer within 50ms".to_owned())));
    }
    server.thaw();
    recovered(&link).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(5)));
}

#[tokio::test]
async fn a_server_that_answers_nothing_is_given_up_until_a_probe_is_answered() {
    let server = Server::start(Program::Redis7);
    let clock = tidegate::clock::ManualClock::default();
    let options = Options { clock: Arc::new(clock.clone()), ..Options::default() };
    let link = Link::open(&server.url().parse().unwrap(), &options).await.unwrap();
    link.call(&count("a"), LONG).await.unwrap();
    // Callers who went away by themselves say nothing of the server.
    for _ in 0..10 {
        let _ = tokio::time::timeout(Duration::ZERO, link.call(&count("b"), LONG)).await;
    }
    link.call(&count("a"), LONG).await.unwrap();
    server.freeze();
    for _ in 0..5 {
        let answer = link.call(&count("a"), SHORT).await;
        assert!(matches!(answer, Err(Failure::MayHaveRun(_))), "{answer:?}");
    }
    let given_up = Err(Failure::NotRun(format!(
        "{}: given up for now: 5 calls in a row had no answer",
        server.address()
    )));
    for _ in 0..100 {
        assert_eq!(link.call(&count("a"), Duration::MAX).await, given_up);
    }
    server.thaw();
    assert_eq!(link.call(&count("a"), Duration::MAX).await, given_up, "before the probe");
    while link.call(&count("a"), LONG).await == given_up {
        clock.advance(Duration::from_millis(100));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(server.command(&["GET", "a"]), text("8"));
}

#[tokio::test]
async fn a_server_that_is_gone_costs_no_waiting_and_is_found_again() {
    let mut server = Server::start(Program::Redis7);
    let link = open(&server.url()).await;
    server.kill();
    // A call that raced the news may have been sent.
    while matches!(link.call(&count("a"), LONG).await, Err(Failure::MayHaveRun(_))) {}
    for _ in 0..100 {
        let answer = link.call(&count("a"), Duration::MAX).await;
        assert!(matches!(answer, Err(Failure::NotRun(_))), "{answer:?}");
    }
    server.restart();
    recovered(&link).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_callers_share_two_connections() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let link = Arc::new(open(&proxy.url()).await);
    let answers = at_once(2000, &link, |link| async move {
        let mut failed = 0;
        for _ in 0..5 {
            failed += u32::from(link.call(&count("a"), LONG).await.is_err());
        }
        failed
    });
    assert_eq!(answers.await.iter().sum::<u32>(), 0);
    assert_eq!(server.command(&["GET", "a"]), text("10000"));
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn calls_share_one_connection_until_many_wait() {
    let server = Server::start(Program::Redis7);
    let link = Arc::new(open(&server.url()).await);
    let connections = |that: &str| {
        let clients = server.command(&["CLIENT", "LIST"]).text();
        clients.lines().filter(|client| client.contains(" addr=127.0.0.1:") && client.contains(that)).count()
    };
    let connections_used = || connections(" cmd=evalsha ");
    while connections(" cmd=ping ") < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..10 {
        link.ping(LONG).await.unwrap(); // by each connection in turn, so that both are there
    }
    for calls in [1, 100] {
        at_once(calls, &link, |link| async move { link.call(&count("a"), LONG).await.unwrap() }).await;
        assert_eq!(connections_used(), 1);
    }
    server.freeze();
    let frozen = Arc::clone(&link);
    let calls = tokio::spawn(async move {
        at_once(2000, &frozen, |link| async move { link.call(&count("a"), LONG).await.unwrap() }).await
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.thaw();
    calls.await.unwrap();
    assert_eq!(connections_used(), 2);
}

#[tokio::test]
async fn more_calls_than_may_wait_are_turned_away_unsent() {
    let server = Server::start(Program::Redis7);
    let options = Options { in_flight: 10, ..Options::default() };
    let link = Arc::new(Link::open(&server.url().parse().unwrap(), &options).await.unwrap());
    link.call(&count("a"), LONG).await.unwrap();
    server.freeze();
    let answers = at_once(100, &link, |link| async move { link.call(&count("a"), SHORT).await }).await;
    server.thaw();
    let overloaded = Err(Failure::NotRun("overloaded: 10 calls wait for the store already".to_owned()));
    assert_eq!(answers.iter().filter(|answer| **answer == overloaded).count(), 90);
    recovered(&link).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(12)));
}

#[tokio::test]
async fn a_unix_socket_a_password_and_a_database() {
    let server = Server::setup(Program::Redis7).password("s3cr@t").start();
    server.command(&["ACL", "SETUSER", "app", "on", ">a/b", "~*", "+@all"]);
    let socket = server.socket();
    let socket = socket.to_str().unwrap();
    for (number, url) in [
        format!("redis+unix://:s3cr%40t@{socket}?db=1"),
        format!("unix://app:a%2Fb@{socket}?db=2"),
        format!("redis://app:a%2Fb@{}/3", server.address()),
    ]
    .into_iter()
    .enumerate()
    {
        let link = open(&url).await;
        assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
        let keyspace = server.info(&format!("db{}", number + 1));
        assert!(keyspace.is_some_and(|it| it.starts_with("keys=1,")), "{url}");
    }
}

#[tokio::test]
async fn links_that_cannot_be_opened_say_why() {
    let mut server = Server::setup(Program::Redis7).password("s3cret").option("maxclients", "1").start();
    let why = async |url: &str| {
        let error = Link::open(&url.parse().unwrap(), &Options::default()).await.unwrap_err();
        let said = error.to_string();
        assert!(!said.contains("wr0ng") && !said.contains("s3cret"), "{said}");
        said
    };
    let address = server.address();
    let said = why(&format!("redis://:wr0ng@{address}")).await;
    assert!(said.starts_with(&format!("store: redis://:***@{address}: {address}: ")), "{said}");
    assert!(said.contains("WRONGPASS") || said.contains("uthentication"), "{said}");
    let said = why(&format!("redis://{address}")).await;
    assert!(said.ends_with("NOAUTH: it asks for a password (add password_env=NAME after ?)"), "{said}");
    let said = why(&format!("redis://{address}?password_env=TIDEGATE_NO_SUCH")).await;
    assert!(
        said.ends_with(
            "password_env=TIDEGATE_NO_SUCH: no such variable, or not UTF-8 (set TIDEGATE_NO_SUCH)"
        ),
        "{said}"
    );
    let said = why(&format!("redis://:s3cret@{address}/99")).await;
    assert!(said.contains("DB index is out of range"), "{said}");
    let silent = Proxy::to(address);
    silent.set(Mischief::BlackHole);
    let said = why(&silent.url()).await;
    assert!(said.ends_with(": no connection within 1s"), "{said}");
    server.kill();
    let said = why(&format!("redis://{address}")).await;
    assert!(said.contains("Connection refused"), "{said}");
    let said = why("unix:///no/such/socket").await;
    assert!(said.contains("/no/such/socket: No such file"), "{said}");
}

/// Callers in haste leave; what they asked is answered all the same, once, and tells how the server does.
#[tokio::test]
async fn callers_in_haste_do_not_speak_for_the_server() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let link = open(&proxy.url()).await;
    link.call(&count("a"), LONG).await.unwrap();
    proxy.set(Mischief::Delay(SHORT));
    for _ in 0..12 {
        let answer = link.call_in_haste(&count("a"), Duration::from_millis(5), LONG).await;
        assert!(matches!(answer, Err(Failure::MayHaveRun(_))), "{answer:?}");
    }
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(14)), "nothing was given up");
    assert_eq!(link.call_in_haste(&count("a"), LONG, LONG).await, Ok(Value::Int(15)));

    // Nobody stays to see it, and it is seen.
    proxy.set(Mischief::BlackHole);
    let mut left = 0;
    let given_up = loop {
        match link.call_in_haste(&count("a"), Duration::from_millis(5), SHORT).await {
            Err(Failure::MayHaveRun(_)) => left += 1,
            other => break other,
        }
    };
    assert!(
        matches!(&given_up, Err(Failure::NotRun(said)) if said.contains("in a row had no answer")),
        "{given_up:?}"
    );
    assert!(left >= 5, "{left}");
}
