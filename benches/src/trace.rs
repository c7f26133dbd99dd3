//! Which keys are asked about, in which order: seeded, so every run asks the same.

/// Numbers that look random and repeat with their seed (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number, uniform over all of them.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number, uniform below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }

    /// The next number, uniform from 0 to 1.
    fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How often each of some keys is asked about.
#[derive(Debug, Clone, Copy)]
pub enum Popularity {
    /// All alike.
    Uniform,
    /// The n-th most asked-for in proportion to 1/n.
    Zipf,
}

/// So many keys, asked about with some popularity.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    /// How many there are.
    pub count: usize,
    /// How often each is asked about.
    pub popularity: Popularity,
}

impl Keys {
    /// The numbers of the keys of `length` checks.
    fn numbers(self, length: usize, seed: u64) -> Vec<usize> {
        let mut random = Random::new(seed);
        match self.popularity {
            Popularity::Uniform => (0..length).map(|_| random.below(self.count)).collect(),
            Popularity::Zipf => {
                let sums: Vec<f64> = (1..=self.count)
                    .scan(0.0, |sum, rank| {
                        *sum += 1.0 / rank as f64;
                        Some(*sum)
                    })
                    .collect();
                let all = sums.last().copied().unwrap_or(0.0);
                let rank = |share: f64| sums.partition_point(|sum| *sum < share * all).min(self.count - 1);
                (0..length).map(|_| rank(random.share())).collect()
            }
        }
    }

    /// `length` checks in random order.
    pub fn trace(self, length: usize, seed: u64) -> Trace {
        Trace::of(self.numbers(length, seed).into_iter())
    }

    /// Each key once.
    pub fn each(self) -> Trace {
        Trace::of(0..self.count)
    }
}

/// Keys in the order they are asked about, side by side in memory: a server finds a key in the buffer it has just
/// read, so reaching the key's own bytes must not cost a cache miss.
#[derive(Debug)]
pub struct Trace {
    text: String,
}

/// Bytes of every key.
const WIDTH: usize = 16;

impl Trace {
    fn of(numbers: impl Iterator<Item = usize>) -> Self {
        Trace { text: numbers.map(|number| format!("user:{number:011}")).collect() }
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|place| &self.text[place * WIDTH..(place + 1) * WIDTH])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.text.len() / WIDTH
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_as_wide_as_they_must_be_and_repeat_with_their_seed() {
        for popularity in [Popularity::Uniform, Popularity::Zipf] {
            let keys = Keys { count: 1_000_000, popularity };
            let trace = keys.trace(1_000, 1);
            assert_eq!(trace.len(), 1_000);
            assert!(trace.keys().all(|key| key.starts_with("user:") && key.len() == WIDTH));
            assert_eq!(trace.text, keys.trace(1_000, 1).text);
            assert_ne!(trace.text, keys.trace(1_000, 2).text);
        }
    }

    #[test]
    fn the_most_popular_of_zipf_comes_as_often_as_it_should() {
        let numbers = Keys { count: 1_000, popularity: Popularity::Zipf }.numbers(100_000, 3);
        let first = numbers.iter().filter(|number| **number == 0).count();
        let tenth = numbers.iter().filter(|number| **number == 9).count();
        // One in 7.485 and a tenth of that.
        assert!((12_900..13_850).contains(&first), "{first}");
        assert!((1_200..1_480).contains(&tenth), "{tenth}");
        assert!(numbers.iter().all(|number| *number < 1_000));
    }
}
