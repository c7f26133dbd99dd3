//! redis-rs.

use redis::{Client, Cmd, RedisResult, cmd, pipe};
use serde_json::{Value, json};

use super::{Told, converses};
use crate::server::Server;

fn reports(server: &Server, told: Told<'_>) -> Value {
    let secret = if told.password.is_empty() {
        String::new()
    } else {
        format!(":{}@", told.password.replace(' ', "%20"))
    };
    let url = format!("redis://{secret}{}/0?protocol=resp{}", server.address, told.protocol);
    let mut client = Client::open(url).unwrap().get_connection().unwrap();
    let mut throttle = |rest: &[i64]| -> Vec<i64> {
        cmd("CL.THROTTLE").arg("rs").arg(15).arg(30).arg(60).arg(rest).query(&mut client).unwrap()
    };
    let (first, rest, denied) = (throttle(&[]), throttle(&[15]), throttle(&[]));
    let check: (i64, i64, i64, i64, i64, i64, String, String) =
        cmd("TG.CHECK").arg("api").arg("rs").arg(2).query(&mut client).unwrap();
    let mut pipeline = pipe();
    let asked: Cmd = cmd("CL.THROTTLE").arg("rs-pipe").arg(999).arg(1_000).arg(3_600).to_owned();
    for _ in 0..1_000 {
        pipeline.add_command(asked.clone());
    }
    let replies: Vec<Vec<i64>> = pipeline.query(&mut client).unwrap();
    let wrong: RedisResult<Vec<i64>> = cmd("CL.THROTTLE").arg("rs").arg(15).arg(0).arg(60).query(&mut client);
    let info: redis::InfoDict = cmd("INFO").query(&mut client).unwrap();
    json!({
        "ping": cmd("PING").query::<String>(&mut client).unwrap(),
        "first": first,
        "rest": rest,
        "denied": denied,
        "check": check,
        "pipeline": replies.iter().map(|reply| reply[2]).collect::<Vec<_>>(),
        "error": wrong.unwrap_err().detail(),
        "role": info.get::<String>("role"),
    })
}

#[test]
fn redis_rs() {
    converses(reports, &["2", "3"]);
}
