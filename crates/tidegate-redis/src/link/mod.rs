//! The way to the servers: connections, topologies, and what became of a call.

use std::time::Duration;

use crate::script::Call;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// It was proven not to have run: never sent, or the server said so.
    #[error("{0}")]
    NotRun(String),
    /// It may have run, once.
    #[error("{0}")]
    MayHaveRun(String),
    /// The server ran or read it and refused: an error of the script's, of the data it met, or of rights.
    #[error("{0}")]
    Refused(String),
}

/// One multiplexed connection to one server.
#[derive(Debug)]
pub(crate) struct Link {
    connection: redis::aio::MultiplexedConnection,
}

impl Link {
    pub(crate) async fn open_url(url: &str) -> Result<Link, String> {
        let client = redis::Client::open(url).map_err(|error| error.to_string())?;
        let connection =
            client.get_multiplexed_async_connection().await.map_err(|error| error.to_string())?;
        Ok(Link { connection })
    }

    pub(crate) async fn call(&self, call: &Call, within: Duration) -> Result<redis::Value, Failure> {
        let script = redis::Script::new(call.script.source);
        let mut invocation = script.prepare_invoke();
        for key in &call.keys {
            invocation.key(key.as_slice());
        }
        for arg in &call.args {
            invocation.arg(arg.as_slice());
        }
        let mut connection = self.connection.clone();
        match tokio::time::timeout(within, invocation.invoke_async(&mut connection)).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) if error.is_connection_refusal() => Err(Failure::NotRun(error.to_string())),
            Ok(Err(error)) if error.code().is_some() => Err(Failure::Refused(error.to_string())),
            Ok(Err(error)) => Err(Failure::MayHaveRun(error.to_string())),
            Err(_) => Err(Failure::MayHaveRun(format!("{} was not answered in time", call.script.name))),
        }
    }
}
