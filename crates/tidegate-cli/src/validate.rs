//! `tidegate validate`: what a configuration file means, in words, or all that is wrong with it.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::store;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tidegate::{KeyPattern, Limit, OnFull, Plan, Policy};
use tidegate_server::config::{
    Config, ConfigErrors, LoadError, Severity, StoreKind, descriptors_in_words, headers_in_words,
    limit_in_words, proxies_in_words, rule_in_words, show_period, show_rate, store_in_words, warnings,
};

/// Overrides and remarks shown of each kind in text; JSON has them all.
const MOST_SHOWN: usize = 100;

const HELP: &str = "\
Examples:
  tidegate validate tidegate.yaml
  generate-config | tidegate validate -
  tidegate validate --store redis+cluster://a,b,c tidegate.yaml   would it do there?
  tidegate validate --format json tidegate.yaml | jq .errors

The store, the file's or that of --store, is looked at as far as its address tells; nobody connects to it.

Exit codes:
  0  the file is right, whatever there is to remark
  1  it is wrong; every error is told with its line
  2  wrong usage, or a file that cannot be read";

/// Check a configuration file and say what it means
#[derive(Debug, Clone, Args)]
#[command(after_long_help = HELP)]
pub struct ValidateArgs {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where state would be kept, in place of the file's choice: `memory`, or an address
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// How to say it
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// How to say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// In words: what was understood on standard output, errors on standard error
    Text,
    /// One JSON object on standard output
    Json,
}

/// Checks the file and says what it means or what is wrong with it.
pub fn run(args: &ValidateArgs) -> ExitCode {
    let loaded = match load(&args.file) {
        Ok(config) => match store::place(args.store.as_deref(), config.store()) {
            Ok(kind) => Ok(config.kept_in(kind)),
            Err(failure) => return failure.report(),
        },
        Err(error) => Err(error),
    };
    if let Ok(config) = &loaded
        && let Some(clash) = store::clash(config.store().kind(), config)
    {
        return does_not_suit(clash, &name_of(&args.file), args.format);
    }
    let (code, out, err) = match (&loaded, args.format) {
        (Err(LoadError::Invalid(errors)), Format::Text) => (1, String::new(), format!("{errors}\n")),
        (Err(LoadError::Invalid(errors)), Format::Json) => {
            (1, pretty(&errors_in_json(errors)), String::new())
        }
        (Err(error), _) => (2, String::new(), format!("tidegate: {error}\n")),
        (Ok(config), Format::Text) => (0, in_text(config, &name_of(&args.file)), String::new()),
        (Ok(config), Format::Json) => (0, pretty(&in_json(config, &name_of(&args.file))), String::new()),
    };
    // If nobody reads it, the code still tells.
    let _ = io::stdout().write_all(out.as_bytes());
    let _ = io::stderr().write_all(err.as_bytes());
    ExitCode::from(code)
}

/// The store cannot do what the file asks for.
fn does_not_suit(clash: &str, file: &str, format: Format) -> ExitCode {
    match format {
        Format::Text => drop(writeln!(io::stderr(), "{file}: {clash}")),
        Format::Json => {
            let (path, rule) = clash.split_once(": ").unwrap_or(("store", clash));
            let errors = json!([{ "path": path, "rule": rule }]);
            let told = json!({ "file": file, "valid": false, "count": 1, "errors": errors });
            drop(io::stdout().write_all(pretty(&told).as_bytes()));
        }
    }
    ExitCode::from(1)
}

fn load(file: &Path) -> Result<Config, LoadError> {
    match file.to_str() {
        Some("-") => Config::read_with(io::stdin().lock(), &name_of(file), store::judge),
        _ => Config::load_with(file, store::judge),
    }
}

fn name_of(file: &Path) -> String {
    if file == Path::new("-") { "<stdin>".to_owned() } else { file.display().to_string() }
}

