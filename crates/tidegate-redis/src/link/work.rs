//! What is to be done at a server.

use redis::Cmd;

use super::Failure;
use super::answer::Answer;
use super::node::{Node, Sent};
use crate::script::Call;

/// Something to be done at whichever server is the right one, and once more at another where an answer proves that
/// it was not.
pub(super) trait Work: Sync {
    /// Does it at `node`, `before` it the command that must stand just before.
    fn at(&self, node: &Node, before: Option<&Cmd>) -> impl Future<Output = Result<Answer, Failure>> + Send;
}

/// A script is to be run.
pub(super) struct Run<'a> {
    pub call: &'a Call,
    pub sent: &'a Sent,
}

impl Work for Run<'_> {
    async fn at(&self, node: &Node, before: Option<&Cmd>) -> Result<Answer, Failure> {
        node.call(before, self.call, self.sent).await
    }
}

/// A command is to be sent.
pub(super) struct Plain<'a> {
    pub command: &'a Cmd,
    pub sent: &'a Sent,
}

impl Work for Plain<'_> {
    async fn at(&self, node: &Node, before: Option<&Cmd>) -> Result<Answer, Failure> {
        node.command(before, self.command, self.sent).await
    }
}
