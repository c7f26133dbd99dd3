//! What a limiter asks of whatever keeps its state.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use tidegate_core::{Cost, Decision, KeyState, Penalty, Plan, Timestamp, Units};

use crate::active::{ActivePolicy, PlanId};
pub use crate::adhoc::{AdHoc, Together};
pub use crate::patience::{Within, patience, within};

/// One check: a key, under a policy, at a cost.
#[derive(Debug, Clone, Copy)]
pub struct Check<'a> {
    /// The policy, in the version in force.
    pub policy: &'a Arc<ActivePolicy>,
    /// The client's key: any bytes.
    pub key: &'a [u8],
    /// What is asked for.
    pub ask: Ask,
}

/// What a check asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Exactly this much, or nothing.
    Exactly(Cost),
    /// As much as there is, at most this.
    UpTo(Cost),
}

impl Ask {
    /// The most that is charged.
    pub fn most(self) -> Cost {
        let (Ask::Exactly(cost) | Ask::UpTo(cost)) = self;
        cost
    }
}

/// How checks of one group hang together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// If each is admitted, all are charged, else none: a refused one drains none of the others.
    AllOrNothing,
    /// None is charged, whatever it is answered.
    Foresee,
}

/// A change of a key's state that is not a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adjustment {
    /// Gives units back.
    Credit(Units),
    /// Charges units whether they fit or not.
    Penalize(Units),
    /// Forgets the key: full buckets, empty windows.
    Reset,
}

/// A key's state and the figures it stands under, copied out of the store.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The figures in force for the key.
    pub plan: Plan,
    /// What the key holds.
    pub state: KeyState,
}

/// A store that could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store {store} could not answer: {reason}")]
#[non_exhaustive]
pub struct StoreError {
    /// What kind of trouble it is, and so what helps.
    pub kind: StoreErrorKind,
    /// Which store.
    pub store: String,
    /// What went wrong, and what mends it: for the log. It may name a client's key.
    pub reason: String,
}

impl StoreError {
    /// An error of this kind of the store called `store`.
    pub fn new(kind: StoreErrorKind, store: impl Into<String>, reason: impl Into<String>) -> Self {
        StoreError { kind, store: store.into(), reason: reason.into() }
    }
}

/// The kinds of trouble by which a store has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It cannot be reached, takes too long, or refuses to be asked: try again later. A check that ends so may have
    /// been charged once.
    Outage,
    /// What it keeps of the key is damaged, or nobody knows who put it there: it stays so until an operator acts.
    Damaged,
    /// It cannot do what was asked by what it is or how it is set up: the configuration has to change. Nothing was
    /// charged.
    Unfit,
}

/// Keeps the state of keys and applies the arithmetic of [`tidegate_core`] to it, atomically.
///
/// A store knows no algorithm. One that decides in a plain call answers with the thing itself
/// (`type Answer<T> = T`), one that does I/O with a future of `Result<T, StoreError>`; whoever is generic over
/// stores writes each verb once, with [`Store::map`] to go on and [`Store::settled`] to wait. So it is with a list of
/// checks, each of which is answered for itself: [`Store::amid`] goes on with them, [`Store::each_settled`] waits.
pub trait Store: Send + Sync + 'static {
    /// How this store answers with a `T`.
    type Answer<T: Send + 'static>: Send;

    /// How this store answers a list of checks, in its order: with a `Vec<Decision>` if each has an answer in a plain
    /// call, else with a future of a `Vec<Result<Decision, StoreError>>`. One without an answer takes none of the
    /// others with it, which may have been charged.
    type Answers: Send;

    /// Called after each change of the policies: `policies` are all there are now, and what they replaced is no
    /// longer to be written under, also not by checks that are still on their way.
    ///
    /// Lets state of other policies go, and tells which plans are still needed, to carry state over or to know what
    /// was in force at a late stamp.
    fn sweep(&self, now: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId>;

    /// Decides one check: the usual case.
    fn check_one(&self, now: Timestamp, check: Check<'_>) -> Self::Answer<Decision>;

    /// Decides checks that are independent of one another, in order: as [`check_one`](Self::check_one) does one after
    /// the other.
    fn check_each(&self, now: Timestamp, checks: &[Check<'_>]) -> Self::Answers;

    /// Decides checks as one, nothing else coming in between. Two may be of the same key. They have one answer: if one
    /// of them has none, no other is charged.
    ///
    /// If all are admitted and charged, each is answered as [`check_one`](Self::check_one) answers. Otherwise nothing is
    /// charged, and each is answered what it would have been, with the figures from before a charge.
    fn check_group(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        grouping: Grouping,
    ) -> Self::Answer<Vec<Decision>>;

    /// Changes a key's state outright.
    fn adjust(
        &self,
        now: Timestamp,
        policy: &Arc<ActivePolicy>,
        key: &[u8],
        adjustment: Adjustment,
    ) -> Self::Answer<Penalty>;

    /// Copies a key's state out.
    fn snapshot(&self, now: Timestamp, policy: &Arc<ActivePolicy>, key: &[u8]) -> Self::Answer<Snapshot>;

    /// Answers with what is known already.
    fn ready<T: Send + 'static>(value: T) -> Self::Answer<T>;

    /// Goes on with an answer.
    fn map<T, U>(answer: Self::Answer<T>, go_on: impl FnOnce(T) -> U + Send + 'static) -> Self::Answer<U>
    where
        T: Send + 'static,
        U: Send + 'static;

    /// Waits for an answer.
    fn settled<T: Send + 'static>(
        answer: Self::Answer<T>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Answers a list of checks with what is known already.
    fn each_ready(decisions: Vec<Decision>) -> Self::Answers;

    /// The answers to a list of checks of which some were `known` already: `answers` are those to the others, in order.
    /// See [`amid`].
    fn amid(known: Vec<Option<Decision>>, answers: Self::Answers) -> Self::Answers;

    /// Waits for the answers to a list of checks.
    fn each_settled(answers: Self::Answers)
    -> impl Future<Output = Vec<Result<Decision, StoreError>>> + Send;
}

/// Puts the answers to a list of checks in its order: what was `known`, told by `as_known`, and in the places between
/// what was answered. For stores that implement [`Store::amid`].
pub fn amid<A>(known: Vec<Option<Decision>>, answers: Vec<A>, as_known: impl Fn(Decision) -> A) -> Vec<A> {
    let mut answers = answers.into_iter();
    known.into_iter().filter_map(|known| known.map(&as_known).or_else(|| answers.next())).collect()
}
