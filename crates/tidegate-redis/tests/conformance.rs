//! The conformance suite put to a limiter over real servers.
#![allow(clippy::unwrap_used)]

#[path = "../../tidegate/tests/judged/mod.rs"]
mod judged;
mod shared;

use shared::Shared;
use tidegate_testkit_servers::{Cluster, Sentinel};

/// Every theme, over one kind of servers.
macro_rules! over {
    ($servers:ident, $subject:expr, $cases:literal) => {
        mod $servers {
            use tidegate_testkit::conformance;
            #[allow(unused_imports)]
            use tidegate_testkit_servers::{Cluster, Program, Sentinel};

            #[allow(unused_imports)]
            use crate::{clustered, shared::Shared, watched};

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

fn clustered(cluster: Cluster) -> Shared {
    Shared::at(cluster.url(), cluster)
}

fn watched(sentinel: Sentinel) -> Shared {
    Shared::at(sentinel.url(), sentinel)
}
