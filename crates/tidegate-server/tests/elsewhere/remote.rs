//! A store elsewhere, or as good as: what it does is done in a task of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tidegate::store::{
    AdHoc, Adjustment, Ask, Check, Grouping, Snapshot, Store, StoreError, StoreErrorKind, Together, amid,
};
use tidegate::{
    ActivePolicy, AdHocCheck, AdHocLimit, AdHocSpace, Cost, Decision, MemoryStore, Penalty, PlanId,
    Timestamp, Units,
};

#[derive(Clone, Default)]
pub struct Remote(Arc<Inner>);

#[derive(Default)]
struct Inner {
    memory: MemoryStore,
    is_down: AtomicBool,
    lets_pass: AtomicBool,
    /// Keys whose checks have no answer, and why.
    unanswered: Mutex<BTreeMap<Vec<u8>, StoreErrorKind>>,
    all_unanswered: Mutex<Option<StoreErrorKind>>,
    /// A policy whose checks have no answer.
    denied: Mutex<Option<&'static str>>,
    asked: AtomicU64,
}

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;
type Answers = Pin<Box<dyn Future<Output = Vec<Result<Decision, StoreError>>> + Send>>;

fn trouble(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "remote", "of zebra's record at 10.1.2.3:6379")
}

impl Remote {
    /// From now on the store does not answer, or does again.
    pub fn fail(&self, is_down: bool) {
        self.0.is_down.store(is_down, Ordering::Relaxed);
    }

    /// From now on groups pass uncounted, as under a policy that allows what its store does not answer, or do no more.
    pub fn let_pass(&self, uncounted: bool) {
        self.0.lets_pass.store(uncounted, Ordering::Relaxed);
    }

    /// From now on what is asked of this key has no answer.
    pub fn fail_key(&self, key: &str, kind: StoreErrorKind) {
        self.0.unanswered.lock().unwrap().insert(key.as_bytes().to_vec(), kind);
    }

    /// From now on nothing has an answer, or all but those keys have again.
    pub fn fail_all(&self, kind: Option<StoreErrorKind>) {
        *self.0.all_unanswered.lock().unwrap() = kind;
    }

    /// From now on what is asked under this policy has no answer.
    pub fn fail_policy(&self, name: &'static str) {
        *self.0.denied.lock().unwrap() = Some(name);
    }

    fn no_answer(&self, policy: &ActivePolicy, key: &[u8]) -> Option<StoreError> {
        if *self.0.denied.lock().unwrap() == Some(policy.policy().name()) {
            return Some(trouble(StoreErrorKind::Outage));
        }
        let all = *self.0.all_unanswered.lock().unwrap();
        all.or_else(|| self.0.unanswered.lock().unwrap().get(key).copied()).map(trouble)
    }

    /// How often it was asked since the last time.
    pub fn asked(&self) -> u64 {
        self.0.asked.swap(0, Ordering::Relaxed)
    }

    fn answer<T: Send + 'static>(&self, act: impl FnOnce(&MemoryStore) -> T + Send + 'static) -> Answer<T> {
        let inner = Arc::clone(&self.0);
        inner.asked.fetch_add(1, Ordering::Relaxed);
        let doing = async move {
            tokio::task::yield_now().await;
            if inner.is_down.load(Ordering::Relaxed) {
                return Err(trouble(StoreErrorKind::Outage));
            }
            Ok(act(&inner.memory))
        };
        Box::pin(async move { tokio::spawn(doing).await.unwrap() })
    }
}

/// Checks that outlive their question.
fn owned(checks: &[Check<'_>]) -> Vec<(Arc<ActivePolicy>, Vec<u8>, Ask)> {
    checks.iter().map(|check| (Arc::clone(check.policy), check.key.to_vec(), check.ask)).collect()
}

fn borrowed(checks: &[(Arc<ActivePolicy>, Vec<u8>, Ask)]) -> Vec<Check<'_>> {
    checks.iter().map(|(policy, key, ask)| Check { policy, key, ask: *ask }).collect()
}

/// Ad hoc checks that outlive their question.
struct Brought(Vec<(AdHocSpace, Vec<u8>, AdHocLimit, Cost)>);

