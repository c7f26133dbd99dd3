//! The configuration as meant: nothing in it can be wrong.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tidegate::{Limit, Policy, PolicySet, Rate};

use super::envoy;
use super::envoy::ratelimit::Translated;
use super::errors::{ConfigErrors, Fault, Place, Problems};
use super::policies::policy;
use super::raw::{RawConfig, RawHeaders};
use super::reader::Cursor;
use super::remote::AddressRule;
use super::rules::{self, Gateway};
use super::store::{StoreKind, StoreSettings, judge, store_settings};
use super::warnings::Warning;
use super::yaml::{self, Value};
use crate::envoy::EnvoyRules;

/// The largest file that is read: 4 MiB.
pub const MAX_FILE_BYTES: usize = 4 << 20;

/// A configuration that has been checked whole.
///
/// ```
/// use tidegate_server::config::Config;
/// let text = "policies: {api: {limits: [{algorithm: gcra, rate: 10/s, burst: 5}]}}";
/// let config = Config::parse(text, "tidegate.yaml").unwrap();
/// assert_eq!(config.policies().get("api").unwrap().limit_name(0), "gcra");
///
/// let wrong = text.replace("10/s", "10/sek");
/// let errors = Config::parse(&wrong, "tidegate.yaml").unwrap_err();
/// assert_eq!(
///     errors.to_string(),
///     "tidegate.yaml:1: policies.api.limits[0].rate: \"10/sek\": unknown unit \"sek\" \
///      (use us, ms, s, min, h, d, w)"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    policies: PolicySet,
    store: StoreSettings,
    headers: HeaderSettings,
    gateway: Gateway,
    envoy: EnvoyRules,
    /// What may surprise in files of other programs.
    remarks: Vec<Warning>,
}

/// Which headers tell clients where they stand, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeaderSettings {
    /// Which headers.
    pub family: HeaderFamily,
    /// What `X-RateLimit-Reset` counts from.
    pub reset: ResetStyle,
}

/// The families of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeaderFamily {
    /// `X-RateLimit-*` and those of the IETF draft.
    #[default]
    Both,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    XRateLimit,
    /// `RateLimit-Policy` and `RateLimit`.
    Ietf,
    /// Neither.
    None,
}

/// What `X-RateLimit-Reset` counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResetStyle {
    /// Seconds from now.
    #[default]
    Delta,
    /// Seconds since 1970.
    Epoch,
}

/// Why a file gives no configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be read.
    #[error("{file}: {source}")]
    Unreadable {
        /// The file's name.
        file: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// Its content is wrong.
    #[error(transparent)]
    Invalid(#[from] ConfigErrors),
    /// It does not go with another file.
    #[error("{file}: {reason}")]
    Clash {
        /// The file's or folder's name.
        file: String,
        /// Why not.
        reason: String,
    },
}

impl Config {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// A file that cannot be read, and all that is wrong with its content.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        Self::load_with(path, any_address)
    }

    /// As [`load`](Self::load), with a closer look at the store's address.
    ///
    /// # Errors
    /// A file that cannot be read, and all that is wrong with its content.
    pub fn load_with(path: &Path, addresses: AddressRule) -> Result<Self, LoadError> {
        let file = path.display().to_string();
        match File::open(path) {
            Ok(content) => Self::read_with(content, &file, addresses),
            Err(source) => Err(LoadError::Unreadable { file, source }),
        }
    }

    /// Reads and checks `content` to its end; `file` is the name errors give it.
    ///
    /// # Errors
    /// Content that cannot be read, and all that is wrong with it.
    pub fn read(content: impl Read, file: &str) -> Result<Self, LoadError> {
        Self::read_with(content, file, any_address)
    }

    /// As [`read`](Self::read), with a closer look at the store's address.
    ///
    /// # Errors
    /// Content that cannot be read, and all that is wrong with it.
    pub fn read_with(content: impl Read, file: &str, addresses: AddressRule) -> Result<Self, LoadError> {
        let mut bytes = Vec::new();
        // One byte past what is allowed is enough to know that it is too much.
        let read = content.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes);
        match read {
            Ok(_) => Ok(Self::of_text(text_of(&bytes, file)?, file, addresses)?),
            Err(source) => Err(LoadError::Unreadable { file: file.to_owned(), source }),
        }
    }

    /// Checks `bytes`; `file` is the name errors give them.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn parse_bytes(bytes: &[u8], file: &str) -> Result<Self, ConfigErrors> {
        Self::of_text(text_of(bytes, file)?, file, any_address)
    }

    /// Checks `text`; `file` is the name errors give it.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str, file: &str) -> Result<Self, ConfigErrors> {
        Self::parse_bytes(text.as_bytes(), file)
    }

    fn of_text(text: &str, file: &str, addresses: AddressRule) -> Result<Self, ConfigErrors> {
        let root =
            yaml::parse(text).map_err(|broken| ConfigErrors::broken(file, broken.place, broken.fault))?;
        if matches!(root.value, Value::Nothing) {
            let mend = "give at least one policy; to run the built-in one give no file";
            return Err(ConfigErrors::broken(file, Place::START, Fault::new("the file is empty", mend)));
        }
        let mut problems = Problems::default();
        let root = Cursor::root(&root);
        let raw = RawConfig::read(&root, &mut problems);
        if let Some(store) = raw.as_ref().and_then(|raw| raw.store.given()) {
            judge(store, addresses, &mut problems);
        }
        let config = raw.and_then(|raw| check(&raw, &root, &mut problems));
        config.filter(|_| problems.none()).ok_or_else(|| problems.into_errors(file))
    }

    /// The policies: at least one.
    pub fn policies(&self) -> &PolicySet {
        &self.policies
    }

    /// Where state is kept, and its bounds.
    pub fn store(&self) -> &StoreSettings {
        &self.store
    }

    /// The same with state kept there, whatever the file says.
    #[must_use]
    pub fn kept_in(self, kind: StoreKind) -> Self {
        Config { store: self.store.with_kind(kind), ..self }
    }

    /// Which headers tell clients where they stand.
    pub fn headers(&self) -> HeaderSettings {
        self.headers
    }

    /// What Envoy's descriptors meet.
    pub fn envoy(&self) -> &EnvoyRules {
        &self.envoy
    }

    /// The same, and what `files` of another program mean.
    ///
    /// # Errors
    /// A domain that both have.
    pub fn with_ratelimit(mut self, files: Translated) -> Result<Self, String> {
        let twin = |domain| format!("the domain {domain:?} is in the configuration file too (remove one)");
        self.envoy.absorb(files.rules).map_err(twin)?;
        let own = self.policies.iter().map(|policy| Policy::clone(policy));
        let all = own.chain(files.policies);
        self.policies = PolicySet::new(all).map_err(|error| error.to_string())?;
        self.remarks.extend(files.remarks);
        Ok(self)
    }

    pub(super) fn remarks(&self) -> &[Warning] {
        &self.remarks
    }

    /// What proxies may ask about, and which are believed.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }
}

