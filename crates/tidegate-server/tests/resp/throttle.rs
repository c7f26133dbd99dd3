//! `CL.THROTTLE`, reply by reply.

use crate::server::Server;
use crate::wire::{Reply, Wire};

/// Asserts what each command at each instant (in milliseconds) is answered.
fn golden(steps: &[(u64, &str, [i64; 5])]) {
    let server = Server::start();
    let mut wires = [Wire::to(&server), Wire::to(&server)];
    assert!(matches!(wires[1].ask("HELLO 3"), Reply::Map(_)));
    // In both versions of the protocol; a key each.
    for (version, wire) in ["2", "3"].into_iter().zip(&mut wires) {
        for (ms, words, expected) in steps {
            server.at_ms(1_700_000_000_000 + ms);
            let (key, rest) = words.split_once(' ').unwrap();
            let said = wire.ask(&format!("CL.THROTTLE {key}{version} {rest}"));
            assert_eq!(said, Reply::integers(*expected), "{words} at {ms} ms");
        }
    }
}

#[test]
fn as_redis_cell_answers() {
    golden(&[
        (0, "a 15 30 60", [0, 16, 15, -1, 2]),
        (0, "a 15 30 60 0", [0, 16, 15, -1, 2]),
        (0, "a 15 30 60 20", [1, 16, 15, -1, 2]),
        (0, "a 15 30 60 16", [1, 16, 15, 2, 2]),
        (0, "a 15 30 60 15", [0, 16, 0, -1, 32]),
        (0, "a 15 30 60", [1, 16, 0, 2, 32]),
        (0, "a 15 30 60 -3", [0, 16, 3, -1, 26]),
        (0, "n 5 10 60 0", [0, 6, 6, -1, 0]),
    ]);
}

#[test]
fn one_key_after_another_in_time() {
    golden(&[
        (0, "a 15 30 60", [0, 16, 15, -1, 2]),
        (0, "a 15 30 60 15", [0, 16, 0, -1, 32]),
        (0, "a 15 30 60", [1, 16, 0, 2, 32]),
        (1_999, "a 15 30 60", [1, 16, 0, 1, 31]),
        (2_000, "a 15 30 60", [0, 16, 0, -1, 32]),
    ]);
}

/// redis-cell#56: cut down, the wait led to a second denial.
#[test]
fn a_wait_is_never_told_too_short() {
    golden(&[
        (0, "a 0 10 15", [0, 1, 0, -1, 2]),
        (0, "a 0 10 15", [1, 1, 0, 2, 2]),
        (1_000, "a 0 10 15", [1, 1, 0, 1, 1]),
        (1_499, "a 0 10 15", [1, 1, 0, 1, 1]),
        (1_500, "a 0 10 15", [0, 1, 0, -1, 2]),
    ]);
    // Less than a millisecond is a second too: redis-cell said 0.
    golden(&[(0, "a 1 8000 1 2", [0, 2, 0, -1, 1]), (0, "a 1 8000 1", [1, 2, 0, 1, 1])]);
    golden(&[(0, "a 100 100 1 1", [0, 101, 100, -1, 1])]);
}

/// dragonfly#8288: whole seconds came out one too high.
#[test]
fn nor_too_long() {
    golden(&[
        (0, "a 0 1 2", [0, 1, 0, -1, 2]),
        (0, "a 0 1 2", [1, 1, 0, 2, 2]),
        (1, "a 0 1 2", [1, 1, 0, 2, 2]),
        (1_000, "a 0 1 2", [1, 1, 0, 1, 1]),
        (1_001, "a 0 1 2", [1, 1, 0, 1, 1]),
    ]);
}

/// redis#14826: the product of interval and quantity wrapped, and the oversized request passed.
#[test]
fn what_is_too_much_for_64_bits_is_denied() {
    golden(&[
        (0, "a 5 1 86400 200000000", [1, 6, 6, -1, 0]),
        (0, "a 5 1 86400 1000000000000", [1, 6, 6, -1, 0]),
        (0, "a 5 1 86400 6", [0, 6, 0, -1, 518_400]),
        (0, "a 5 1 86400", [1, 6, 0, 86_400, 518_400]),
        (86_400_000, "a 5 1 86400", [0, 6, 0, -1, 518_400]),
    ]);
}

#[test]
fn the_widest_figures_have_no_wrong_waits() {
    // 10^12 units at one in 366 days: longer than a reply can tell.
    golden(&[
        (0, "a 999999999999 1 31622400 1000000000000", [0, 1_000_000_000_000, 0, -1, i64::MAX]),
        (0, "a 999999999999 1 31622400 1", [1, 1_000_000_000_000, 0, 31_622_400, i64::MAX]),
    ]);
    golden(&[(0, "a 0 1000000000000 1", [0, 1, 0, -1, 1])]);
}

/// redis-cell#11: at 8000 a second the key expired between two steps of one command, which then failed.
#[test]
fn a_key_that_lives_less_than_a_millisecond_is_no_error() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    let mut allowed = 0;
    for ms in 0..1_000 {
        server.at_ms(1_700_000_000_000 + ms);
        wire.send(crate::wire::command(&[b"CL.THROTTLE", b"k", b"1", b"8000", b"1", b"1"]).repeat(20));
        for _ in 0..20 {
            let reply = wire.reply();
            let Reply::Integer(limited) = reply.array()[0] else { panic!("{reply:?}") };
            allowed += 1 - limited;
        }
    }
    // Each millisecond the two there can be.
    assert_eq!(allowed, 2_000);
}

