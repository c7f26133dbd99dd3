//! The lock that waiting is built on: the standard library's, with a seam for a model checker.

use std::sync::{self, MutexGuard, PoisonError};

/// A mutex whose holders never leave anything half done: a panic in one of them does not spread.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(test)]
        if let Some(guard) = super::model::lock(&self.0) {
            return guard;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
