//! RESP: what comes at once is asked at once, and answered in order.

use std::sync::Arc;

use proptest::prelude::*;
use tidegate::store::StoreErrorKind;
use tidegate_server::resp::{Conversation, Door, Next};
use tidegate_server::{AnyStore, App};

use crate::{TOKEN, app, app_over};

/// What is answered to bytes that arrive at once.
async fn answered(conversation: &mut Conversation, bytes: &[u8]) -> String {
    let mut replies = Vec::new();
    for piece in bytes.chunks(2_000) {
        conversation.room()[..piece.len()].copy_from_slice(piece);
        conversation.received(piece.len());
        loop {
            let next = conversation.answer();
            if next == Next::Wait {
                conversation.wait().await;
                continue;
            }
            replies.extend_from_slice(conversation.replies());
            conversation.written();
            if next != Next::Write {
                break;
            }
        }
    }
    String::from_utf8(replies).unwrap()
}

fn conversation(app: &Arc<App>) -> Conversation {
    Conversation::of_nowhere(&Arc::new(Door::new(Arc::clone(app))))
}

const ALLOWED: &str = "*8\r\n:1\r\n:5\r\n";

#[tokio::test]
async fn checks_that_follow_one_another_are_one_question() {
    let (remote, app) = app();
    let mut conversation = conversation(&app);
    let pipeline = "TG.CHECK api k\r\nTG.CHECK log k 2\r\nTG.PEEK api k\r\n".repeat(16);
    let replies = answered(&mut conversation, pipeline.as_bytes()).await;
    assert_eq!(remote.asked(), 1);
    assert_eq!(replies.matches("*8\r\n").count(), 48);
    assert!(replies.starts_with(&format!("{ALLOWED}:4\r\n")), "{replies}");
    // Something else in between parts them; more than there is room for, too.
    let pipeline = "TG.CHECK api k\r\nPING\r\nTG.CHECK api k\r\nTG.CHECK api k x\r\nTG.CHECK none k\r\nTG.CHECK api k\r\n";
    let replies = answered(&mut conversation, pipeline.as_bytes()).await;
    assert_eq!(remote.asked(), 3);
    let heads = replies.lines().filter(|line| line.starts_with(['*', '+', '-']));
    let heads: Vec<&str> = heads.map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(heads, ["*8", "+PONG", "*8", "-ERR", "-ERR", "*8"]);
    answered(&mut conversation, "TG.CHECK api k\r\n".repeat(100).as_bytes()).await;
    assert_eq!(remote.asked(), 2, "sixty-four at once, and then the others");
}

#[tokio::test]
async fn figures_that_come_along_are_one_question_too() {
    let (remote, app) = app();
    let mut conversation = conversation(&app);
    let pipeline = "CL.THROTTLE k 9 1 60\r\nCL.THROTTLE l 4 1 60 2\r\nCL.THROTTLE k 9 1 60 0\r\n".repeat(2);
    let replies = answered(&mut conversation, pipeline.as_bytes()).await;
    assert_eq!(remote.asked(), 1);
    let left: Vec<&str> = replies.split("*5\r\n").skip(1).map(|it| it.lines().nth(2).unwrap()).collect();
    assert_eq!(left, [":9", ":3", ":9", ":8", ":1", ":8"]);
    // What is under a policy is another question, what is given back and what is forgotten too.
    let pipeline = "CL.THROTTLE k 9 1 60\r\nTG.CHECK api k\r\nCL.THROTTLE k 9 1 60\r\nCL.THROTTLE k 9 1 60 -3\r\n\
                    CL.THROTTLE k 9 1 60 0\r\nCL.THROTTLE k 9 0 60\r\nCL.THROTTLE k 9 1 60\r\n";
    let replies = answered(&mut conversation, pipeline.as_bytes()).await;
    assert_eq!(remote.asked(), 6);
    let heads: Vec<&str> = replies.lines().filter(|line| line.starts_with(['*', '-'])).collect();
    assert_eq!(heads.len(), 7, "{replies}");
    assert!(heads[1].starts_with("*8") && heads[5].starts_with("-ERR zero rates"), "{replies}");
    answered(&mut conversation, "CL.THROTTLE k 9 1 60\r\n".repeat(80).as_bytes()).await;
    assert_eq!(remote.asked(), 2, "sixty-four at once, and then the others");
    answered(&mut conversation, format!("AUTH {TOKEN}\r\n").as_bytes()).await;
    assert_eq!(answered(&mut conversation, b"DEL k l m\r\nCLIENT REPLY SKIP\r\nDEL k\r\n").await, ":2\r\n");
    assert_eq!(remote.asked(), 2);
}

