//! The store: what a limiter asks of it, passed on to the server.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate::clock::FollowerClock;
use tidegate::store::{
    AdHoc, Adjustment, Ask, Check, Grouping, Snapshot, Store, StoreError, Together, amid, patience,
};
use tidegate::{
    ActivePolicy, AdHocCheck, AdHocSpace, Cost, Decision, Penalty, PlanId, Policy, Timestamp, Units,
};

use crate::ad_hoc::{self, Passing};
use crate::engine::Engine;
use crate::fallback::{Fallback, OnStoreError};
use crate::link::Failure;
use crate::link::discipline::Discipline;
use crate::prepared::Shelf;
use crate::question::{Question, Trouble};
use crate::script::Deed;

/// Keeps the state of keys in Redis or Valkey, shared by all who use the same server and prefix.
///
/// Every decision is one call of a script, in one round trip, and is the decision that [`tidegate::MemoryStore`]
/// makes of the same checks, to the microsecond. The instant of a check travels with it: the server's clock is
/// not asked.
#[derive(Debug, Clone)]
pub struct RedisStore {
    engine: Arc<Engine>,
    shelf: Arc<Shelf>,
    passing: Arc<Passing>,
    fallback: Arc<Fallback>,
    discipline: Arc<Discipline>,
    name: Arc<str>,
}

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;
type Answers = Pin<Box<dyn Future<Output = Vec<Result<Decision, StoreError>>> + Send>>;

impl RedisStore {
    pub(crate) fn new(engine: Engine, fallback: Fallback, discipline: Discipline, name: String) -> Self {
        RedisStore {
            shelf: Arc::new(Shelf::new(engine.classic.keys().cloned())),
            passing: Arc::default(),
            engine: Arc::new(engine),
            fallback: Arc::new(fallback),
            discipline: Arc::new(discipline),
            name: name.into(),
        }
    }

    /// Where the server is, without its password.
    pub fn address(&self) -> &str {
        &self.name
    }

    /// A clock that follows the server's, for the limiter over this store: whatever the clocks of the machines say,
    /// the instants that instances send then agree within the time an answer takes. It follows for as long as the
    /// store lives.
    pub fn clock(&self) -> FollowerClock {
        self.discipline.clock()
    }

    /// By how much [`clock`](Self::clock) may have differed from the server's when it started: half the time that an
    /// answer took.
    pub fn clock_error(&self) -> Duration {
        self.discipline.error()
    }

    /// Whether keys are spread over the slots of a cluster, so that checks of several keys cannot be decided as one.
    pub fn is_spread(&self) -> bool {
        self.engine.link.is_cluster() && !self.engine.names.are_together()
    }

