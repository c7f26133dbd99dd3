//! The least executor there can be: it polls who was woken, in order, and counts.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use tidegate::clock::{Clock, ManualClock};
use tidegate::{AcquireError, Decision, Timestamp};

pub type Result = std::result::Result<Decision, AcquireError>;

/// A task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id(usize);

pub struct Executor {
    clock: ManualClock,
    tasks: Vec<Task>,
    woken: Arc<Mutex<VecDeque<usize>>>,
}

struct Task {
    future: Option<Pin<Box<dyn Future<Output = Result> + Send>>>,
    handle: Arc<Handle>,
    is_frozen: bool,
    ended: Option<(Timestamp, Result)>,
}

struct Handle {
    index: usize,
    wakes: AtomicUsize,
    woken: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Handle {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.woken.lock().unwrap().push_back(self.index);
    }
}

impl Executor {
    pub fn new(clock: ManualClock) -> Self {
        Executor { clock, tasks: Vec::new(), woken: Arc::default() }
    }

    /// Starts a task: polls it once.
    pub fn spawn(&mut self, future: impl Future<Output = Result> + Send + 'static) -> Id {
        let index = self.tasks.len();
        let handle = Handle { index, wakes: AtomicUsize::new(0), woken: Arc::clone(&self.woken) };
        let future: Pin<Box<dyn Future<Output = Result> + Send>> = Box::pin(future);
        let (future, handle) = (Some(future), Arc::new(handle));
        self.tasks.push(Task { future, handle, is_frozen: false, ended: None });
        self.poll(index);
        self.run();
        Id(index)
    }

    /// Polls who was woken until nobody is.
    pub fn run(&mut self) {
        while let Some(index) = self.next() {
            self.poll(index);
        }
    }

    fn next(&self) -> Option<usize> {
        let mut woken = self.woken.lock().unwrap();
        let index = woken.iter().position(|index| !self.tasks[*index].is_frozen)?;
        woken.remove(index)
    }

    fn poll(&mut self, index: usize) {
        let task = &mut self.tasks[index];
        let Some(future) = &mut task.future else { return };
        let waker = Waker::from(Arc::clone(&task.handle));
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            task.future = None;
            task.ended = Some((self.clock.now(), result));
        }
    }

    /// Moves the clock on to `at`, stopping wherever somebody is to be woken.
    pub fn go_to(&mut self, at: Timestamp) {
        self.run();
        while let Some(wake) = self.clock.next_wake().filter(|wake| *wake <= at) {
            self.clock.set(wake);
            self.run();
        }
        self.clock.set(at);
        self.run();
    }

    /// Drops a task.
    pub fn cancel(&mut self, id: Id) {
        self.tasks[id.0].future = None;
        self.run();
    }

    /// From now on the task is not polled, however often it is woken.
    pub fn freeze(&mut self, id: Id) {
        self.tasks[id.0].is_frozen = true;
    }

    pub fn thaw(&mut self, id: Id) {
        self.tasks[id.0].is_frozen = false;
        self.run();
    }

    /// How the task ended, if it did.
    pub fn result(&self, id: Id) -> Option<&Result> {
        self.tasks[id.0].ended.as_ref().map(|(_, result)| result)
    }

    /// When the task was admitted, if it was.
    pub fn admitted(&self, id: Id) -> Option<Timestamp> {
        let (at, result) = self.tasks[id.0].ended.as_ref()?;
        let decision = result.as_ref().unwrap_or_else(|error| panic!("{id:?} got {error:?}"));
        assert!(decision.is_allowed());
        Some(*at)
    }

    /// How the task came to nothing.
    pub fn error(&self, id: Id) -> &AcquireError {
        self.result(id).unwrap().as_ref().unwrap_err()
    }

    pub fn is_waiting(&self, id: Id) -> bool {
        self.tasks[id.0].future.is_some()
    }

    /// How often the task was woken.
    pub fn wakes(&self, id: Id) -> usize {
        self.tasks[id.0].handle.wakes.load(Ordering::Relaxed)
    }
}
