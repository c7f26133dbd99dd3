//! From figures as typed to a limit: which figures an algorithm takes, and what an override changes.

use tidegate::{Algorithm, Limit, LimitError, Period, Rate, Units};

use super::errors::{Fault, Problems, Site};
use super::raw::RawFigures;
use super::reader::Field;
use super::suggest::join;

/// The fields that say an algorithm's size (what passes at once, or per window) and its pace (its rate or
/// window), and an example of each.
pub(super) struct Shape {
    pub size: &'static str,
    pub pace: &'static str,
    pub example: &'static str,
}

/// What each algorithm takes.
pub(super) fn shape(algorithm: Algorithm) -> Shape {
    let (size, pace, example) = match algorithm {
        Algorithm::TokenBucket => ("capacity", "refill", "capacity: 100, refill: 10/s"),
        Algorithm::Gcra => ("burst", "rate", "rate: 10/s, burst: 5"),
        Algorithm::LeakyBucket => ("capacity", "leak", "capacity: 20, leak: 10/s"),
        Algorithm::FixedWindow | Algorithm::SlidingWindowLog | Algorithm::SlidingWindowCounter => {
            ("limit", "window", "limit: 1000, window: 1h")
        }
    };
    Shape { size, pace, example }
}

impl Shape {
    /// Every figure an algorithm takes, the optional one last.
    pub fn figures(&self) -> [&'static str; 3] {
        [self.size, self.pace, "debt"]
    }
}

/// The figures of one limit, complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Complete {
    algorithm: Algorithm,
    size: Units,
    pace: Pace,
    debt: Option<Units>,
}

#[derive(Debug, Clone, Copy)]
enum Pace {
    Rate(Rate),
    Window(Period),
}

impl Complete {
    /// The figures of a limit that has none to fall back on. `None` if some are missing or wrong, which is told.
    pub fn new(algorithm: Algorithm, raw: &RawFigures, site: &Site, problems: &mut Problems) -> Option<Self> {
        refuse_strangers(algorithm, raw, problems);
        let shape = shape(algorithm);
        for (name, absent) in
            [(shape.size, size(algorithm, raw).is_absent()), (shape.pace, no_pace(algorithm, raw))]
        {
            if absent {
                let mend = format!("a {algorithm} takes e.g. {}", shape.example);
                problems.add(site, Fault::new(format!("{name} is missing"), mend));
            }
        }
        let (size, pace) = (size(algorithm, raw).value()?, pace(algorithm, raw)?);
        Some(Complete { algorithm, size, pace, debt: raw.debt.value() })
    }

    /// These figures with those that `raw` gives in their place.
    pub fn with(mut self, raw: &RawFigures, problems: &mut Problems) -> Self {
        refuse_strangers(self.algorithm, raw, problems);
        self.size = size(self.algorithm, raw).value().unwrap_or(self.size);
        self.pace = pace(self.algorithm, raw).unwrap_or(self.pace);
        self.debt = raw.debt.value().or(self.debt);
        self
    }

    /// The limit of these figures; what is wrong with them together is told of the fields of `raw`, or of
    /// `site` where `raw` does not have them.
    pub fn limit(&self, raw: &RawFigures, site: &Site, problems: &mut Problems) -> Option<Limit> {
        let mut refused = |field: Option<&Site>, error: LimitError| {
            problems.add(field.unwrap_or(site), fault(error));
        };
        let limit = match self.build() {
            Ok(limit) => limit,
            Err(error @ LimitError::LeakOfZero) => {
                refused(site_of(&raw.leak), error);
                return None;
            }
            Err(error) => {
                refused(site_of(&raw.limit), error);
                return None;
            }
        };
        match self.debt {
            None => Some(limit),
            Some(debt) => limit.with_debt(debt).map_err(|error| refused(site_of(&raw.debt), error)).ok(),
        }
    }

    fn build(&self) -> Result<Limit, LimitError> {
        match (self.algorithm, self.pace) {
            (Algorithm::Gcra, Pace::Rate(rate)) => Ok(Limit::gcra(rate, self.size)),
            (Algorithm::LeakyBucket, Pace::Rate(leak)) => Limit::leaky_bucket(self.size, leak),
            (_, Pace::Rate(refill)) => Ok(Limit::token_bucket(self.size, refill)),
            (Algorithm::SlidingWindowLog, Pace::Window(window)) => {
                Limit::sliding_window_log(self.size, window)
            }
            (Algorithm::SlidingWindowCounter, Pace::Window(window)) => {
                Ok(Limit::sliding_window_counter(self.size, window))
            }
            (_, Pace::Window(window)) => Ok(Limit::fixed_window(self.size, window)),
        }
    }
}

fn fault(error: LimitError) -> Fault {
    match error {
        LimitError::LeakOfZero => Fault::new(
            "a leaky bucket has to leak",
            "write more than 0, or take token_bucket for one that never refills",
        ),
        LimitError::LogTooLong { .. } => Fault::new(
            format!(
                "out of range: a sliding_window_log keeps every admitted cost and goes up to {}",
                tidegate::MAX_LOG_LIMIT
            ),
            "take sliding_window_counter",
        ),
        other => Fault::new(other.to_string(), "take other figures"),
    }
}

fn size(algorithm: Algorithm, raw: &RawFigures) -> &Field<Units> {
    match algorithm {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => &raw.capacity,
        Algorithm::Gcra => &raw.burst,
        Algorithm::FixedWindow | Algorithm::SlidingWindowLog | Algorithm::SlidingWindowCounter => &raw.limit,
    }
}

/// The rate of a bucket; nothing for windows.
fn rate(algorithm: Algorithm, raw: &RawFigures) -> Option<&Field<Rate>> {
    match algorithm {
        Algorithm::TokenBucket => Some(&raw.refill),
        Algorithm::Gcra => Some(&raw.rate),
        Algorithm::LeakyBucket => Some(&raw.leak),
        Algorithm::FixedWindow | Algorithm::SlidingWindowLog | Algorithm::SlidingWindowCounter => None,
    }
}

fn pace(algorithm: Algorithm, raw: &RawFigures) -> Option<Pace> {
    match rate(algorithm, raw) {
        Some(rate) => rate.value().map(Pace::Rate),
        None => raw.window.value().map(Pace::Window),
    }
}

fn no_pace(algorithm: Algorithm, raw: &RawFigures) -> bool {
    rate(algorithm, raw).map_or(raw.window.is_absent(), Field::is_absent)
}

/// Tells of figures that belong to other algorithms.
fn refuse_strangers(algorithm: Algorithm, raw: &RawFigures, problems: &mut Problems) {
    let own = shape(algorithm).figures();
    let given = [
        ("capacity", site_of(&raw.capacity)),
        ("burst", site_of(&raw.burst)),
        ("limit", site_of(&raw.limit)),
        ("refill", site_of(&raw.refill)),
        ("rate", site_of(&raw.rate)),
        ("leak", site_of(&raw.leak)),
        ("window", site_of(&raw.window)),
    ];
    for (name, site) in given {
        if let Some(site) = site
            && !own.contains(&name)
        {
            let rule = format!("a {algorithm} has no {name}");
            problems.add(site, Fault::new(rule, format!("it takes {}", join(&own, "and"))));
        }
    }
}

fn site_of<T>(field: &Field<T>) -> Option<&Site> {
    field.given().map(|at| &at.site)
}