    /// Deletes what is kept of keys under policies as they are now, and of nothing else.
    ///
    /// # Errors
    /// The server does not answer, or refuses; some may be gone by then.
    pub async fn remove(&self, keys: &[(&Policy, &[u8])]) -> Result<(), StoreError> {
        const AT_ONCE: usize = 500;
        for keys in keys.chunks(AT_ONCE) {
            let names: Vec<Vec<u8>> =
                keys.iter().map(|(policy, key)| self.engine.names.record(policy.name(), key)).collect();
            let failed = |failure: Failure| told(&self.name, &failure.into());
            self.engine.link.delete(&names, self.engine.timeout).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Decides checks that have each an instant of their own, in order, each for itself: traffic that was recorded
    /// and is put to the store by the hundred. Those of one key are decided one after the other; the others share
    /// calls as well as they can, and come in no order.
    ///
    /// # Errors
    /// Why one of them has no answer. The others may have been charged, and that one too.
    pub fn check_timed(
        &self,
        checks: &[(Timestamp, Check<'_>)],
    ) -> impl Future<Output = Result<Vec<Decision>, StoreError>> + Send + 'static {
        let questions: Vec<Question> = checks.iter().map(|(now, check)| self.question(*now, check)).collect();
        let fallback = Arc::clone(&self.fallback);
        self.answer(move |engine| async move {
            let answers = engine.each(&questions).await.into_iter().zip(&questions);
            answers.map(|(answer, question)| decided(answer, question, &fallback)).collect()
        })
    }

    /// Puts other answers to an outage in force: `otherwise` for the policies that `of` does not name.
    pub fn set_on_store_error(&self, otherwise: OnStoreError, of: HashMap<String, OnStoreError>) {
        self.fallback.set(otherwise, of);
    }

    fn question(&self, now: Timestamp, check: &Check<'_>) -> Question {
        let Check { policy, key, ask } = *check;
        let plan = self.shelf.plan_for(policy, key);
        let name = policy.policy().name();
        let record = match self.engine.classic.get(name) {
            Some(prefix) => [prefix.as_bytes(), key].concat(),
            None => self.engine.names.record(name, key),
        };
        Question { record, plan, ask, now, within: self.within() }
    }

    fn ad_hoc(&self, now: Timestamp, check: &AdHocCheck<'_>) -> Question {
        let AdHocCheck { space, key, limit, cost } = *check;
        let (record, plan) = (self.engine.names.ad_hoc(space, key), self.passing.plan_of(limit));
        Question { record, plan, ask: Ask::Exactly(cost), now, within: self.within() }
    }

    /// How long an answer is waited for: whoever asks may have less time than the store would take.
    fn within(&self) -> Duration {
        patience().map_or(self.engine.timeout, |left| left.min(self.engine.timeout))
    }

    /// Decides questions as one.
    fn grouped(&self, now: Timestamp, questions: Vec<Question>, grouping: Grouping) -> Answer<Vec<Decision>> {
        let fallback = Arc::clone(&self.fallback);
        self.answer(move |engine| async move {
            let decisions = engine.group(now, &questions, grouping).await;
            if let Ok(decisions) = &decisions {
                fallback.remember(&questions, decisions, now);
            }
            fallback.instead(decisions, now, |charged| fallback.group(now, &questions, grouping, charged))
        })
    }

    /// Answers each of `questions` with what was `asked` of it.
    fn answer_each<F>(&self, questions: Arc<[Question]>, asked: F) -> Answers
    where
        F: Future<Output = Vec<Result<Decision, Trouble>>> + Send + 'static,
    {
        let (fallback, name) = (Arc::clone(&self.fallback), Arc::clone(&self.name));
        Box::pin(async move {
            let answers = asked.await.into_iter().zip(&*questions);
            let decided = answers.map(|(answer, question)| decided(answer, question, &fallback));
            decided.map(|decided| decided.map_err(|trouble| told(&name, &trouble))).collect()
        })
    }

    /// Changes a key's state outright.
    fn adjusted(&self, question: Question, adjustment: Adjustment) -> Answer<Penalty> {
        let fallback = Arc::clone(&self.fallback);
        self.answer(move |engine| async move {
            let now = question.now;
            let done = match adjustment {
                Adjustment::Reset => engine.forget(now, &question).await,
                Adjustment::Credit(Units::ZERO) | Adjustment::Penalize(Units::ZERO) => {
                    let peeked = engine.each(std::slice::from_ref(&question)).await.remove(0);
                    peeked.map(Penalty::nothing)
                }
                Adjustment::Credit(units) => engine.change(now, &question, Deed::Credit(units.get())).await,
                Adjustment::Penalize(units) => engine.change(now, &question, Deed::Charge(units.get())).await,
            };
            if let Ok(done) = &done {
                if adjustment == Adjustment::Reset {
                    fallback.forget(&question.record);
                }
                fallback.remember(std::slice::from_ref(&question), &[done.after], now);
            }
            fallback.instead(done, now, |charged| fallback.adjust(now, &question, adjustment, charged))
        })
    }

    /// Answers with what `ask` makes of the engine.
    fn answer<T, F>(&self, ask: impl FnOnce(Arc<Engine>) -> F) -> Answer<T>
    where
        F: Future<Output = Result<T, Trouble>> + Send + 'static,
    {
        let (asked, name) = (ask(Arc::clone(&self.engine)), Arc::clone(&self.name));
        Box::pin(async move { asked.await.map_err(|trouble| told(&name, &trouble)) })
    }
}

/// What is wrong with the store of this name, as callers are told.
fn told(name: &str, trouble: &Trouble) -> StoreError {
    StoreError::new(trouble.kind(), name, trouble.to_string())
}

impl Store for RedisStore {
    type Answer<T: Send + 'static> = Answer<T>;
    type Answers = Answers;

    fn sweep(&self, _: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId> {
        self.shelf.keep(policies);
        // A record says itself under which figures it stands.
        BTreeSet::new()
    }

    fn check_one(&self, now: Timestamp, check: Check<'_>) -> Answer<Decision> {
        let (question, fallback) = (self.question(now, &check), Arc::clone(&self.fallback));
        self.answer(move |engine| async move {
            decided(engine.gathered(question.clone()).await, &question, &fallback)
        })
    }

    fn check_each(&self, now: Timestamp, checks: &[Check<'_>]) -> Answers {
        let questions: Arc<[Question]> = checks.iter().map(|check| self.question(now, check)).collect();
        let (engine, asked) = (Arc::clone(&self.engine), Arc::clone(&questions));
        self.answer_each(questions, async move { engine.each(&asked).await })
    }

    fn check_group(&self, now: Timestamp, checks: &[Check<'_>], grouping: Grouping) -> Answer<Vec<Decision>> {
        let questions = checks.iter().map(|check| self.question(now, check)).collect();
        self.grouped(now, questions, grouping)
    }

    fn adjust(
        &self,
        now: Timestamp,
        policy: &Arc<ActivePolicy>,
        key: &[u8],
        adjustment: Adjustment,
    ) -> Answer<Penalty> {
        self.adjusted(self.question(now, &Check { policy, key, ask: Ask::Exactly(Cost::PEEK) }), adjustment)
    }

    fn snapshot(&self, now: Timestamp, policy: &Arc<ActivePolicy>, key: &[u8]) -> Answer<Snapshot> {
        let question = self.question(now, &Check { policy, key, ask: Ask::Exactly(Cost::PEEK) });
        let fallback = Arc::clone(&self.fallback);
        self.answer(move |engine| async move {
            let state = engine.state(&question, now).await;
            let plan = question.plan.plan.clone();
            fallback
                .instead(state.map(|state| Snapshot { plan, state }), now, |_| fallback.snapshot(&question))
        })
    }

    fn ready<T: Send + 'static>(value: T) -> Answer<T> {
        Box::pin(std::future::ready(Ok(value)))
    }

    fn map<T, U>(answer: Answer<T>, go_on: impl FnOnce(T) -> U + Send + 'static) -> Answer<U>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        Box::pin(async move { Ok(go_on(answer.await?)) })
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

impl AdHoc for RedisStore {
    fn check_ad_hoc(&self, now: Timestamp, checks: &[AdHocCheck<'_>]) -> Answers {
        let questions: Arc<[Question]> = checks.iter().map(|check| self.ad_hoc(now, check)).collect();
        let (engine, asked) = (Arc::clone(&self.engine), Arc::clone(&questions));
        self.answer_each(questions, async move {
            match &asked[..] {
                [question] => vec![engine.gathered(question.clone()).await],
                _ => ad_hoc::each(&engine, &asked).await,
            }
        })
    }

    fn credit_ad_hoc(&self, now: Timestamp, of: AdHocCheck<'_>, units: Units) -> Answer<Decision> {
        let question = self.ad_hoc(now, &AdHocCheck { cost: Cost::PEEK, ..of });
        Self::map(self.adjusted(question, Adjustment::Credit(units)), |done| done.after)
    }

    fn forget_ad_hoc(&self, space: AdHocSpace, keys: &[&[u8]]) -> Answer<u64> {
        let records: Vec<Vec<u8>> = keys.iter().map(|key| self.engine.names.ad_hoc(space, key)).collect();
        let fallback = Arc::clone(&self.fallback);
        self.answer(move |engine| async move {
            let removed = engine.link.delete(&records, engine.timeout).await?;
            records.iter().for_each(|record| fallback.forget(record));
            Ok(removed)
        })
    }

    fn check_group_with(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        ad_hoc: &[AdHocCheck<'_>],
        grouping: Grouping,
    ) -> Answer<Together> {
        let count = ad_hoc.len();
        let brought = ad_hoc.iter().map(|check| self.ad_hoc(now, check));
        let questions = brought.chain(checks.iter().map(|check| self.question(now, check))).collect();
        Self::map(self.grouped(now, questions, grouping), move |mut ad_hoc| {
            let policies = ad_hoc.split_off(count);
            Together { policies, ad_hoc }
        })
    }
}

/// The decision of a check, by its failure policy where the store does not answer.
fn decided(
    answer: Result<Decision, Trouble>,
    question: &Question,
    fallback: &Fallback,
) -> Result<Decision, Trouble> {
    if let Ok(decision) = &answer {
        fallback.remember(std::slice::from_ref(question), &[*decision], question.now);
    }
    fallback.instead(answer, question.now, |charged| fallback.decide(question.now, question, charged))
}

/// What would be sent for checks: for measurements that leave the client out.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct WireCall {
    pub script: &'static str,
    pub keys: Vec<Vec<u8>>,
    pub args: Vec<Vec<u8>>,
}

impl RedisStore {
    #[doc(hidden)]
    pub fn wire(&self, now: Timestamp, checks: &[Check<'_>]) -> WireCall {
        let questions: Vec<Question> = checks.iter().map(|check| self.question(now, check)).collect();
        let call = self.engine.wire(&questions);
        WireCall { script: call.script.source, keys: call.keys, args: call.args }
    }
}
