use tidegate_testkit_servers::{Program, Sentinel};

use super::*;

/// Calls until one runs, and says how many may have run on the way.
async fn runs_in_the_end(link: &Link) -> usize {
    for perhaps in 0..5000 {
        match link.call(&count("b"), LONG).await {
            Ok(_) => return perhaps,
            Err(Failure::Refused(said)) => panic!("{said}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    panic!("nothing runs: {:?}", link.call(&count("b"), LONG).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_master_is_followed_when_it_is_replaced_and_when_it_is_gone() {
    let mut watching = tokio::task::spawn_blocking(|| Sentinel::start(Program::Redis7, 3)).await.unwrap();
    let link = Arc::new(open(&watching.url()).await);
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
    watching.server(0).wait_until_replicated();

    // While calls go on: each is charged once at most, and those that wait for the new master run there.
    let calls = tokio::spawn({
        let link = Arc::clone(&link);
        async move {
            let (mut ran, mut perhaps) = (0, 0);
            for _ in 0..400 {
                match link.call(&count("c"), LONG).await {
                    Ok(_) => ran += 1,
                    Err(Failure::MayHaveRun(_)) => perhaps += 1,
                    Err(Failure::NotRun(_)) => {}
                    Err(refused) => panic!("{refused}"),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            (ran, perhaps)
        }
    });
    let watching_too = tokio::task::spawn_blocking(move || {
        watching.fail_over();
        watching
    });
    watching = watching_too.await.unwrap();
    let (ran, perhaps) = calls.await.unwrap();
    let counted: i64 = watching.server(1).command(&["GET", "c"]).text().parse().unwrap();
    assert!(ran > 0 && counted <= ran + perhaps, "{counted} of {ran} and perhaps {perhaps}");
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(2)));
    assert_eq!(watching.server(1).command(&["GET", "a"]), text("2"));

    let second = watching.master_port();
    watching.server_mut(1).kill();
    runs_in_the_end(&link).await;
    watching.wait_until_replaced(second);
    assert_eq!(watching.server(0).command(&["GET", "b"]), text("1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_sentinel_is_asked_when_one_is_gone() {
    let mut watching = tokio::task::spawn_blocking(|| Sentinel::start(Program::Valkey9, 3)).await.unwrap();
    let link = open(&watching.url()).await;
    watching.sentinel_mut(0).kill();
    let first = watching.server(0).port();
    watching.server_mut(0).kill();
    runs_in_the_end(&link).await;
    assert_ne!(watching.master_port_by(1), first);
    assert_eq!(watching.server(1).command(&["GET", "b"]), text("1"));
    // A new link finds its way past the dead one.
    let link = open(&watching.url()).await;
    assert_eq!(link.call(&count("b"), LONG).await, Ok(Value::Int(2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_and_sentinels_ask_for_passwords_of_their_own() {
    let start = || Sentinel::start_guarded(Program::Redis7, 3, Some(["s3rver", "s3ntinel"]));
    let watching = tokio::task::spawn_blocking(start).await.unwrap();
    let file = std::env::temp_dir().join(format!("tidegate-sentinel-{}", std::process::id()));
    std::fs::write(&file, "s3ntinel\n").unwrap();
    let hosts = watching.url().replace("redis+sentinel://", "");
    let url = format!("redis+sentinel://:s3rver@{hosts}?sentinel_password_file={}", file.display());
    let link = open(&url).await;
    assert_eq!(link.call(&count("a"), LONG).await, Ok(Value::Int(1)));
    let watching = tokio::task::spawn_blocking(move || {
        watching.fail_over();
        watching
    });
    let watching = watching.await.unwrap();
    // For a moment the old master does not know yet that it is none: what runs there is lost.
    while watching.server(1).command(&["GET", "b"]) == Reply::Nil {
        runs_in_the_end(&link).await;
    }
    std::fs::remove_file(&file).unwrap();

    let why = async |url: String| {
        let said = Link::open(&url.parse().unwrap(), &Options::default()).await.unwrap_err().to_string();
        assert!(!said.contains("s3rver") && !said.contains("s3ntinel"), "{said}");
        said
    };
    let said = why(format!("redis+sentinel://:s3rver@{hosts}")).await;
    assert!(
        said.contains("NOAUTH: it asks for a password (add sentinel_password_env=NAME after ?)"),
        "{said}"
    );
    let said = why(url).await;
    assert!(said.contains("sentinel_password_file=") && said.contains("No such file"), "{said}");
}

#[tokio::test]
async fn links_that_cannot_be_opened_say_why() {
    let watching = Sentinel::start(Program::Redis7, 1);
    let sentinel = watching.sentinel(0).address();
    let why = async |url: String| {
        Link::open(&url.parse().unwrap(), &Options::default()).await.unwrap_err().to_string()
    };
    let said = why(format!("redis+sentinel://{sentinel}/other")).await;
    let expected =
        format!("store: redis+sentinel://{sentinel}/other: {sentinel}: knows no master \"other\" (");
    assert!(said.starts_with(&expected), "{said}");
    let said = why("redis+sentinel://127.0.0.1:1,localhost:2/m".to_owned()).await;
    assert!(said.contains("127.0.0.1:1: Connection refused") && said.contains("; localhost:2: "), "{said}");
}
