//! The conformance suite put to a limiter over real servers.
#![allow(clippy::unwrap_used)]

#[path = "../../tidegate/tests/judged/mod.rs"]
mod judged;
mod shared;

/// Every theme, over one version of the server.
macro_rules! over {
    ($server:ident, $program:ident, $cases:literal) => {
        mod $server {
            use tidegate_testkit::conformance;
            use tidegate_testkit_servers::Program;

            use crate::shared::Shared;

            fn subject() -> Shared {
                Shared::over(Program::$program)
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

over!(redis7, Redis7, 500);
over!(redis8, Redis8, 200);
over!(valkey8, Valkey8, 200);
over!(valkey9, Valkey9, 200);
