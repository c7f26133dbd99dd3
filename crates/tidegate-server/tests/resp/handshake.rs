//! What clients say when they connect.

use crate::server::Server;
use crate::wire::{Reply, Wire};

#[test]
fn hello_tells_seven_things_in_either_version() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    let Reply::Array(flat) = wire.ask("HELLO") else { panic!("no array") };
    let Reply::Map(pairs) = wire.ask("HELLO 3 SETNAME me") else { panic!("no map") };
    assert_eq!((flat.len(), pairs.len()), (14, 7));
    let names: Vec<String> = pairs.iter().map(|(name, _)| name.text()).collect();
    assert_eq!(names, ["server", "version", "proto", "id", "mode", "role", "modules"]);
    assert_eq!((&flat[5], &pairs[2].1), (&Reply::Integer(2), &Reply::Integer(3)));
    assert_eq!(flat[7], pairs[3].1);
    assert_eq!(pairs[6].1, Reply::Array(Vec::new()));
    assert_eq!(wire.ask("CLIENT GETNAME"), Reply::bulk("me"));
    assert!(matches!(wire.ask("HELLO 2"), Reply::Array(_)));
    for (words, said) in [
        ("HELLO 4", "NOPROTO unsupported protocol version"),
        ("HELLO three", "ERR Protocol version is not an integer or out of range"),
        ("HELLO 3 FOO", "ERR Syntax error in HELLO option 'FOO'"),
        ("HELLO 3 AUTH x", "ERR Syntax error in HELLO option 'AUTH'"),
    ] {
        assert_eq!(wire.ask(words), Reply::error(said));
    }
    // None of these changed the version.
    assert!(matches!(wire.ask("HELLO"), Reply::Array(_)));
}

#[test]
fn small_talk() {
    let server = Server::start();
    server.at_ms(1_700_000_000_123);
    let mut wire = Wire::to(&server);
    assert_eq!(wire.ask("PING"), Reply::Word("PONG".into()));
    assert_eq!(wire.ask("ping hello"), Reply::bulk("hello"));
    assert_eq!(wire.ask("ECHO hello"), Reply::bulk("hello"));
    assert_eq!(wire.ask("SELECT 0"), Reply::ok());
    assert_eq!(wire.ask("SELECT 1"), Reply::error("ERR DB index is out of range"));
    assert_eq!(wire.ask("SELECT x"), Reply::error("ERR value is not an integer or out of range"));
    assert_eq!(wire.ask("TIME"), Reply::Array(vec![Reply::bulk("1700000000"), Reply::bulk("123000")]));
    assert_eq!(wire.ask("DBSIZE"), Reply::Integer(0));
    let pairs = vec![Reply::bulk("save"), Reply::bulk("")];
    assert_eq!(wire.ask("CONFIG GET save"), Reply::Array(pairs));
    assert_eq!(wire.ask("CONFIG GET maxmemory"), Reply::Array(Vec::new()));
    assert_eq!(wire.ask("CONFIG SET save x"), Reply::error("ERR unknown subcommand 'SET'. Try CONFIG HELP."));
    assert_eq!(
        wire.ask("GET a b"),
        Reply::error("ERR unknown command 'GET', with args beginning with: 'a' 'b' ")
    );
}

#[test]
fn about_the_client() {
    let server = Server::start();
    let mut wires = [Wire::to(&server), Wire::to(&server)];
    let ids = wires.each_mut().map(|wire| wire.ask("CLIENT ID"));
    assert_ne!(ids[0], ids[1]);
    let wire = &mut wires[0];
    assert_eq!(wire.ask("CLIENT SETNAME worker-1"), Reply::ok());
    assert_eq!(wire.ask("CLIENT SETINFO LIB-NAME some-py"), Reply::ok());
    assert_eq!(wire.ask("client setinfo lib-ver 8.1.0"), Reply::ok());
    let line = wire.ask("CLIENT LIST").text();
    for part in
        ["name=worker-1 ", "lib-name=some-py ", "lib-ver=8.1.0\n", "resp=2 ", "user=default ", "db=0 "]
    {
        assert!(line.contains(part), "no {part} in {line}");
    }
    let spaces =
        "ERR Client names cannot contain spaces, newlines or special characters, nor more than 256 bytes.";
    assert_eq!(wire.ask_bytes(&[b"CLIENT", b"SETNAME", b"a b"]), Reply::error(spaces));
    for (words, said) in [
        ("CLIENT MAINT_NOTIFICATIONS ON", "ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP."),
        ("CLIENT SETNAME", "ERR wrong number of arguments for 'client|setname' command"),
        ("CLIENT SETINFO COLOUR red", "ERR Unrecognized option 'COLOUR'"),
        ("CLIENT REPLY MAYBE", "ERR syntax error"),
        ("CLIENT", "ERR wrong number of arguments for 'client' command"),
    ] {
        assert_eq!(wire.ask(words), Reply::error(said));
    }
    for words in ["CLIENT NO-EVICT ON", "CLIENT NO-TOUCH OFF", "CLIENT TRACKING OFF"] {
        assert_eq!(wire.ask(words), Reply::ok());
    }
}

#[test]
fn replies_can_be_left_out() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    wire.send("CLIENT REPLY SKIP\nECHO a\nECHO b\nCLIENT REPLY OFF\nECHO c\nPING\nCLIENT REPLY ON\nECHO d\n");
    assert_eq!([wire.reply(), wire.reply(), wire.reply()], [Reply::bulk("b"), Reply::ok(), Reply::bulk("d")]);
    wire.send("CLIENT REPLY OFF\nCL.THROTTLE k 4 1 60 5\nRESET\n");
    assert_eq!(wire.reply(), Reply::Word("RESET".into()));
    // What was asked unheard was done.
    assert_eq!(wire.ask("CL.THROTTLE k 4 1 60").array()[0], Reply::Integer(1));
}

#[test]
fn about_the_server() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    let info = wire.ask("INFO").text();
    for line in [
        "redis_version:7.2.0\r\n",
        "loading:0\r\n",
        "role:master\r\n",
        "redis_mode:standalone\r\n",
        "connected_clients:1\r\n",
    ] {
        assert!(info.contains(line), "no {line} in {info}");
    }
    assert!(info.contains(&format!("\r\ntcp_port:{}\r\n", server.address.port())));
    assert_eq!(wire.ask("INFO replication").text(), "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n");
    assert_eq!(wire.ask("INFO nonsense").text(), "");
    wire.ask("HELLO 3");
    assert!(matches!(wire.ask("INFO server"), Reply::Text(_)));
}

#[test]
fn about_the_commands() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    let Reply::Integer(count) = wire.ask("COMMAND COUNT") else { panic!("no count") };
    assert_eq!(wire.ask("COMMAND").array().len() as i64, count);
    assert_eq!(wire.ask("COMMAND LIST").array().len() as i64, count);
    let info = wire.ask("COMMAND INFO cl.throttle nonsense");
    let [throttle, Reply::Null] = info.array() else { panic!("{info:?}") };
    assert_eq!(throttle.array()[0], Reply::bulk("cl.throttle"));
    assert_eq!(throttle.array()[1], Reply::Integer(-5));
    assert_eq!(throttle.array()[3..6], [Reply::Integer(1), Reply::Integer(1), Reply::Integer(1)]);
    wire.ask("HELLO 3");
    let Reply::Map(docs) = wire.ask("COMMAND DOCS tg.check") else { panic!("no map") };
    assert_eq!(docs[0].0, Reply::bulk("tg.check"));
}
