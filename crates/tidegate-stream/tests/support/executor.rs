//! The least executor there can be: it polls who was woken, in order.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use tidegate::Timestamp;
use tidegate::clock::ManualClock;

use super::millis;

/// A task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id(usize);

pub struct Executor {
    clock: ManualClock,
    tasks: Vec<Task>,
    woken: Arc<Mutex<VecDeque<usize>>>,
}

struct Task {
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    waker: Waker,
}

struct Handle {
    index: usize,
    woken: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Handle {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap().push_back(self.index);
    }
}

impl Executor {
    pub fn new(clock: ManualClock) -> Self {
        Executor { clock, tasks: Vec::new(), woken: Arc::default() }
    }

    /// Starts a task and runs all for as long as there is something to do.
    pub fn spawn(&mut self, future: impl Future<Output = ()> + Send + 'static) -> Id {
        let index = self.tasks.len();
        let waker = Waker::from(Arc::new(Handle { index, woken: Arc::clone(&self.woken) }));
        waker.wake_by_ref();
        self.tasks.push(Task { future: Some(Box::pin(future)), waker });
        self.run();
        Id(index)
    }

    /// Polls who was woken until nobody is.
    pub fn run(&mut self) {
        for _ in 0..1_000_000 {
            let Some(index) = self.woken.lock().unwrap().pop_front() else { return };
            let task = &mut self.tasks[index];
            let Some(future) = &mut task.future else { continue };
            if future.as_mut().poll(&mut Context::from_waker(&task.waker)).is_ready() {
                task.future = None;
            }
        }
        panic!("somebody is busy without end");
    }

    /// Moves the clock on to so many milliseconds after the start, stopping wherever somebody is to be woken.
    pub fn go_to(&mut self, at: u64) {
        self.go_to_instant(millis(at));
    }

    pub fn go_to_instant(&mut self, at: Timestamp) {
        self.run();
        while let Some(wake) = self.clock.next_wake().filter(|wake| *wake <= at) {
            self.clock.set(wake);
            self.run();
        }
        self.clock.set(at);
        self.run();
    }

    /// Goes on until nobody sleeps any more.
    pub fn finish(&mut self) {
        while let Some(wake) = self.clock.next_wake() {
            self.go_to_instant(wake);
        }
    }

    /// Drops a task.
    pub fn cancel(&mut self, id: Id) {
        self.tasks[id.0].future = None;
        self.run();
    }

    pub fn is_done(&self, id: Id) -> bool {
        self.tasks[id.0].future.is_none()
    }
}
