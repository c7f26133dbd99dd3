//! Reading the configuration again while the server runs.

use std::fmt;
use std::sync::Arc;

use tidegate::{Reload, TooManyFigures};

use crate::app::App;
use crate::config::{Config, HeaderFamily, HeaderSettings, LoadError, Source, StoreSettings};
use crate::grpc::Tls;

/// Reads files again and puts them in force, whole or not at all.
#[derive(Debug)]
pub struct Reloader {
    app: Arc<App>,
    source: Source,
    /// The family that the command line asks for, whatever the file says.
    family: Option<HeaderFamily>,
    /// What the file said when the store was built: that is not changed while it runs.
    store: StoreSettings,
    tls: Option<Arc<Tls>>,
    told: Listener,
    guard: Guard,
}

/// Whoever has a say in whether a configuration may be put in force.
struct Guard(Option<Box<Suits>>);

type Suits = dyn Fn(&Config) -> Result<(), String> + Send + Sync;

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Guard" } else { "nobody" })
    }
}

/// Whoever wants to know of a configuration that was put in force.
struct Listener(Option<Box<Told>>);

type Told = dyn Fn(&Config) + Send + Sync;

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Listener" } else { "nobody" })
    }
}

/// Why a reload was refused. The old configuration is in force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file cannot be read, or is wrong.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// More figures than a limiter keeps state under.
    #[error("{file}: {source}")]
    TooManyFigures {
        /// The file's name.
        file: String,
        /// How many.
        source: TooManyFigures,
    },
}

impl Reloader {
    /// Reloads `app` from `source`, of which `loaded` is what was read at the start. `family` goes before the
    /// file's own choice of headers.
    pub fn new(
        app: Arc<App>,
        source: impl Into<Source>,
        loaded: &Config,
        family: Option<HeaderFamily>,
    ) -> Self {
        Reloader {
            app,
            source: source.into(),
            family,
            store: loaded.store().clone(),
            tls: None,
            told: Listener(None),
            guard: Guard(None),
        }
    }

    /// Reads the files of this TLS again too, whatever becomes of the configuration.
    #[must_use]
    pub fn with_tls(self, tls: Option<Arc<Tls>>) -> Self {
        Reloader { tls, ..self }
    }

    /// Refuses a configuration that `suits` has something against: what is right by itself may still be more than the
    /// store can do.
    #[must_use]
    pub fn guarded(self, suits: impl Fn(&Config) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Reloader { guard: Guard(Some(Box::new(suits))), ..self }
    }

    /// Tells `listener` of each configuration that was put in force.
    #[must_use]
    pub fn telling(self, listener: impl Fn(&Config) + Send + Sync + 'static) -> Self {
        Reloader { told: Listener(Some(Box::new(listener))), ..self }
    }

    /// Reads and checks the file, and swaps it in. Says what changed, or why nothing did, in the log too.
    ///
    /// # Errors
    /// Whatever is wrong with the file; the old configuration stays in force.
    pub fn reload(&self) -> Result<Reload, ReloadError> {
        if let Some(Err(error)) = self.tls.as_ref().map(|tls| tls.reload()) {
            tracing::error!("the old certificate stays in force: {error}");
        }
        let file = &self.source;
        let result = self.swap();
        match &result {
            Ok(report) => log(&file.to_string(), report),
            Err(error) => {
                self.app.metrics().reload_failed();
                tracing::error!(file = %file, "reload refused, the old configuration stays in force: {error}");
            }
        }
        result
    }

    fn swap(&self) -> Result<Reload, ReloadError> {
        self.source.require_plain_files()?;
        let config = self.source.load()?;
        if let Guard(Some(suits)) = &self.guard {
            let clash = |reason| LoadError::Clash { file: self.source.to_string(), reason };
            suits(&config).map_err(clash)?;
        }
        let headers = headers(&config, self.family);
        let report = self
            .app
            .reload(config.policies().clone(), headers)
            .map_err(|source| ReloadError::TooManyFigures { file: self.source.to_string(), source })?;
        // After the policies they name.
        self.app.set_gateway(config.gateway().clone());
        self.app.set_envoy(config.envoy().clone());
        if let Listener(Some(told)) = &self.told {
            told(&config);
        }
        let waiting = config.store().waiting(&self.store);
        if !waiting.is_empty() {
            tracing::warn!("changed in the file, and takes effect at the next start: {}", waiting.join(", "));
        }
        Ok(report)
    }
}

/// The headers of a file, unless another family is asked for.
pub(crate) fn headers(config: &Config, family: Option<HeaderFamily>) -> HeaderSettings {
    let headers = config.headers();
    HeaderSettings { family: family.unwrap_or(headers.family), ..headers }
}

fn log(file: &str, report: &Reload) {
    for (policy, limit) in &report.restarted {
        tracing::warn!(
            policy,
            limit,
            "the limit starts anew: its algorithm changed, or it is new in its policy"
        );
    }
    if report.is_empty() {
        tracing::info!(file, "reloaded: the policies are the same");
    } else {
        let names = |names: &[String]| names.join(", ");
        tracing::info!(
            file,
            added = names(&report.added),
            changed = names(&report.changed),
            removed = names(&report.removed),
            "reloaded"
        );
    }
}
