//! The counters as Prometheus reads them.

use std::fmt;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tidegate::{Limiter, MemoryStats, MemoryStore};

use super::latency::LatencyReading;
use super::{Metrics, OUTCOMES};
use crate::store::AnyStore;

/// The media type of [`render`]'s text.
pub(crate) use prometheus_text::CONTENT_TYPE;

/// Everything counted, in the Prometheus text format.
pub(crate) fn render(metrics: &Metrics, limiter: &Limiter<AnyStore>) -> String {
    let mut registry = Registry::with_prefix("tidegate");
    registry.register_collector(Box::new(Reading::of(metrics, limiter)));
    let mut text = String::with_capacity(4_096);
    // Writing to a string cannot fail.
    let _ = prometheus_text::encode(&mut text, &registry);
    text
}

/// All counters at one scrape.
struct Reading {
    decisions: Vec<(String, &'static str, u64)>,
    throttled: Vec<(&'static str, u64)>,
    latency: LatencyReading,
    /// Of a store in this process.
    store: Option<MemoryStats>,
    store_errors: u64,
    degraded: u64,
    reloads: [(&'static str, u64); 2],
    last_reload: f64,
}

impl Reading {
    fn of(metrics: &Metrics, limiter: &Limiter<AnyStore>) -> Self {
        let policies = limiter.policies();
        metrics.settle(&policies);
        let known = metrics.decisions.load();
        let mut decisions = Vec::new();
        for policy in policies.iter() {
            let Some(counters) = known.get(policy.name()) else { continue };
            let words = OUTCOMES.iter().map(|outcome| outcome.as_str()).chain(["other"]);
            let counted = words.zip(counters.read()).filter(|(word, count)| *word != "other" || *count > 0);
            decisions.extend(counted.map(|(word, count)| (policy.name().to_owned(), word, count)));
        }
        let reloads = &metrics.reloads;
        Reading {
            decisions,
            throttled: OUTCOMES
                .iter()
                .map(|outcome| outcome.as_str())
                .zip(metrics.throttled.read())
                .collect(),
            latency: metrics.latency.read(),
            store: limiter.store().memory().map(MemoryStore::stats),
            store_errors: metrics.store_errors.load(Ordering::Relaxed),
            degraded: limiter.store().degraded(),
            reloads: [
                ("success", reloads.succeeded.load(Ordering::Relaxed)),
                ("failure", reloads.failed.load(Ordering::Relaxed)),
            ],
            last_reload: reloads.last_success.load(Ordering::Relaxed) as f64 / 1e6,
        }
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}

impl Collector for Reading {
    fn encode(&self, mut out: DescriptorEncoder<'_>) -> fmt::Result {
        let out = &mut out;
        let help = "Checks decided, by policy and outcome; peeks are not counted";
        let mut family = out.encode_descriptor("decisions", help, None, MetricType::Counter)?;
        for (policy, outcome, count) in &self.decisions {
            let labels = [("policy", policy.as_str()), ("outcome", *outcome)];
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(count, None)?;
        }
        let help = "Checks decided under figures that came with them, by outcome; peeks are not counted";
        let mut family = out.encode_descriptor("throttle_decisions", help, None, MetricType::Counter)?;
        for (outcome, count) in &self.throttled {
            let labels = [("outcome", *outcome)];
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(count, None)?;
        }
        let help = "Time from a check's being read to its answer's being written, in seconds";
        let LatencyReading { sum, count, buckets } = &self.latency;
        out.encode_descriptor("decision_duration_seconds", help, None, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)?;
        self.encode_store(out)?;
        let help = "Reloads of the configuration, by result";
        let mut family = out.encode_descriptor("config_reloads", help, None, MetricType::Counter)?;
        for (result, count) in &self.reloads {
            let labels = [("result", *result)];
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(count, None)?;
        }
        let name = "config_last_reload_success_timestamp_seconds";
        let help = "When the configuration in force was loaded, in seconds since 1970";
        out.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&self.last_reload)?;
        let help = "The running version";
        out.encode_descriptor("build", help, None, MetricType::Info)?
            .encode_info(&[("version", env!("CARGO_PKG_VERSION"))])
    }
}

impl Reading {
    fn encode_store(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Checks that the store could not answer";
        out.encode_descriptor("store_errors", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, f64>(&self.store_errors, None)?;
        let help = "Checks decided without the store that all instances share, while it did not answer";
        out.encode_descriptor("degraded_decisions", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, f64>(&self.degraded, None)?;
        let Some(MemoryStats { keys, bytes, shed, refused, vanished, .. }) = self.store else {
            return Ok(());
        };
        let gauges =
            [("keys", "Keys held now", keys), ("keys_bytes", "Bytes of memory the keys held take", bytes)];
        for (name, help, value) in gauges {
            // Gauges are signed; no machine holds 2^63 of either.
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            out.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)?;
        }
        let counters = [
            ("keys_shed", "Keys dropped early because there was no room", shed),
            ("keys_refused", "Checks of new keys refused because there was no room", refused),
            ("keys_vanished", "Keys dropped because they were as new", vanished),
        ];
        for (name, help, value) in counters {
            out.encode_descriptor(name, help, None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tidegate::{Limit, Outcome, Policy, Rate, Timestamp};

    use super::*;

    fn limiter(name: &str) -> Limiter<AnyStore> {
        let policy = Policy::single(name, Limit::token_bucket(5, Rate::per_second(1))).unwrap();
        Limiter::builder(policy).store(AnyStore::default()).build()
    }

    #[test]
    fn a_policy_in_force_has_series_from_the_start_and_one_removed_has_none() {
        let metrics = Metrics::new(Timestamp::EPOCH);
        let limiter = limiter("old");
        metrics.decided("old", Outcome::Denied, 3);
        let text = render(&metrics, &limiter);
        assert!(text.contains("tidegate_decisions_total{policy=\"old\",outcome=\"denied\"} 1\n"), "{text}");
        assert!(text.contains("tidegate_decisions_total{policy=\"old\",outcome=\"allowed\"} 0\n"), "{text}");
        limiter.reload(Policy::single("new", Limit::token_bucket(5, Rate::per_second(1))).unwrap()).unwrap();
        let text = render(&metrics, &limiter);
        assert!(text.contains("policy=\"new\",outcome=\"allowed\"} 0\n"), "{text}");
        assert!(!text.contains("old"), "{text}");
    }

    #[test]
    fn names_are_escaped() {
        let text = render(&Metrics::new(Timestamp::EPOCH), &limiter("a\"b\\c"));
        assert!(text.contains(r#"policy="a\"b\\c",outcome="allowed"} 0"#), "{text}");
    }

    #[test]
    fn everything_has_its_name() {
        let metrics = Metrics::new(Timestamp::from_micros(1_700_000_000_000_000).unwrap());
        metrics.reloaded(Timestamp::from_micros(1_700_000_001_500_000).unwrap());
        metrics.reload_failed();
        metrics.decided("api", Outcome::Allowed, 2);
        let limiter = limiter("api");
        assert!(limiter.policy("api").unwrap().check("k", 1).known().is_some());
        let text = render(&metrics, &limiter);
        for line in [
            "# TYPE tidegate_decisions_total counter",
            "tidegate_decision_duration_seconds_bucket{le=\"1e-06\"} 0",
            "tidegate_decision_duration_seconds_bucket{le=\"2e-06\"} 1",
            "tidegate_decision_duration_seconds_bucket{le=\"+Inf\"} 1",
            "tidegate_decision_duration_seconds_count 1",
            "tidegate_keys 1",
            "tidegate_keys_shed_total 0",
            "tidegate_keys_refused_total 0",
            "tidegate_keys_vanished_total 0",
            "tidegate_store_errors_total 0",
            "tidegate_degraded_decisions_total 0",
            "tidegate_config_reloads_total{result=\"success\"} 1",
            "tidegate_config_reloads_total{result=\"failure\"} 1",
            "tidegate_config_last_reload_success_timestamp_seconds 1700000001.5",
            concat!("tidegate_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        ] {
            assert!(text.lines().any(|is| is == line), "{line} is not in\n{text}");
        }
    }
}
