//! The store: what a limiter asks of it, passed on to the server.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate::store::{Adjustment, Ask, Check, Decisions, Grouping, Snapshot, Store, StoreError};
use tidegate::{ActivePolicy, Decision, Penalty, PlanId, Timestamp, Units};

use crate::address::{Address, AddressError};
use crate::engine::{Engine, Question, Trouble};
use crate::fallback::{Fallback, OnStoreError, Replica};
use crate::link::{Link, Options};
use crate::names::Names;
use crate::prepared::Shelf;

/// Keeps the state of keys in Redis or Valkey, shared by all who use the same server and prefix.
///
/// Every decision is one call of a script, in one round trip, and is the decision that [`tidegate::MemoryStore`]
/// makes of the same checks, to the microsecond. The instant of a check travels with it: the server's clock is
/// not asked.
#[derive(Debug, Clone)]
pub struct RedisStore {
    engine: Arc<Engine>,
    shelf: Arc<Shelf>,
    fallback: Arc<Fallback>,
    name: Arc<str>,
}

/// What happens to a record that is damaged or not tidegate's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamaged {
    /// The check fails, and the error names the record.
    #[default]
    Refuse,
    /// The record is deleted: the key is as one never seen.
    StartAnew,
}

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

impl RedisStore {
    fn question(&self, check: &Check<'_>) -> Question {
        let Check { policy, key, ask } = *check;
        let plan = self.shelf.plan_for(policy, key);
        Question { record: self.engine.names.record(plan.policy().name(), key), plan, ask }
    }

    /// Answers with what `ask` makes of the engine.
    fn answer<T, F>(&self, ask: impl FnOnce(Arc<Engine>) -> F) -> Answer<T>
    where
        F: Future<Output = Result<T, Trouble>> + Send + 'static,
    {
        let (asked, name) = (ask(Arc::clone(&self.engine)), Arc::clone(&self.name));
        Box::pin(async move {
            let failed =
                |trouble: Trouble| StoreError { store: name.to_string(), reason: trouble.to_string() };
            asked.await.map_err(failed)
        })
    }
}

impl Store for RedisStore {
    type Answer<T: Send + 'static> = Answer<T>;

