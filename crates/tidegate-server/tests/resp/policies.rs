//! `TG.*`, reply by reply.

use crate::server::{Server, TOKEN};
use crate::wire::{Reply, Wire};

/// `allowed`, `limit`, `remaining`, `retry_after_ms`, `reset_after_ms`, `delay_ms`, `outcome`, `bound_by`.
fn answer(figures: [i64; 6], outcome: &str, bound_by: &str) -> Reply {
    let mut all: Vec<Reply> = figures.into_iter().map(Reply::Integer).collect();
    all.extend([Reply::bulk(outcome), Reply::bulk(bound_by)]);
    Reply::Array(all)
}

#[test]
fn a_check_tells_all_there_is_in_either_version() {
    for version in ["2", "3"] {
        let server = Server::start();
        server.at_ms(1_700_000_000_000);
        let mut wire = Wire::to(&server);
        wire.ask(&format!("HELLO {version}"));
        assert_eq!(wire.ask("TG.CHECK api k"), answer([1, 5, 4, 0, 1_000, 0], "allowed", "burst"));
        assert_eq!(wire.ask("tg.check api k 4"), answer([1, 5, 0, 0, 5_000, 0], "allowed", "burst"));
        assert_eq!(wire.ask("TG.CHECK api k 2"), answer([0, 5, 0, 2_000, 5_000, 0], "denied", "burst"));
        assert_eq!(
            wire.ask("TG.CHECK api k 6"),
            answer([0, 5, 0, -1, 5_000, 0], "cost_exceeds_capacity", "burst")
        );
        server.at_ms(1_700_000_000_500);
        assert_eq!(wire.ask("TG.PEEK api k"), answer([1, 5, 0, 0, 4_500, 0], "allowed", "burst"));
        assert_eq!(wire.ask("TG.CHECK api k 0"), answer([1, 5, 0, 0, 4_500, 0], "allowed", "burst"));
    }
}

#[test]
fn what_never_comes_back_and_what_is_spaced_say_so() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    assert_eq!(wire.ask("TG.CHECK once k"), answer([1, 1, 0, 0, -1, 0], "allowed", "gift"));
    assert_eq!(wire.ask("TG.CHECK once k"), answer([0, 1, 0, -1, -1, 0], "denied", "gift"));
    assert_eq!(wire.ask("TG.CHECK even k"), answer([1, 3, 2, 0, 1_000, 0], "allowed", "leak"));
    assert_eq!(wire.ask("TG.CHECK even k"), answer([1, 3, 1, 0, 2_000, 1_000], "allowed", "leak"));
}

#[test]
fn keys_are_any_bytes() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    let long = vec![b'k'; 100_000];
    for key in [&b""[..], b"\0", b"\r\n", b"\xff\xfe", &long] {
        assert_eq!(wire.ask_bytes(&[b"TG.CHECK", b"api", key]).array()[2], Reply::Integer(4));
        assert_eq!(wire.ask_bytes(&[b"CL.THROTTLE", key, b"4", b"1", b"60"]).array()[2], Reply::Integer(4));
    }
}

#[test]
fn the_admin_gives_back_and_resets() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    assert_eq!(wire.ask(&format!("AUTH {TOKEN}")), Reply::ok());
    wire.ask("TG.CHECK api k 5");
    assert_eq!(wire.ask("TG.CREDIT api k 3"), answer([1, 5, 3, 0, 2_000, 0], "allowed", "burst"));
    assert_eq!(wire.ask("TG.CREDIT api k 1000000000000"), answer([1, 5, 5, 0, 0, 0], "allowed", "burst"));
    wire.ask("TG.CHECK api k 5");
    assert_eq!(wire.ask("TG.RESET api k"), answer([1, 5, 5, 0, 0, 0], "allowed", "burst"));
}

#[test]
fn what_is_wrong_is_named() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    wire.ask(&format!("AUTH {TOKEN}"));
    for (words, said) in [
        ("TG.CHECK apo k", "ERR policy: 'apo': no policy has this name (there are api, daily, once, even)"),
        ("TG.CHECK api k -1", "ERR cost: '-1': it has to be a whole number from 0 to 1000000000000"),
        ("TG.CHECK api k 1.5", "ERR cost: '1.5': it has to be a whole number from 0 to 1000000000000"),
        (
            "TG.CHECK api k 1000000000001",
            "ERR cost: '1000000000001': it has to be a whole number from 0 to 1000000000000",
        ),
        ("TG.CREDIT api k -1", "ERR units: '-1': it has to be a whole number from 0 to 1000000000000"),
        ("TG.CREDIT api k", "ERR wrong number of arguments for 'tg.credit' command"),
        ("TG.CHECK api", "ERR wrong number of arguments for 'tg.check' command"),
        ("TG.PEEK api k 1", "ERR wrong number of arguments for 'tg.peek' command"),
    ] {
        assert_eq!(wire.ask(words), Reply::error(said));
    }
    let odd = wire.ask_bytes(&[b"TG.CHECK", b"\xff\r\n+OK", b"k"]).text();
    assert!(odd.starts_with("ERR policy: '\\xff\\r\\n+OK': no policy"), "{odd}");
}

#[test]
fn decisions_are_counted() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    wire.ask("TG.CHECK api k 5");
    wire.ask("TG.CHECK api k 5");
    wire.ask("TG.PEEK api k");
    wire.ask("CL.THROTTLE k 0 1 60");
    wire.ask("CL.THROTTLE k 0 1 60");
    wire.ask("CL.THROTTLE k 0 1 60 0");
    let router = tidegate_server::http::router(server.app.clone());
    let text = tokio::runtime::Runtime::new().unwrap().block_on(scrape(router));
    for line in [
        "tidegate_decisions_total{policy=\"api\",outcome=\"allowed\"} 1\n",
        "tidegate_decisions_total{policy=\"api\",outcome=\"denied\"} 1\n",
        "tidegate_throttle_decisions_total{outcome=\"allowed\"} 1\n",
        "tidegate_throttle_decisions_total{outcome=\"denied\"} 1\n",
        "tidegate_decision_duration_seconds_count 4\n",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
}

async fn scrape(router: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(url).send().await.unwrap().text().await.unwrap()
}
