//! The store a server runs on: in this process, or wherever else; chosen when it starts.
//!
//! What is in memory is answered at once, without a future, a box or a task. All others answer by futures, and all
//! doors wait for them in the same words.

mod ad_hoc;
mod elsewhere;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tidegate::store::{AdHoc, Adjustment, Check, Grouping, Snapshot, Store, StoreError, amid};
use tidegate::{ActivePolicy, Decision, MemoryStore, Penalty, PlanId, PolicyHandle, Timestamp};

use elsewhere::Elsewhere;

/// The handle on a policy of a server.
pub type Handle = PolicyHandle<AnyStore>;

/// The store of a server's limiter.
///
/// ```
/// use tidegate::{Limit, Limiter, MemoryStore, Policy, Rate};
/// use tidegate_server::{App, AnyStore};
/// let policy = Policy::single("api", Limit::token_bucket(10, Rate::per_second(1)))?;
/// let store = AnyStore::from(MemoryStore::builder().max_keys(1_000).build());
/// let app = App::new(Limiter::builder(policy).store(store).build());
/// assert_eq!(app.limiter().store().memory().map(|memory| memory.keys()), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AnyStore(Kind);

enum Kind {
    Memory(MemoryStore),
    /// And how many decisions were made without it.
    Elsewhere(Box<dyn Elsewhere>, Arc<AtomicU64>),
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Memory(_) => "Memory",
            Kind::Elsewhere(..) => "Elsewhere",
        })
    }
}

/// An answer on its way.
pub type Later<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// The answers to several checks on their way, each for itself.
pub type LaterEach = Pin<Box<dyn Future<Output = Vec<Result<Decision, StoreError>>> + Send>>;

/// The answers to several checks, known or on their way.
#[must_use = "what is on its way is done only if somebody waits for it"]
pub enum SoonEach {
    /// They are known: each is a decision.
    Known(Vec<Decision>),
    /// They are on their way, and some may come to nothing.
    Later(LaterEach),
}

/// An answer that is known, or on its way: a future that is ready at once where it can be.
#[must_use = "what is on its way is done only if somebody waits for it"]
pub enum Soon<T> {
    /// It is known.
    Known(T),
    /// It is on its way.
    Later(Later<T>),
    /// It was polled to its end.
    Over,
}

impl AnyStore {
    /// A store that answers by futures, wherever it is.
    pub fn elsewhere(store: impl AdHoc) -> Self {
        AnyStore(Kind::Elsewhere(Box::new(store), Arc::default()))
    }

    /// Decisions made while the store did not answer, by what policies answer then.
    pub fn degraded(&self) -> u64 {
        match &self.0 {
            Kind::Memory(_) => 0,
            Kind::Elsewhere(_, degraded) => degraded.load(Ordering::Relaxed),
        }
    }

    /// The same answer; once it is there, what of it was made without the store is counted.
    #[inline]
    fn counted<T: Send + 'static>(&self, answer: Soon<T>, without: fn(&T) -> u64) -> Soon<T> {
        match (answer, &self.0) {
            (Soon::Later(later), Kind::Elsewhere(_, count)) => {
                let count = Arc::clone(count);
                Soon::Later(Box::pin(async move {
                    let answer = later.await?;
                    count.fetch_add(without(&answer), Ordering::Relaxed);
                    Ok(answer)
                }))
            }
            (answer, _) => answer,
        }
    }

    /// The store in this process's memory, if it is that.
    pub fn memory(&self) -> Option<&MemoryStore> {
        match &self.0 {
            Kind::Memory(memory) => Some(memory),
            Kind::Elsewhere(..) => None,
        }
    }

    #[inline]
    fn ask<T>(
        &self,
        in_memory: impl FnOnce(&MemoryStore) -> T,
        elsewhere: impl FnOnce(&dyn Elsewhere) -> Later<T>,
    ) -> Soon<T> {
        match &self.0 {
            Kind::Memory(memory) => Soon::Known(in_memory(memory)),
            Kind::Elsewhere(store, _) => Soon::Later(elsewhere(&**store)),
        }
    }

    /// The same of several answers; what of them was made without the store is counted.
    fn ask_each(
        &self,
        in_memory: impl FnOnce(&MemoryStore) -> Vec<Decision>,
        elsewhere: impl FnOnce(&dyn Elsewhere) -> LaterEach,
    ) -> SoonEach {
        match &self.0 {
            Kind::Memory(memory) => SoonEach::Known(in_memory(memory)),
            Kind::Elsewhere(store, count) => {
                let (later, count) = (elsewhere(&**store), Arc::clone(count));
                SoonEach::Later(Box::pin(async move {
                    let answers = later.await;
                    count.fetch_add(degraded(answers.iter().flatten()), Ordering::Relaxed);
                    answers
                }))
            }
        }
    }
}

/// How many of them were made without the store.
fn degraded<'d>(decisions: impl IntoIterator<Item = &'d Decision>) -> u64 {
    decisions.into_iter().filter(|decision| decision.is_degraded()).count() as u64
}

impl Default for AnyStore {
    /// In memory, without bounds.
    fn default() -> Self {
        MemoryStore::default().into()
    }
}

impl From<MemoryStore> for AnyStore {
    fn from(memory: MemoryStore) -> Self {
        AnyStore(Kind::Memory(memory))
    }
}

