//! The configuration as a whole: files in, policies or messages out.

mod documents;
mod envoy;
mod faults;
mod meaning;
mod ratelimit;
mod robust;
mod rules;
