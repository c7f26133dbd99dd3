//! The lock that waiting is built on: the standard library's, with a seam for a model checker.

use std::ops::{Deref, DerefMut};
use std::sync::{self, PoisonError};

/// A mutex whose holders never leave anything half done: a panic in one of them does not spread.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    lock: sync::Mutex<T>,
    #[cfg(test)]
    modelled: super::model::Modelled,
}

pub(crate) struct MutexGuard<'a, T> {
    guard: sync::MutexGuard<'a, T>,
    #[cfg(test)]
    _modelled: super::model::ModelledGuard<'a>,
}

impl<T> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(test)]
        let _modelled = self.modelled.lock();
        MutexGuard {
            guard: self.lock.lock().unwrap_or_else(PoisonError::into_inner),
            #[cfg(test)]
            _modelled,
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