impl<T> Soon<T> {
    /// The answer if it is known already.
    pub fn known(self) -> Option<T> {
        match self {
            Soon::Known(value) => Some(value),
            Soon::Later(_) | Soon::Over => None,
        }
    }

    /// The answer, or the future of it.
    ///
    /// # Errors
    /// It is on its way.
    pub fn now(self) -> Result<T, Later<T>>
    where
        T: Send + 'static,
    {
        match self {
            Soon::Known(value) => Ok(value),
            Soon::Later(later) => Err(later),
            Soon::Over => Err(Box::pin(self)),
        }
    }

    /// Goes on with the answer.
    pub fn map<U>(self, go_on: impl FnOnce(T) -> U + Send + 'static) -> Soon<U>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        match self {
            Soon::Known(value) => Soon::Known(go_on(value)),
            Soon::Later(later) => Soon::Later(Box::pin(async { later.await.map(go_on) })),
            Soon::Over => Soon::Over,
        }
    }
}

impl SoonEach {
    /// The answers, or the future of them.
    ///
    /// # Errors
    /// They are on their way.
    pub fn now(self) -> Result<Vec<Decision>, LaterEach> {
        match self {
            SoonEach::Known(decisions) => Ok(decisions),
            SoonEach::Later(later) => Err(later),
        }
    }
}

impl fmt::Debug for SoonEach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SoonEach::Known(_) => "Known",
            SoonEach::Later(_) => "Later",
        })
    }
}

impl<T> fmt::Debug for Soon<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Soon::Known(_) => "Known",
            Soon::Later(_) => "Later",
            Soon::Over => "Over",
        })
    }
}

/// Nothing in it is pinned: the future on its way is in a box.
impl<T> Unpin for Soon<T> {}

impl<T> Future for Soon<T> {
    type Output = Result<T, StoreError>;

    /// # Panics
    /// If it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Soon::Later(later) = &mut *self {
            return later.as_mut().poll(context);
        }
        match mem::replace(&mut *self, Soon::Over) {
            Soon::Known(value) => Poll::Ready(Ok(value)),
            Soon::Later(_) | Soon::Over => panic!("an answer was polled again after it was there"),
        }
    }
}

impl Store for AnyStore {
    type Answer<T: Send + 'static> = Soon<T>;
    type Answers = SoonEach;

    fn sweep(&self, now: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId> {
        match &self.0 {
            Kind::Memory(memory) => Store::sweep(memory, now, policies),
            Kind::Elsewhere(store, _) => store.sweep(now, policies),
        }
    }

    #[inline]
    fn check_one(&self, now: Timestamp, check: Check<'_>) -> Soon<Decision> {
        let answer =
            self.ask(|memory| Store::check_one(memory, now, check), |store| store.check_one(now, check));
        self.counted(answer, |decision| degraded([decision]))
    }

    fn check_each(&self, now: Timestamp, checks: &[Check<'_>]) -> SoonEach {
        self.ask_each(|memory| Store::check_each(memory, now, checks), |store| store.check_each(now, checks))
    }

    fn check_group(&self, now: Timestamp, checks: &[Check<'_>], grouping: Grouping) -> Soon<Vec<Decision>> {
        let answer = self.ask(
            |memory| Store::check_group(memory, now, checks, grouping),
            |store| store.check_group(now, checks, grouping),
        );
        self.counted(answer, |decisions| degraded(decisions))
    }

    fn adjust(
        &self,
        now: Timestamp,
        policy: &Arc<ActivePolicy>,
        key: &[u8],
        adjustment: Adjustment,
    ) -> Soon<Penalty> {
        let answer = self.ask(
            |memory| Store::adjust(memory, now, policy, key, adjustment),
            |store| store.adjust(now, policy, key, adjustment),
        );
        self.counted(answer, |done| degraded([&done.after]))
    }

    fn snapshot(&self, now: Timestamp, policy: &Arc<ActivePolicy>, key: &[u8]) -> Soon<Snapshot> {
        self.ask(|memory| Store::snapshot(memory, now, policy, key), |store| store.snapshot(now, policy, key))
    }

    #[inline]
    fn ready<T: Send + 'static>(value: T) -> Soon<T> {
        Soon::Known(value)
    }

    fn map<T, U>(answer: Soon<T>, go_on: impl FnOnce(T) -> U + Send + 'static) -> Soon<U>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        answer.map(go_on)
    }

    fn settled<T: Send + 'static>(answer: Soon<T>) -> impl Future<Output = Result<T, StoreError>> + Send {
        answer
    }

    fn each_ready(decisions: Vec<Decision>) -> SoonEach {
        SoonEach::Known(decisions)
    }

    fn amid(known: Vec<Option<Decision>>, answers: SoonEach) -> SoonEach {
        match answers {
            SoonEach::Known(answers) => SoonEach::Known(amid(known, answers, |decision| decision)),
            SoonEach::Later(later) => SoonEach::Later(Box::pin(async move { amid(known, later.await, Ok) })),
        }
    }

    async fn each_settled(answers: SoonEach) -> Vec<Result<Decision, StoreError>> {
        match answers {
            SoonEach::Known(decisions) => decisions.into_iter().map(Ok).collect(),
            SoonEach::Later(later) => later.await,
        }
    }
}