#[test]
fn figures_that_make_no_sense_are_refused_by_name() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    let not_an_integer = "ERR value is not an integer or out of range";
    for (figures, said) in [
        ("4 0 60", "ERR zero rates are not supported (count has to be 1 or more)"),
        ("4 10 0", "ERR zero rates are not supported (period has to be 1 or more)"),
        ("-1 10 60", "ERR max_burst: -1 is out of range: it goes from 0 to 999999999999"),
        ("4 -10 60", "ERR count: -10 is out of range: it goes from 1 to 1000000000000"),
        ("4 10 -60", "ERR period: -60 is out of range: it goes from 1 to 31622400"),
        ("1000000000000 1 1", "ERR max_burst: 1000000000000 is out of range: it goes from 0 to 999999999999"),
        (
            "9223372036854775807 1 1",
            "ERR max_burst: 9223372036854775807 is out of range: it goes from 0 to 999999999999",
        ),
        ("4 10 31622401", "ERR period: 31622401 is out of range: it goes from 1 to 31622400"),
        (
            "4 10 60 1000000000001",
            "ERR quantity: 1000000000001 is out of range: it goes from -1000000000000 to 1000000000000",
        ),
        (
            "4 10 60 -9223372036854775808",
            "ERR quantity: -9223372036854775808 is out of range: it goes from -1000000000000 to 1000000000000",
        ),
        ("x 10 60", not_an_integer),
        ("4 1.5 60", not_an_integer),
        ("4 10 9223372036854775808", not_an_integer),
        ("4 10 60 ", not_an_integer),
        ("4 10", "ERR wrong number of arguments for 'cl.throttle' command"),
        ("4 10 60 1 1", "ERR wrong number of arguments for 'cl.throttle' command"),
    ] {
        assert_eq!(wire.ask(&format!("CL.THROTTLE k {figures}")), Reply::error(said), "{figures}");
    }
    assert_eq!(
        wire.ask("CL.THROTTLE"),
        Reply::error("ERR wrong number of arguments for 'cl.throttle' command")
    );
    // Connection and server are as they were, and nothing was kept.
    assert_eq!(wire.ask("CL.THROTTLE k 4 10 60"), Reply::integers([0, 5, 4, -1, 6]));
    assert_eq!(server.door.keys().unwrap().keys(), 1);
}

#[test]
fn a_look_makes_no_key_and_giving_back_ends_at_full() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    assert_eq!(wire.ask("CL.THROTTLE n 5 10 60 0"), Reply::integers([0, 6, 6, -1, 0]));
    assert_eq!(wire.ask("CL.THROTTLE n 5 10 60 -100"), Reply::integers([0, 6, 6, -1, 0]));
    assert_eq!(wire.ask("DBSIZE"), Reply::Integer(0));
    assert_eq!(wire.ask("CL.THROTTLE n 5 10 60 2"), Reply::integers([0, 6, 4, -1, 12]));
    assert_eq!(wire.ask("CL.THROTTLE n 5 10 60 -1000000000000"), Reply::integers([0, 6, 6, -1, 0]));
}

#[test]
fn other_figures_for_a_key_keep_what_it_used() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    assert_eq!(wire.ask("CL.THROTTLE k 9 10 60 8"), Reply::integers([0, 10, 2, -1, 48]));
    // Its capacity halved: two are left still. Doubled: two as well.
    assert_eq!(wire.ask("CL.THROTTLE k 4 10 60 0"), Reply::integers([0, 5, 2, -1, 18]));
    assert_eq!(wire.ask("CL.THROTTLE k 19 10 60 1"), Reply::integers([0, 20, 1, -1, 114]));
    assert_eq!(wire.ask("CL.THROTTLE k 9 10 60 0"), Reply::integers([0, 10, 1, -1, 54]));
    assert_eq!(server.door.keys().unwrap().keys(), 1);
}

#[test]
fn a_store_that_is_full_says_so() {
    let full = format!("memory: {{max_keys: 2, on_full: refuse_new}}\n{}", crate::server::POLICIES);
    let server = Server::start_with(&full, |door| door);
    let mut wire = Wire::to(&server);
    for key in ["a", "b"] {
        assert_eq!(wire.ask(&format!("CL.THROTTLE {key} 0 1 60")), Reply::integers([0, 1, 0, -1, 60]));
    }
    let full = "OOM no room for a new key: the store holds max_keys of them and on_full is refuse_new";
    assert_eq!(wire.ask("CL.THROTTLE c 0 1 60"), Reply::error(full));
    assert_eq!(wire.ask("CL.THROTTLE a 0 1 60"), Reply::integers([1, 1, 0, 60, 60]));
}

#[test]
fn keys_and_policies_have_nothing_to_do_with_one_another() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    assert_eq!(wire.ask("AUTH admin s3cret-of-the-tests"), Reply::ok());
    wire.ask("CL.THROTTLE k 4 1 60 5");
    assert_eq!(wire.ask("TG.PEEK api k").array()[2], Reply::Integer(5));
    wire.ask("TG.CHECK api k 5");
    assert_eq!(wire.ask("DBSIZE"), Reply::Integer(2));
    assert_eq!(wire.ask("DEL k unheard-of"), Reply::Integer(1));
    assert_eq!(wire.ask("CL.THROTTLE k 4 1 60 0"), Reply::integers([0, 5, 5, -1, 0]));
    assert_eq!(wire.ask("TG.PEEK api k").array()[2], Reply::Integer(0));
    assert_eq!(wire.ask("UNLINK k"), Reply::Integer(0));
}
