//! Values that nobody typed: they came from the environment, and an error about them has to say so.

use std::env;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, Error};

/// What to add to an error about a flag that is not on the command line, but whose variable is set.
pub fn hint(error: &Error, mut command: Command) -> Option<String> {
    // Before that a flag does not know how it is shown.
    command.build();
    let typed: Vec<OsString> = env::args_os().skip(1).collect();
    let name = typed.first()?.to_str()?;
    let flags = command.find_subcommand(name)?.get_arguments();
    let untyped = flags.filter(|flag| !is_typed(flag, &typed));
    let set: Vec<_> = untyped.filter_map(|flag| Some((flag, env::var_os(flag.get_env()?)?))).collect();
    let about = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(about)) => Some(about),
        _ => None,
    };
    let to_blame = set.iter().find(|(flag, value)| match about {
        Some(about) => *about == flag.to_string(),
        None => value.to_str().is_none(),
    });
    to_blame.and_then(|(flag, _)| flag.get_env()).map(|variable| {
        let variable = variable.to_string_lossy();
        format!("The value comes from {variable} in the environment (set another, or unset it).")
    })
}

fn is_typed(flag: &Arg, typed: &[OsString]) -> bool {
    let Some(long) = flag.get_long() else { return false };
    let long = format!("--{long}");
    typed
        .iter()
        .filter_map(|word| word.to_str())
        .any(|word| word.strip_prefix(&long).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
}
