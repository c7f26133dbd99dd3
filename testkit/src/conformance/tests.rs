//! The suite put to the oracle, and to subjects that are wrong on purpose: a suite that cannot fail proves nothing.

use super::*;

#[test]
fn the_oracle_passes_the_worked_examples() {
    worked_examples(&mut OracleSubject::default());
}

#[test]
fn the_oracle_passes_every_case() {
    cases(&mut OracleSubject::default());
}
