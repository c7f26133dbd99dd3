use std::sync::{Mutex, MutexGuard};
pub(super) fn lock<T>(_: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    None
}
