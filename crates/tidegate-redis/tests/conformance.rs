//! The conformance suite put to a limiter over real servers.
#![allow(clippy::unwrap_used)]

#[path = "../../tidegate/tests/judged/mod.rs"]
mod judged;
mod shared;

use shared::Shared;
use tidegate_testkit_servers::{Certificates, Cluster, Program, Sentinel, Server};

/// Every theme, over one kind of servers.
macro_rules! over {
    ($servers:ident, $subject:expr, $cases:literal) => {
        mod $servers {
            use tidegate_testkit::conformance;
            #[allow(unused_imports)]
            use tidegate_testkit_servers::{Cluster, Program, Sentinel};

            #[allow(unused_imports)]
            use crate::{clustered, encrypted, shared::Shared, watched};

            fn subject() -> Shared {
                $subject
            }

            #[test]
            fn worked_examples() {
                conformance::worked_examples(&mut subject());
            }

            #[test]
            fn cases() {
                conformance::cases(&mut subject());
            }

            #[test]
            fn keys_apart() {
                conformance::keys_apart(&mut subject());
            }

            #[test]
            fn random_traces() {
                conformance::random_traces(&mut subject(), $cases);
            }

            #[test]
            fn waits_are_honest() {
                conformance::edges(&mut subject(), $cases / 4);
            }

            #[test]
            fn bounds_hold() {
                conformance::bound(&mut subject(), $cases / 4);
            }
        }
    };
}

over!(redis7, Shared::over(Program::Redis7), 500);
over!(redis8, Shared::over(Program::Redis8), 200);
over!(valkey8, Shared::over(Program::Valkey8), 200);
over!(valkey9, Shared::over(Program::Valkey9), 200);
over!(cluster, clustered(Cluster::start(Program::Redis7, 3, 1)), 100);
over!(valkey_cluster, clustered(Cluster::start(Program::Valkey9, 3, 0)), 100);
over!(sentinel, watched(Sentinel::start(Program::Redis7, 1)), 100);
over!(encrypted, encrypted(), 100);

/// By TLS, for whoever has the password.
fn encrypted() -> Shared {
    let certificates = Certificates::make();
    let server = Server::setup(Program::Redis7).password("s3cret").encrypted(&certificates, false).start();
    let ca = certificates.ca();
    let url = format!("rediss://:s3cret@localhost:{}?ca={}", server.port(), ca.to_str().unwrap());
    Shared::at(url, (server, certificates))
}

fn clustered(cluster: Cluster) -> Shared {
    Shared::at(cluster.url(), cluster)
}

fn watched(sentinel: Sentinel) -> Shared {
    Shared::at(sentinel.url(), sentinel)
}
