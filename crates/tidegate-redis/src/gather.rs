//! Checks that come while others of their plan are on their way go out together, as soon as one of those is back.
//!
//! A call of a script costs the server more than the check in it. So under load many checks share a call, and without
//! load each goes at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate::Decision;
use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::link::Failure;
use crate::question::{Question, Trouble};

/// So many calls of one plan are on their way before checks wait for one to come back.
const MOST_CALLS: usize = 4;
/// So many checks go out together.
const MOST_TOGETHER: usize = 64;

/// The checks that wait, by their plans.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    lines: Mutex<HashMap<usize, Line>>,
}

/// Those of one plan.
#[derive(Debug, Default)]
struct Line {
    /// Calls on their way.
    calls: usize,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    question: Question,
    answer: oneshot::Sender<Result<Decision, Trouble>>,
}

/// A call on its way. Dropped, it makes room for another, also if nobody wants its answer any more.
struct OnItsWay {
    engine: Arc<Engine>,
    line: usize,
}

impl Gather {
    fn lines(&self) -> MutexGuard<'_, HashMap<usize, Line>> {
        // Nothing in between can panic.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who goes next, now that a call has come back; those whom nobody waits for any more do not go.
    fn next(&self, line: usize) -> Vec<Waiting> {
        let mut lines = self.lines();
        let Some(kept) = lines.get_mut(&line) else { return Vec::new() };
        kept.waiting.retain(|waiting| !waiting.answer.is_closed());
        let together = kept.waiting.len().min(MOST_TOGETHER);
        let next = kept.waiting.drain(..together).collect::<Vec<_>>();
        if next.is_empty() {
            kept.calls -= 1;
            if kept.calls == 0 {
                lines.remove(&line);
            }
        }
        next
    }
}

impl Engine {
    /// Decides one check, with others that wait at the same moment.
    pub(crate) async fn gathered(self: Arc<Self>, question: Question) -> Result<Decision, Trouble> {
        // In a cluster few share a slot, and without a script of its own a plan has a call for each instant of a record.
        if question.plan.swift.is_none() || self.link.is_cluster() {
            return self.each(&[question]).await.remove(0);
        }
        let (line, within) = (Arc::as_ptr(&question.plan) as usize, question.within);
        let waits = {
            let mut lines = self.gather.lines();
            let kept = lines.entry(line).or_default();
            if kept.calls < MOST_CALLS {
                kept.calls += 1;
                None
            } else {
                let (answer, answered) = oneshot::channel();
                kept.waiting.push(Waiting { question: question.clone(), answer });
                Some(answered)
            }
        };
        let Some(answered) = waits else {
            let _on_its_way = OnItsWay { engine: Arc::clone(&self), line };
            return self.each(&[question]).await.remove(0);
        };
        match tokio::time::timeout(within, answered).await {
            Ok(Ok(answer)) => answer,
            // It may have gone out meanwhile.
            _ => Err(Failure::MayHaveRun(format!("no answer within {within:?}")).into()),
        }
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        let next = self.engine.gather.next(self.line);
        if next.is_empty() {
            return;
        }
        // In this one's place, and by a task of its own: nobody else may be there to wait for all of them.
        let on_its_way = OnItsWay { engine: Arc::clone(&self.engine), line: self.line };
        self.engine.runtime.spawn(async move {
            let (questions, answers): (Vec<_>, Vec<_>) =
                next.into_iter().map(|waiting| (waiting.question, waiting.answer)).unzip();
            for (decided, answer) in on_its_way.engine.each(&questions).await.into_iter().zip(answers) {
                // Whoever has gone away does not want it.
                let _ = answer.send(decided);
            }
            drop(on_its_way);
        });
    }
}
