//! The store that `--store` or the configuration names.

use std::collections::{BTreeMap, HashMap};

use tidegate::store::StoreError;
use tidegate_redis::{Address, OnDamaged, OnStoreError, RedisStore, RedisStoreBuilder};
use tidegate_server::config::{Config, Fault, OnDamage, OnOutage, SharedStore, StoreKind, StoreSettings};

use crate::failure::Failure;

/// Where state is kept: what the flag says, if it is given, else what the settings say.
///
/// # Errors
/// Neither `memory` nor an address.
pub(crate) fn place(flag: Option<&str>, settings: &StoreSettings) -> Result<StoreKind, Failure> {
    // An empty variable is as good as none.
    let (from, kind) = match flag.filter(|flag| !flag.is_empty()) {
        Some("memory") => ("--store", StoreKind::Memory),
        Some(address) => ("--store", StoreKind::Shared(address.to_owned())),
        None => ("the configuration", settings.kind().clone()),
    };
    if let StoreKind::Shared(address) = &kind {
        let wrong = |error| Failure::usage(format_args!("{from}: {error}"));
        address.parse::<Address>().map_err(wrong)?;
    }
    Ok(kind)
}

/// What is wrong with the address of a store in a configuration, in that file's words.
pub(crate) fn judge(address: &str) -> Result<(), Fault> {
    let said = match address.parse::<Address>() {
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    let said = said.strip_prefix("store: ").unwrap_or(&said);
    Err(match said.strip_suffix(')').and_then(|said| said.split_once(" (")) {
        Some((rule, mend)) => Fault::new(rule, mend),
        None => Fault::new(said, "write e.g. redis://host:6379/0"),
    })
}

/// Why a store at `kind` could not do what the configuration asks for, as far as its address tells; if it could not.
pub(crate) fn clash(kind: &StoreKind, config: &Config) -> Option<&'static str> {
    let StoreKind::Shared(address) = kind else { return None };
    let spread = address.parse::<Address>().is_ok_and(|address| address.is_cluster())
        && config.store().shared().partition.is_none();
    (spread && asks_several_as_one(config)).then_some(NOT_AS_ONE)
}

/// Whether some request is decided by several keys as one.
pub(crate) fn asks_several_as_one(config: &Config) -> bool {
    config.envoy().domains().len() > 0
}

pub(crate) const NOT_AS_ONE: &str = "envoy: all descriptors of a request are decided as one, which the store, a cluster, \
                                     can only do for keys in one slot (give redis: {partition: NAME})";

/// The store that `--store` names for a run in virtual time, apart from all others there; `None` for memory. What the
/// configuration says of the store's place is for servers.
pub(crate) fn apart(
    flag: Option<&str>,
    settings: &StoreSettings,
) -> Result<Option<RedisStoreBuilder>, Failure> {
    let StoreKind::Shared(address) = place(flag.or(Some("memory")), settings)? else { return Ok(None) };
    // The classic layout is not exact, and its keys would be the live ones.
    let plain = SharedStore { classic: BTreeMap::new(), ..settings.shared().clone() };
    builder(&address, &plain).map(Some)
}

/// The store of a run, in words, did not answer.
pub(crate) fn silent(error: &StoreError) -> Failure {
    Failure::run(format_args!("--store {}: {}", error.store, error.reason))
}

/// The store at `address`, not opened yet, by these settings.
pub(crate) fn builder(address: &str, settings: &SharedStore) -> Result<RedisStoreBuilder, Failure> {
    let mut builder = RedisStore::builder(address).on_store_error(on_store_error(settings.on_store_error));
    for (policy, answer) in answers(&settings.on_store_error_of) {
        builder = builder.on_store_error_of(policy, answer);
    }
    for (policy, prefix) in &settings.classic {
        builder = builder.classic(policy, prefix);
    }
    if let Some(prefix) = &settings.prefix {
        builder = builder.prefix(prefix);
    }
    if let Some(partition) = &settings.partition {
        builder = builder.partition(partition);
    }
    if let Some(timeout) = settings.timeout {
        builder = builder.timeout(timeout);
    }
    if let Some(replica) = &settings.replica {
        builder = builder.replica(replica.parse().map_err(Failure::usage)?);
    }
    Ok(builder.on_damaged(match settings.on_damaged {
        OnDamage::Refuse => OnDamaged::Refuse,
        OnDamage::StartAnew => OnDamaged::StartAnew,
    }))
}

/// Puts in force what these settings say of outages; the rest of them is for the next start.
pub(crate) fn follow(store: &RedisStore, settings: &SharedStore) {
    store.set_on_store_error(on_store_error(settings.on_store_error), answers(&settings.on_store_error_of));
}

fn answers(of: &BTreeMap<String, OnOutage>) -> HashMap<String, OnStoreError> {
    of.iter().map(|(policy, answer)| (policy.clone(), on_store_error(*answer))).collect()
}

fn on_store_error(answer: OnOutage) -> OnStoreError {
    match answer {
        OnOutage::Allow => OnStoreError::Allow,
        OnOutage::Deny => OnStoreError::Deny,
        OnOutage::Local => OnStoreError::Local,
    }
}