#[tokio::test]
async fn a_store_that_is_down_is_an_error_for_each_and_the_conversation_goes_on() {
    let (remote, app) = app();
    let mut conversation = conversation(&app);
    remote.fail(true);
    let replies =
        answered(&mut conversation, b"TG.CHECK api k\r\nTG.PEEK api k\r\nPING\r\nTG.CHECK api k\r\n").await;
    let words: Vec<&str> = replies.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(words, ["-UNAVAILABLE", "-UNAVAILABLE", "+PONG", "-UNAVAILABLE"]);
    assert!(!replies.contains("10.1.2.3"));
    let admin = format!(
        "AUTH {TOKEN}\r\nTG.CREDIT api k 1\r\nTG.RESET api k\r\nCL.THROTTLE k 4 1 1\r\nCL.THROTTLE k 4 1 1 0\r\n\
         CL.THROTTLE k 4 1 1 -1\r\nDEL k l\r\nPING\r\n"
    );
    let replies = answered(&mut conversation, admin.as_bytes()).await;
    let words: Vec<&str> = replies.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(words, [&["+OK"][..], &["-UNAVAILABLE"; 6], &["+PONG"]].concat());
    remote.fail(false);
    assert!(
        answered(&mut conversation, b"TG.CHECK api k\r\n").await.starts_with(&format!("{ALLOWED}:4\r\n"))
    );
}

#[tokio::test]
async fn a_check_without_an_answer_is_an_error_in_its_place_alone() {
    let (remote, app) = app();
    remote.fail_key("lost", StoreErrorKind::Outage);
    let mut conversation = conversation(&app);
    let pipeline = "CL.THROTTLE k 4 1 60\r\nCL.THROTTLE lost 4 1 60\r\nCL.THROTTLE k 4 1 60\r\n";
    let replies = answered(&mut conversation, pipeline.as_bytes()).await;
    let heads: Vec<&str> = replies.lines().filter(|line| !line.starts_with(':')).collect();
    assert!(matches!(heads[..], ["*5", lost, "*5"] if lost.starts_with("-UNAVAILABLE")), "{replies}");
    assert_eq!(remote.asked(), 1);
    let pipeline = "TG.CHECK api k 2\r\nTG.CHECK api lost\r\nTG.PEEK log lost\r\nTG.CHECK api k\r\n";
    let replies = answered(&mut conversation, pipeline.as_bytes()).await;
    let parts = replies.split("-UNAVAILABLE").collect::<Vec<_>>();
    assert_eq!(parts.len(), 3, "{replies}");
    assert!(parts[0].starts_with(&format!("{ALLOWED}:3\r\n")), "{replies}");
    assert!(parts[2].contains(&format!("{ALLOWED}:2\r\n")), "{replies}");
    assert_eq!(remote.asked(), 1);
    // Each says what helps, and nothing of what is kept where.
    remote.fail_key("bad", StoreErrorKind::Damaged);
    remote.fail_key("apart", StoreErrorKind::Unfit);
    let login = format!("AUTH {TOKEN}\r\n");
    answered(&mut conversation, login.as_bytes()).await;
    let pipeline = "TG.CHECK api bad\r\nTG.CHECK api k\r\nTG.PEEK log apart\r\nTG.CREDIT api bad 1\r\nTG.RESET api lost\r\n";
    let replies = answered(&mut conversation, pipeline.as_bytes()).await;
    let heads: Vec<&str> = replies.lines().filter(|line| line.starts_with(['-', '*'])).collect();
    let words: Vec<&str> = heads.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(words, ["-DAMAGED", "*8", "-UNFIT", "-DAMAGED", "-UNAVAILABLE"], "{replies}");
    assert!(heads[0].contains("an operator") && !heads[0].contains("try again later"), "{replies}");
    assert!(heads[4].contains("try again later"), "{replies}");
    assert!(!replies.contains("10.1.2.3") && !replies.contains("zebra"), "{replies}");
}