impl Brought {
    fn of(checks: &[AdHocCheck<'_>]) -> Self {
        let owned = |it: &AdHocCheck<'_>| (it.space, it.key.to_vec(), it.limit.clone(), it.cost);
        Brought(checks.iter().map(owned).collect())
    }

    fn checks(&self) -> Vec<AdHocCheck<'_>> {
        let checks = self.0.iter();
        checks
            .map(|(space, key, limit, cost)| AdHocCheck { space: *space, key, limit, cost: *cost })
            .collect()
    }
}

impl AdHoc for Remote {
    fn check_ad_hoc(&self, now: Timestamp, checks: &[AdHocCheck<'_>]) -> Answers {
        let (checks, unanswered) = (Brought::of(checks), self.0.unanswered.lock().unwrap().clone());
        let count = checks.0.len();
        let answers = self.answer(move |memory| {
            let each = checks.checks().into_iter().map(|check| match unanswered.get(check.key) {
                Some(kind) => Err(trouble(*kind)),
                None => Ok(memory.check_ad_hoc(now, &[check])[0]),
            });
            each.collect::<Vec<_>>()
        });
        Box::pin(async move { answers.await.unwrap_or_else(|error| vec![Err(error); count]) })
    }

    fn credit_ad_hoc(&self, now: Timestamp, of: AdHocCheck<'_>, units: Units) -> Answer<Decision> {
        let of = Brought::of(&[of]);
        self.answer(move |memory| memory.credit_ad_hoc(now, of.checks()[0], units))
    }

    fn forget_ad_hoc(&self, space: AdHocSpace, keys: &[&[u8]]) -> Answer<u64> {
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
        self.answer(move |memory| {
            memory.forget_ad_hoc(space, &keys.iter().map(|key| &key[..]).collect::<Vec<_>>())
        })
    }

    fn check_group_with(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        ad_hoc: &[AdHocCheck<'_>],
        grouping: Grouping,
    ) -> Answer<Together> {
        let (checks, ad_hoc) = (owned(checks), Brought::of(ad_hoc));
        self.answer(move |memory| {
            memory.check_group_with(now, &borrowed(&checks), &ad_hoc.checks(), grouping)
        })
    }
}

impl Store for Remote {
    type Answer<T: Send + 'static> = Answer<T>;
    type Answers = Answers;

    fn sweep(&self, now: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId> {
        self.0.memory.sweep(now, policies)
    }

    fn check_one(&self, now: Timestamp, check: Check<'_>) -> Answer<Decision> {
        if let Some(error) = self.no_answer(check.policy, check.key) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let checks = owned(&[check]);
        self.answer(move |memory| memory.check_one(now, borrowed(&checks)[0]))
    }

    fn check_each(&self, now: Timestamp, checks: &[Check<'_>]) -> Answers {
        let (checks, unanswered) = (owned(checks), self.0.unanswered.lock().unwrap().clone());
        let count = checks.len();
        let answers = self.answer(move |memory| {
            let each = borrowed(&checks).into_iter().map(|check| match unanswered.get(check.key) {
                Some(kind) => Err(trouble(*kind)),
                None => Ok(memory.check_one(now, check)),
            });
            each.collect::<Vec<_>>()
        });
        Box::pin(async move { answers.await.unwrap_or_else(|error| vec![Err(error); count]) })
    }

    fn check_group(&self, now: Timestamp, checks: &[Check<'_>], grouping: Grouping) -> Answer<Vec<Decision>> {
        if let Some(error) = checks.iter().find_map(|check| self.no_answer(check.policy, check.key)) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let checks = owned(checks);
        let lets_pass = self.0.lets_pass.load(Ordering::Relaxed);
        self.answer(move |memory| match lets_pass {
            true => vec![Decision::unmetered(Units::MAX); checks.len()],
            false => memory.check_group(now, &borrowed(&checks), grouping),
        })
    }

    fn adjust(
        &self,
        now: Timestamp,
        policy: &Arc<ActivePolicy>,
        key: &[u8],
        adjustment: Adjustment,
    ) -> Answer<Penalty> {
        if let Some(error) = self.no_answer(policy, key) {
            return Box::pin(std::future::ready(Err(error)));
        }
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