impl Default for Config {
    /// What runs without a file: one policy `default`, a token bucket of 100 refilled at 10/s.
    fn default() -> Self {
        let limit = Limit::token_bucket(100, Rate::per_second(10));
        let policy = Policy::single("default", limit).expect("the name is printable ASCII");
        Config {
            policies: PolicySet::from(policy),
            store: StoreSettings::default(),
            headers: HeaderSettings::default(),
            gateway: Gateway::default(),
            envoy: EnvoyRules::default(),
            remarks: Vec::new(),
        }
    }
}

impl HeaderFamily {
    /// The word the file uses.
    pub const fn name(self) -> &'static str {
        match self {
            HeaderFamily::Both => "both",
            HeaderFamily::XRateLimit => "x-ratelimit",
            HeaderFamily::Ietf => "ietf",
            HeaderFamily::None => "none",
        }
    }
}

impl ResetStyle {
    /// The word the file uses.
    pub const fn name(self) -> &'static str {
        match self {
            ResetStyle::Delta => "delta",
            ResetStyle::Epoch => "epoch",
        }
    }
}

/// The text of a file that is not too large.
pub(super) fn text_of<'b>(bytes: &'b [u8], file: &str) -> Result<&'b str, ConfigErrors> {
    if bytes.len() > MAX_FILE_BYTES {
        let rule = format!("larger than {} MiB", MAX_FILE_BYTES >> 20);
        let fault = Fault::new(rule, "give whole groups of keys figures by prefix, as in \"acme:*\"");
        return Err(ConfigErrors::broken(file, Place::START, fault));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        let place = Place { line: line as u64 + 1, column: 1 };
        ConfigErrors::broken(file, place, Fault::new("not UTF-8", "save the file as UTF-8"))
    })
}

/// Any address will do: nobody is there who would know better.
fn any_address(_: &str) -> Result<(), Fault> {
    Ok(())
}

fn check(raw: &RawConfig, root: &Cursor<'_>, problems: &mut Problems) -> Option<Config> {
    let Some(policies) = &raw.policies else {
        problems
            .add(&root.site(), Fault::new("policies is missing", "give at least one: policies: {api: ...}"));
        return None;
    };
    let checked: Vec<_> = policies.iter().map(|(name, raw)| policy(name, raw, problems)).collect();
    let set = PolicySet::new(checked.into_iter().flatten());
    let policies = set.map_err(|error| {
        problems.add(&root.site(), Fault::new(error.to_string(), "rename one"));
    });
    // Rules are told of their own faults, whatever is wrong with the policies.
    let names: Vec<&str> = raw.policies.iter().flatten().map(|(name, _)| &*name.value).collect();
    let rules = rules::rules(&raw.rules, &names, problems);
    let proxies = raw.trusted_proxies.as_ref().map(|raw| rules::proxies(raw, problems));
    let envoy = envoy::rules(&raw.envoy, &names, problems);
    Some(Config {
        gateway: Gateway { rules, proxies: proxies.unwrap_or_default() },
        envoy,
        store: store_settings(raw, policies.as_ref().ok(), problems),
        policies: policies.ok()?,
        headers: raw.headers.as_ref().map(header_settings).unwrap_or_default(),
        remarks: Vec::new(),
    })
}

fn header_settings(raw: &RawHeaders) -> HeaderSettings {
    HeaderSettings {
        family: raw.family.value().unwrap_or_default(),
        reset: raw.reset.value().unwrap_or_default(),
    }
}
