//! A store that does I/O, or behaves as if: what it does is done some polls later, or when a test says so.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tidegate::store::{Adjustment, Ask, Check, Grouping, Snapshot, Store, StoreError, StoreErrorKind, amid};
use tidegate::{ActivePolicy, Decision, MemoryStore, Penalty, PlanId, Timestamp};

#[derive(Clone, Default)]
pub struct Slow(Arc<Inner>);

#[derive(Default)]
struct Inner {
    memory: MemoryStore,
    /// How often an answer is not there yet, before the deed and again after it.
    yields: AtomicUsize,
    is_down: AtomicBool,
    /// While it is shut, no answer is there.
    gate: Mutex<Gate>,
    /// The policy that was last checked under.
    seen: Mutex<Option<Arc<ActivePolicy>>>,
}

#[derive(Default)]
struct Gate {
    is_shut: bool,
    /// Who is to be woken, for each answer on its way.
    waiting: BTreeMap<u64, Waker>,
    next: u64,
}

impl Slow {
    pub fn yielding(times: usize) -> Self {
        let slow = Slow::default();
        slow.0.yields.store(times, Ordering::Relaxed);
        slow
    }

    /// From now on the store does not answer, or does again.
    pub fn fail(&self, is_down: bool) {
        self.0.is_down.store(is_down, Ordering::Relaxed);
    }

    /// Deeds are done from now on, but their answers are not there until the gate is opened.
    pub fn shut(&self) {
        self.0.gate.lock().unwrap().is_shut = true;
    }

    pub fn open(&self) {
        let woken = {
            let mut gate = self.0.gate.lock().unwrap();
            gate.is_shut = false;
            std::mem::take(&mut gate.waiting)
        };
        woken.into_values().for_each(Waker::wake);
    }

    /// Answers on their way that somebody is to be woken for.
    pub fn held_up(&self) -> usize {
        self.0.gate.lock().unwrap().waiting.len()
    }

    /// Charges a key as another node would, past every line.
    pub fn charge(&self, now: Timestamp, key: &[u8], cost: u32) -> Decision {
        let policy = self.0.seen.lock().unwrap().clone().unwrap();
        self.0.memory.check_one(now, Check { policy: &policy, key, ask: Ask::Exactly(cost.into()) })
    }

    /// How a key stands.
    pub fn remaining(&self, now: Timestamp, key: &[u8]) -> u64 {
        self.charge(now, key, 0).remaining()
    }

    fn answer<T: Send + 'static>(&self, act: impl FnOnce(&MemoryStore) -> T + Send + 'static) -> Answer<T> {
        let slow = self.clone();
        Box::pin(async move {
            let yields = slow.0.yields.load(Ordering::Relaxed);
            for _ in 0..yields {
                Yield(false).await;
            }
            if slow.0.is_down.load(Ordering::Relaxed) {
                return Err(StoreError::new(StoreErrorKind::Outage, "slow", "it was told to be down"));
            }
            let done = act(&slow.0.memory);
            for _ in 0..yields {
                Yield(false).await;
            }
            Passing { slow: &slow, number: None }.await;
            Ok(done)
        })
    }
}

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;
type Answers = Pin<Box<dyn Future<Output = Vec<Result<Decision, StoreError>>> + Send>>;

impl Store for Slow {
    type Answer<T: Send + 'static> = Answer<T>;
    type Answers = Answers;

    fn sweep(&self, now: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId> {
        self.0.memory.sweep(now, policies)
    }

    fn check_one(&self, now: Timestamp, check: Check<'_>) -> Answer<Decision> {
        let (policy, key, ask) = (Arc::clone(check.policy), check.key.to_vec(), check.ask);
        *self.0.seen.lock().unwrap() = Some(Arc::clone(&policy));
        self.answer(move |memory| memory.check_one(now, Check { policy: &policy, key: &key, ask }))
    }

    fn check_each(&self, now: Timestamp, checks: &[Check<'_>]) -> Answers {
        let each: Vec<_> = checks.iter().map(|check| self.check_one(now, *check)).collect();
        Box::pin(async move {
            let mut answers = Vec::new();
            for one in each {
                answers.push(one.await);
            }
            answers
        })
    }

    fn check_group(&self, now: Timestamp, checks: &[Check<'_>], grouping: Grouping) -> Answer<Vec<Decision>> {
        let checks: Vec<_> =
            checks.iter().map(|check| (Arc::clone(check.policy), check.key.to_vec(), check.ask)).collect();
        self.answer(move |memory| {
            let checks: Vec<_> =
                checks.iter().map(|(policy, key, ask)| Check { policy, key, ask: *ask }).collect();
            memory.check_group(now, &checks, grouping)
        })
    }

    fn adjust(
        &self,
        now: Timestamp,
        policy: &Arc<ActivePolicy>,
        key: &[u8],
        adjustment: Adjustment,
    ) -> Answer<Penalty> {
        let (policy, key) = (Arc::clone(policy), key.to_vec());
        self.answer(move |memory| memory.adjust(now, &policy, &key, adjustment))
    }

    fn snapshot(&self, now: Timestamp, policy: &Arc<ActivePolicy>, key: &[u8]) -> Answer<Snapshot> {
        let (policy, key) = (Arc::clone(policy), key.to_vec());
        self.answer(move |memory| memory.snapshot(now, &policy, &key))
    }

    fn ready<T: Send + 'static>(value: T) -> Answer<T> {
        Box::pin(std::future::ready(Ok(value)))
    }

    fn map<T, U>(answer: Answer<T>, go_on: impl FnOnce(T) -> U + Send + 'static) -> Answer<U>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        Box::pin(async move { answer.await.map(go_on) })
    }

    fn settled<T: Send + 'static>(answer: Answer<T>) -> impl Future<Output = Result<T, StoreError>> + Send {
        answer
    }

    fn each_ready(decisions: Vec<Decision>) -> Answers {
        Box::pin(std::future::ready(decisions.into_iter().map(Ok).collect()))
    }

    fn amid(known: Vec<Option<Decision>>, answers: Answers) -> Answers {
        Box::pin(async move { amid(known, answers.await, Ok) })
    }

    fn each_settled(answers: Answers) -> impl Future<Output = Vec<Result<Decision, StoreError>>> + Send {
        answers
    }
}

/// Not there the first time.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Not there while the gate is shut.
struct Passing<'a> {
    slow: &'a Slow,
    number: Option<u64>,
}

impl Future for Passing<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut gate = self.slow.0.gate.lock().unwrap();
        if !gate.is_shut {
            return Poll::Ready(());
        }
        let number = self.number.unwrap_or(gate.next);
        gate.next = gate.next.max(number + 1);
        // Only who asked last is woken.
        gate.waiting.insert(number, context.waker().clone());
        drop(gate);
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        let mut gate = self.slow.0.gate.lock().unwrap();
        if let Some(number) = self.number {
            gate.waiting.remove(&number);
        }
    }
}