fn in_text(config: &Config, file: &str) -> String {
    let mut text = format!("{file} is right\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "state    {}", store_in_words(config.store()));
    let _ = writeln!(text, "headers  {}", headers_in_words(&config.headers()));
    for policy in config.policies().iter() {
        let _ = writeln!(text, "\npolicy {}", policy.name());
        policy_in_text(policy, &mut text);
    }
    rules_in_text(config, &mut text);
    envoy_in_text(config, &mut text);
    let remarks = warnings(config);
    for severity in [Severity::Warning, Severity::Note] {
        let of_kind: Vec<String> =
            remarks.iter().filter(|it| it.severity() == severity).map(ToString::to_string).collect();
        if !of_kind.is_empty() {
            let _ = writeln!(text, "\n{}", of_kind[..of_kind.len().min(MOST_SHOWN)].join("\n"));
        }
        and_more(of_kind.len(), &format!("{severity}s"), &mut text);
    }
    text
}

fn rules_in_text(config: &Config, text: &mut String) {
    let gateway = config.gateway();
    if gateway.rules().is_empty() {
        return;
    }
    let _ = writeln!(text, "\nproxies  {}", proxies_in_words(gateway.proxies()));
    for rule in gateway.rules().iter().take(MOST_SHOWN) {
        let _ = writeln!(text, "rule {}\n  {}", rule.name(), rule_in_words(rule));
    }
    and_more(gateway.rules().len(), "rules", text);
}

fn envoy_in_text(config: &Config, text: &mut String) {
    for (domain, descriptors) in config.envoy().domains() {
        let _ = writeln!(text, "\nenvoy domain {domain}");
        let lines = descriptors_in_words(descriptors);
        for line in lines.iter().take(MOST_SHOWN) {
            let _ = writeln!(text, "  {line}");
        }
        and_more(lines.len(), "descriptors", text);
    }
}

fn policy_in_text(policy: &Policy, text: &mut String) {
    let label = |(name, limit): (&str, &Limit)| match limit.algorithm().name() {
        same if same == name => name.to_owned(),
        algorithm => format!("{name} ({algorithm})"),
    };
    let limits = || policy.limit_names().zip(policy.plan().limits());
    let width = limits().map(|limit| label(limit).len()).max().unwrap_or(0);
    for (name, limit) in limits() {
        let _ = writeln!(text, "  {:width$}  {}", label((name, limit)), limit_in_words(limit));
    }
    for (pattern, plan) in policy.overrides().take(MOST_SHOWN) {
        let _ = writeln!(text, "  {} {pattern}", kind(pattern));
        let changed = changed(policy, plan);
        for (name, limit) in &changed {
            let _ = writeln!(text, "    {name:width$}  {}", limit_in_words(limit));
        }
        if changed.is_empty() {
            text.push_str("    the same\n");
        }
    }
    and_more(policy.overrides().count(), "overrides", text);
}

fn and_more(count: usize, of_what: &str, text: &mut String) {
    if let Some(more @ 1..) = count.checked_sub(MOST_SHOWN) {
        let _ = writeln!(text, "  and {more} more {of_what} (--format json has all)");
    }
}

fn kind(pattern: &KeyPattern) -> &'static str {
    match pattern {
        KeyPattern::Exact(_) => "key",
        KeyPattern::Prefix(_) => "keys",
    }
}

/// The limits of an override that differ from the policy's own.
fn changed<'p>(policy: &'p Policy, plan: &'p Plan) -> Vec<(&'p str, &'p Limit)> {
    let own = policy.plan().limits();
    let all = policy.limit_names().zip(plan.limits()).zip(own);
    all.filter(|((_, limit), own)| limit != own).map(|(named, _)| named).collect()
}

fn in_json(config: &Config, file: &str) -> Value {
    let (store, headers) = (config.store(), config.headers());
    let remarks = warnings(config);
    let warnings = remarks
        .iter()
        .map(|it| json!({ "severity": it.severity().to_string(), "path": it.path(), "text": it.text() }));
    json!({
        "file": file,
        "valid": true,
        "store": match store.kind() {
            StoreKind::Shared(_) => "shared",
            _ => "memory",
        },
        "memory": { "max_keys": store.max_keys(), "on_full": on_full(store.on_full()) },
        "headers": { "family": headers.family.name(), "reset": headers.reset.name() },
        "policies": config.policies().iter().map(|policy| policy_in_json(policy)).collect::<Vec<_>>(),
        "rules": config.gateway().rules().iter().map(|rule| {
            json!({ "name": rule.name(), "policy": rule.policy(), "words": rule_in_words(rule) })
        }).collect::<Vec<_>>(),
        "envoy": config.envoy().domains().map(|(domain, descriptors)| {
            (domain.to_owned(), json!(descriptors_in_words(descriptors)))
        }).collect::<serde_json::Map<_, _>>(),
        "warnings": warnings.collect::<Vec<_>>(),
    })
}

fn policy_in_json(policy: &Policy) -> Value {
    let limits = policy.limit_names().zip(policy.plan().limits());
    let overrides = policy.overrides().map(|(pattern, plan)| {
        let limits: Vec<Value> = changed(policy, plan).into_iter().map(limit_in_json).collect();
        let (prefix, key) = match pattern {
            KeyPattern::Exact(key) => (false, key),
            KeyPattern::Prefix(prefix) => (true, prefix),
        };
        // Both come from a file that is UTF-8.
        json!({ (if prefix { "prefix" } else { "key" }): String::from_utf8_lossy(key), "limits": limits })
    });
    json!({
        "name": policy.name(),
        "limits": limits.map(limit_in_json).collect::<Vec<_>>(),
        "overrides": overrides.collect::<Vec<_>>(),
    })
}

fn limit_in_json((name, limit): (&str, &Limit)) -> Value {
    json!({
        "name": name,
        "algorithm": limit.algorithm().name(),
        "limit": limit.capacity().get(),
        "rate": limit.rate().map(show_rate),
        "window": limit.window().map(show_period),
        "debt": limit.debt().get(),
        "words": limit_in_words(limit),
    })
}

fn errors_in_json(errors: &ConfigErrors) -> Value {
    let all = errors.errors().iter().map(|error| {
        json!({
            "line": error.place().line,
            "column": error.place().column,
            "path": error.path(),
            "value": error.value(),
            "rule": error.rule(),
            "mend": error.mend(),
        })
    });
    json!({
        "file": errors.file(),
        "valid": false,
        "count": errors.count(),
        "errors": all.collect::<Vec<_>>(),
    })
}

fn on_full(on_full: OnFull) -> &'static str {
    match on_full {
        OnFull::Shed => "shed",
        OnFull::RefuseNew => "refuse_new",
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