    fn sweep(&self, _: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId> {
        self.shelf.keep(policies);
        // A record says itself under which figures it stands.
        BTreeSet::new()
    }

    fn check_one(&self, now: Timestamp, check: Check<'_>) -> Answer<Decision> {
        let (question, fallback) = (self.question(&check), Arc::clone(&self.fallback));
        self.answer(move |engine| async move { Ok(each(&engine, &fallback, now, &[question]).await?[0]) })
    }

    fn check(&self, now: Timestamp, checks: &[Check<'_>]) -> Answer<Decisions> {
        let questions: Vec<Question> = checks.iter().map(|check| self.question(check)).collect();
        let fallback = Arc::clone(&self.fallback);
        self.answer(move |engine| async move {
            Ok(Decisions::Many(each(&engine, &fallback, now, &questions).await?))
        })
    }

    fn check_group(&self, now: Timestamp, checks: &[Check<'_>], grouping: Grouping) -> Answer<Vec<Decision>> {
        let questions: Vec<Question> = checks.iter().map(|check| self.question(check)).collect();
        let fallback = Arc::clone(&self.fallback);
        self.answer(move |engine| async move {
            match engine.group(now, &questions, grouping).await {
                Ok(decisions) => {
                    fallback.remember(&questions, &decisions, now);
                    Ok(decisions)
                }
                Err(trouble) => {
                    let charged = trouble.outage();
                    let decided = charged.and_then(|it| fallback.group(now, &questions, grouping, it));
                    decided.ok_or(trouble)
                }
            }
        })
    }

    fn adjust(
        &self,
        now: Timestamp,
        policy: &Arc<ActivePolicy>,
        key: &[u8],
        adjustment: Adjustment,
    ) -> Answer<Penalty> {
        let question = self.question(&Check { policy, key, ask: Ask::Exactly(tidegate::Cost::PEEK) });
        self.answer(move |engine| async move {
            match adjustment {
                Adjustment::Reset => engine.forget(now, &question).await,
                Adjustment::Credit(Units::ZERO) | Adjustment::Penalize(Units::ZERO) => {
                    Ok(Penalty::nothing(engine.each(now, &[question]).await.remove(0)?))
                }
                Adjustment::Credit(units) => {
                    let credit =
                        move |plan: &tidegate::Plan, state: &mut _, now| plan.credit(state, now, units);
                    engine.change(now, &question, Box::new(credit)).await
                }
                Adjustment::Penalize(units) => {
                    let charge =
                        move |plan: &tidegate::Plan, state: &mut _, now| plan.penalize(state, now, units);
                    engine.change(now, &question, Box::new(charge)).await
                }
            }
        })
    }

    fn snapshot(&self, now: Timestamp, policy: &Arc<ActivePolicy>, key: &[u8]) -> Answer<Snapshot> {
        let question = self.question(&Check { policy, key, ask: Ask::Exactly(tidegate::Cost::PEEK) });
        self.answer(move |engine| async move {
            let state = engine.look(&question, now).await?.state;
            Ok(Snapshot { plan: question.plan.plan.clone(), state })
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
}

/// The decisions of checks, by the failure policies where the store does not answer.
async fn each(
    engine: &Engine,
    fallback: &Fallback,
    now: Timestamp,
    questions: &[Question],
) -> Result<Vec<Decision>, Trouble> {
    let answers = engine.each(now, questions).await;
    let mut decisions = Vec::with_capacity(answers.len());
    for (question, answer) in questions.iter().zip(answers) {
        decisions.push(match answer {
            Ok(decision) => {
                fallback.remember(std::slice::from_ref(question), &[decision], now);
                decision
            }
            Err(trouble) => {
                let decided = trouble.outage().and_then(|charged| fallback.decide(now, question, charged));
                decided.ok_or(trouble)?
            }
        });
    }
    Ok(decisions)
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
        let questions: Vec<Question> = checks.iter().map(|check| self.question(check)).collect();
        let call = self.engine.wire(now, &questions);
        WireCall { script: call.script.source, keys: call.keys, args: call.args }
    }
}

/// Settings to open a store from; see [`RedisStore::builder`].
#[derive(Debug, Clone)]
pub struct RedisStoreBuilder {
    address: String,
    prefix: String,
    spare: Duration,
    timeout: Duration,
    on_damaged: OnDamaged,
    on_error: OnStoreError,
    on_error_of: HashMap<String, OnStoreError>,
    replica: Replica,
}

impl RedisStore {
    /// Settings to open the store at `address` from.
    pub fn builder(address: impl Into<String>) -> RedisStoreBuilder {
        RedisStoreBuilder {
            address: address.into(),
            prefix: "tg1".to_owned(),
            spare: Duration::from_secs(1),
            timeout: Duration::from_millis(50),
            on_damaged: OnDamaged::Refuse,
            on_error: OnStoreError::default(),
            on_error_of: HashMap::new(),
            replica: Replica::ONLY,
        }
    }
}

impl RedisStoreBuilder {
    /// Puts all keys under `prefix` (`tg1` unless said otherwise): stores under different prefixes share nothing.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Lets records outlive the moment from which their loss changes nothing by this long, in whole milliseconds.
    /// A second unless said otherwise, which is what late stamps need; a run in virtual time, which passes faster
    /// than the server's, wants more.
    #[must_use]
    pub fn spare(mut self, spare: Duration) -> Self {
        self.spare = spare;
        self
    }

    /// Waits for an answer no longer than this: 50 ms unless said otherwise.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What happens to a record that is damaged or not tidegate's: the check fails, unless said otherwise.
    #[must_use]
    pub fn on_damaged(mut self, on_damaged: OnDamaged) -> Self {
        self.on_damaged = on_damaged;
        self
    }

    /// What is answered while the server is not: this instance's share of each limit is enforced, unless said
    /// otherwise here or, for one policy, by [`on_store_error_of`](Self::on_store_error_of).
    #[must_use]
    pub fn on_store_error(mut self, answer: OnStoreError) -> Self {
        self.on_error = answer;
        self
    }

    /// What is answered under the policy of this name while the server does not answer.
    #[must_use]
    pub fn on_store_error_of(mut self, policy: impl Into<String>, answer: OnStoreError) -> Self {
        self.on_error_of.insert(policy.into(), answer);
        self
    }

    /// Which of how many instances this one is, for its share of each limit while the server does not answer: the
    /// only one unless said otherwise, so that each enforces the whole limit.
    #[must_use]
    pub fn replica(mut self, replica: Replica) -> Self {
        self.replica = replica;
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// The address is none, or nobody answers there.
    pub async fn open(self) -> Result<RedisStore, StoreError> {
        let failed = |store: String, reason: String| StoreError { store, reason };
        // The text as given may hold a password.
        let address: Address = self
            .address
            .parse()
            .map_err(|error: AddressError| failed("without an address".to_owned(), error.0))?;
        let link = Link::open(&address, &Options::default())
            .await
            .map_err(|error| failed(error.address, error.reason))?;
        let engine = Engine {
            link,
            names: Names::under(&self.prefix),
            spare: self.spare.as_millis().try_into().unwrap_or(u64::MAX).min(1_000_000_000_000),
            timeout: self.timeout,
            on_damaged: self.on_damaged,
        };
        let fallback = Fallback::new(self.on_error, self.on_error_of, self.replica);
        Ok(RedisStore {
            engine: Arc::new(engine),
            shelf: Arc::default(),
            fallback: Arc::new(fallback),
            name: address.to_string().into(),
        })
    }
}
