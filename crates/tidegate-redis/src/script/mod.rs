//! The scripts that run inside the server.

/// A script: its text, and its name for messages.
#[derive(Debug)]
pub(crate) struct Script {
    /// What it is called in messages.
    pub(crate) name: &'static str,
    /// Lua 5.1, as Redis and Valkey run it.
    pub(crate) source: &'static str,
}

/// One call of a script. Its keys are all in one slot.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) args: Vec<Vec<u8>>,
}
