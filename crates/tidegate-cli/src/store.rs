//! The store that `--store` or the configuration names.

use std::collections::{BTreeMap, HashMap};

use tidegate_redis::{Address, OnDamaged, OnStoreError, RedisStore, RedisStoreBuilder};
use tidegate_server::config::{OnDamage, OnOutage, SharedStore, StoreKind, StoreSettings};

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