fn command() -> impl Strategy<Value = String> {
    let key = prop_oneof![Just("a"), Just("b"), Just("c")];
    let policy = prop_oneof![4 => Just("api"), 4 => Just("log"), 1 => Just("none")];
    let cost = prop_oneof![4 => Just("1"), 1 => Just("0"), 1 => Just("2"), 1 => Just("9"), 1 => Just("-1")];
    let figures =
        prop_oneof![2 => Just("2 1 60"), 1 => Just("5 3 1"), 1 => Just("2 0 60"), 1 => Just("x 1 1")];
    let quantity =
        prop_oneof![4 => Just("1"), 1 => Just("0"), 1 => Just("2"), 1 => Just("9"), 1 => Just("-1")];
    let throttle = (key.clone(), figures, quantity)
        .prop_map(|(key, figures, quantity)| format!("CL.THROTTLE {key} {figures} {quantity}"));
    let check = (policy.clone(), key.clone(), cost).prop_map(|(p, k, c)| format!("TG.CHECK {p} {k} {c}"));
    prop_oneof![
        8 => check,
        2 => (policy.clone(), key.clone()).prop_map(|(policy, key)| format!("tg.peek {policy} {key}")),
        1 => (policy.clone(), key.clone()).prop_map(|(policy, key)| format!("TG.CREDIT {policy} {key} 1")),
        1 => (policy, key.clone()).prop_map(|(policy, key)| format!("TG.RESET {policy} {key}")),
        6 => throttle,
        1 => key.prop_map(|key| format!("DEL {key} d")),
        1 => Just("TG.CHECK api".to_owned()),
        1 => Just("PING".to_owned()),
        1 => prop_oneof![Just("ON"), Just("OFF"), Just("SKIP")].prop_map(|how| format!("CLIENT REPLY {how}")),
    ]
}

proptest! {
    /// Together, one by one, and with a store elsewhere: the very same bytes.
    #[test]
    fn neither_pipelines_nor_the_store_change_a_reply(
        commands in prop::collection::vec(command(), 1..150),
        inline in any::<bool>(),
    ) {
        let written = |command: &String| match inline {
            true => format!("{command}\r\n"),
            false => {
                let words: Vec<&str> = command.split(' ').collect();
                let bulk = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
                format!("*{}\r\n{}", words.len(), words.iter().map(bulk).collect::<String>())
            }
        };
        let login = written(&format!("AUTH {TOKEN}"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let whole: String = commands.iter().map(written).collect();
        runtime.block_on(async {
            let mut single = conversation(&app_over(AnyStore::default()));
            let mut together = conversation(&app_over(AnyStore::default()));
            let mut elsewhere = conversation(&app().1);
            for conversation in [&mut single, &mut together, &mut elsewhere] {
                prop_assert_eq!(answered(conversation, login.as_bytes()).await, "+OK\r\n");
            }
            let mut right = String::new();
            for command in &commands {
                right += &answered(&mut single, written(command).as_bytes()).await;
            }
            prop_assert_eq!(&answered(&mut together, whole.as_bytes()).await, &right);
            prop_assert_eq!(&answered(&mut elsewhere, whole.as_bytes()).await, &right);
            Ok(())
        })?;
    }
}
