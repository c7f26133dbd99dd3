//! A file that changes under a running server.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tidegate_server::Reloader;
use tidegate_server::config::{Config, HeaderFamily};

use crate::server::{FIVE, Server};

#[tokio::test]
async fn other_figures_come_into_force_and_what_was_used_stays_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidegate.yaml");
    fs::write(&file, FIVE).unwrap();
    let server = Server::start(FIVE).await;
    let loaded = Config::load(&file).unwrap();
    let reloader = Reloader::new(Arc::clone(&server.app), &file, &loaded, None);
    server.check("k", 5).await;

    fs::write(&file, FIVE.replace("capacity: 5, refill: 1/s", "capacity: 50, refill: 10/s")).unwrap();
    let report = reloader.reload().unwrap();
    assert_eq!(report.changed, ["api"]);
    let told = server.check("k", 1).await;
    assert_eq!((told.json()["allowed"].as_bool(), told.json()["limit"].as_u64()), (Some(false), Some(50)));
    assert_eq!(told.header("ratelimit-policy"), Some("\"token_bucket\";q=50;w=5"));
    server.advance(Duration::from_secs(1));
    assert_eq!(server.check("k", 1).await.json()["remaining"], 9);
    assert_eq!(server.get("/v1/policies").await.json()["policies"][0]["limits"][0]["limit"], 50);

    fs::write(&file, format!("# nothing but a comment\n{}", fs::read_to_string(&file).unwrap())).unwrap();
    assert!(reloader.reload().unwrap().is_empty());
}

#[tokio::test]
async fn a_wrong_file_changes_nothing_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidegate.yaml");
    fs::write(&file, FIVE).unwrap();
    let server = Server::start(FIVE).await;
    let loaded = Config::load(&file).unwrap();
    let reloader = Reloader::new(Arc::clone(&server.app), &file, &loaded, None);
    server.check("k", 2).await;
    for wrong in ["limit: -1", "policies: {}", "\u{0}", &FIVE.replace("1/s", "1/sek")] {
        fs::write(&file, wrong).unwrap();
        let error = reloader.reload().unwrap_err().to_string();
        assert!(error.contains("tidegate.yaml:1: "), "{error}");
    }
    fs::remove_file(&file).unwrap();
    assert!(reloader.reload().unwrap_err().to_string().contains("tidegate.yaml: "));
    let told = server.check("k", 0).await;
    assert_eq!((&told.json()["limit"], &told.json()["remaining"]), (&5.into(), &3.into()));
    let metrics = server.get("/metrics").await.body;
    assert!(metrics.contains("tidegate_config_reloads_total{result=\"failure\"} 5\n"), "{metrics}");
    assert!(metrics.contains("tidegate_config_reloads_total{result=\"success\"} 0\n"), "{metrics}");
}

#[tokio::test]
async fn the_headers_change_with_the_file_unless_the_command_line_chose() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidegate.yaml");
    fs::write(&file, format!("headers: {{family: ietf}}\n{FIVE}")).unwrap();
    let server = Server::start(FIVE).await;
    let loaded = Config::load(&file).unwrap();
    Reloader::new(Arc::clone(&server.app), &file, &loaded, None).reload().unwrap();
    let told = server.check("k", 1).await;
    assert_eq!((told.header("x-ratelimit-limit"), told.header("ratelimit").is_some()), (None, true));
    let chosen = Some(HeaderFamily::XRateLimit);
    Reloader::new(Arc::clone(&server.app), &file, &loaded, chosen).reload().unwrap();
    let told = server.check("k", 1).await;
    assert_eq!((told.header("x-ratelimit-limit"), told.header("ratelimit")), (Some("5"), None));
}

#[tokio::test]
async fn what_the_store_cannot_do_is_refused() {
    let server = Server::start(FIVE).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidegate.yaml");
    let envoy = format!("{}\nenvoy: {{edge: []}}", FIVE.replace("capacity: 5", "capacity: 7"));
    fs::write(&file, &envoy).unwrap();
    let no_envoy = |config: &Config| match config.envoy().domains().len() {
        0 => Ok(()),
        _ => Err("envoy: not with this store".to_owned()),
    };
    let loaded = Config::parse(FIVE, "test.yaml").unwrap();
    let reloader = Reloader::new(Arc::clone(&server.app), &file, &loaded, None).guarded(no_envoy);
    let error = reloader.reload().unwrap_err().to_string();
    assert_eq!(error, format!("{}: envoy: not with this store", file.display()));
    assert_eq!(server.check("k", 1).await.json()["limit"], 5);
    fs::write(&file, envoy.replace("envoy: {edge: []}", "")).unwrap();
    reloader.reload().unwrap();
    assert_eq!(server.check("k", 1).await.json()["limit"], 7);
}
