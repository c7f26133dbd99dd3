#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// A stream of uniform 64-bit numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn key(&mut self) -> Fingerprint {
        Fingerprint::new(self.next(), self.next())
    }
}

impl Table {
    fn iter(&self) -> impl Iterator<Item = (Fingerprint, &[u64])> + '_ {
        let fingerprint = |at| Fingerprint { lo: self.cells[at], hi: self.cells[at + 1] };
        self.occupied().map(move |at| (fingerprint(at), self.words(Slot(at))))
    }

    /// Panics unless everything the searches rely on holds.
    fn check(&self) {
        let (mut count, mut above) = (0, u64::MAX);
        for at in self.occupied() {
            let hi = self.cells[at + 1];
            assert!(hi <= above, "entries out of order");
            let home = self.home(hi);
            assert!(home <= at, "an entry before its home");
            let gap = (home..at).step_by(self.stride).find(|&slot| self.cells[slot + 1] == 0);
            assert_eq!(gap, None, "a gap between an entry and its home");
            (count, above) = (count + 1, hi);
        }
        assert_eq!(count, self.len);
        assert!(self.len <= self.homes * MAX_LOAD / 100);
        if self.slots > 0 {
            let guards = self.slots - GROUP..self.slots;
            assert!(
                guards.into_iter().all(|slot| self.cells[self.start_of(slot) + 1] == 0),
                "a guard is taken"
            );
        }
        for slot in (0..self.slots).map(|slot| self.start_of(slot)) {
            let cells = &self.cells[slot..slot + self.stride];
            assert!(cells[1] != 0 || cells.iter().all(|&word| word == 0), "remains in an empty slot");
        }
    }
}

#[test]
fn a_table_allocates_on_its_first_insert_and_not_before() {
    let mut table = Table::new(2);
    let key = Fingerprint::new(1, 2);
    assert_eq!((table.bytes(), table.slots, table.len()), (0, 0, 0));
    assert_eq!(table.find(key), None);
    assert_eq!(table.walk(100, |_| false), 0);
    assert_eq!(table.retain(|_| false), 0);
    assert_eq!(table.sample(u64::MAX, 3).count(), 0);
    assert_eq!(table.iter().count(), 0);
    assert_eq!(table.bytes(), 0);
    assert!(table.needs_growth());
    table.insert(key, &[3, 4]);
    assert!(table.bytes() > 0);
    assert!(!table.needs_growth());
    table.check();
}

#[test]
fn an_entry_is_found_changed_and_removed() {
    let mut table = Table::new(3);
    let key = Fingerprint::new(7, 8);
    let slot = table.insert(key, &[1, 2, 3]);
    assert_eq!(table.find(key), Some(slot));
    table.words_mut(slot)[1] = 20;
    assert_eq!(table.words(slot), [1, 20, 3]);
    assert_eq!(table.iter().collect::<Vec<_>>(), [(key, &[1, 20, 3][..])]);
    assert_eq!(table.find(Fingerprint::new(7, 9)), None);
    assert_eq!(table.find(Fingerprint::new(6, 8)), None);
    table.remove(slot);
    assert_eq!((table.find(key), table.len()), (None, 0));
    table.check();
}

#[test]
fn the_zero_fingerprint_is_a_key_like_any_other() {
    let mut table = Table::new(1);
    for (word, (lo, hi)) in [(0, 0), (1, 0), (0, u64::MAX), (u64::MAX, u64::MAX)].into_iter().enumerate() {
        table.insert(Fingerprint::new(lo, hi), &[word as u64]);
    }
    table.check();
    let word = |lo, hi| table.find(Fingerprint::new(lo, hi)).map(|slot| table.words(slot)[0]);
    assert_eq!(word(0, 0), Some(0));
    assert_eq!(word(1, 0), Some(1));
    assert_eq!(word(0, u64::MAX), Some(2));
    assert_eq!(word(u64::MAX, u64::MAX), Some(3));
    assert_eq!(word(2, 0), None);
}

/// Whatever slot they all call home, also the last, and also with one and the same `hi`.
#[test]
fn a_thousand_keys_of_one_home_are_all_kept() {
    for first in [1, u64::MAX / 2, u64::MAX - 1000] {
        for spread in [0, 1] {
            let key = |i: u64| Fingerprint::new(i, first + spread * i);
            let mut table = Table::new(1);
            for i in 0..1000 {
                table.insert(key(i), &[i]);
            }
            table.check();
            for i in 0..1000 {
                assert_eq!(table.words(table.find(key(i)).unwrap()), [i]);
            }
            assert_eq!(table.find(Fingerprint::new(1000, first)), None);
            for i in (0..1000).step_by(2) {
                table.remove(table.find(key(i)).unwrap());
            }
            table.check();
            assert_eq!(table.retain(|words| words[0] % 3 != 0), 167);
            table.check();
            let mut left: Vec<u64> = table.iter().map(|(_, words)| words[0]).collect();
            left.sort_unstable();
            assert_eq!(left, (0..1000).filter(|i| i % 2 != 0 && i % 3 != 0).collect::<Vec<_>>());
        }
    }
}

/// At every size: few bytes per key right after each growth, never over the highest load, and
/// growths so rare that all the copying is a few moves per key.
#[test]
fn memory_follows_the_keys_and_growths_are_amortised() {
    let mut random = Random(1);
    let mut table = Table::new(2);
    let (mut growths, mut moved, mut bytes) = (0, 0, 0);
    for len in 1..=1_000_000 {
        table.insert(random.key(), &[len, 0]);
        let len = table.len();
        if table.bytes() != bytes {
            bytes = table.bytes();
            (growths, moved) = (growths + 1, moved + len - 1);
            let per_key = bytes as f64 / len as f64;
            let most = if len >= 4_000 {
                42.5
            } else {
                32.0 * (ROOM as f64 / MAX_LOAD as f64) + 3_000.0 / len as f64
            };
            assert!(per_key < most, "{per_key} bytes per key at {len}");
        }
        assert!(table.len() <= table.homes * MAX_LOAD / 100);
    }
    table.check();
    assert!(growths <= 85, "{growths} growths");
    assert!(moved < 8_000_000, "{moved} entries moved by growths");
    assert!(table.bytes() < 44_000_000, "{} bytes", table.bytes());
}

#[test]
fn slots_of_a_power_of_two_never_straddle_cache_lines() {
    let mut table = Table::new(2);
    let mut random = Random(2);
    for i in 0..10_000 {
        let slot = table.insert(random.key(), &[i, i]);
        assert_eq!(table.words(slot).as_ptr().addr() % 32, 16);
    }
}

#[test]
fn memory_comes_back_after_a_flood() {
    let mut random = Random(3);
    let keys: Vec<_> = (0..100_000).map(|_| random.key()).collect();
    let flooded = |keep: u64| {
        let mut table = Table::new(2);
        for (i, &key) in keys.iter().enumerate() {
            table.insert(key, &[u64::from((i as u64) < keep), 0]);
        }
        table
    };
    for keep in [1000, 1] {
        let mut by_retain = flooded(keep);
        assert_eq!(by_retain.retain(|words| words[0] == 1), 100_000 - keep as usize);
        by_retain.check();
        let mut by_walk = flooded(keep);
        let round = by_walk.slots;
        for _ in 0..round {
            by_walk.walk(4, |words| words[0] == 1);
        }
        by_walk.check();
        for table in [by_retain, by_walk] {
            assert_eq!(table.len() as u64, keep);
            assert!(table.bytes() <= 42 * keep as usize + 3_000, "{} bytes for {keep}", table.bytes());
            assert!(keys[..keep as usize].iter().all(|&key| table.find(key).is_some()));
        }
    }
    let mut emptied = flooded(0);
    emptied.retain(|words| words[0] == 1);
    assert_eq!(emptied.bytes(), 0);
    emptied.insert(keys[0], &[1, 1]);
    emptied.check();
}

/// Dropping a little in each pass must not lead to a pass for every few inserts.
#[test]
fn passes_before_growth_are_paid_for() {
    for garbage_in in [1_000_000, 100, 17, 16, 8, 3, 1] {
        let mut random = Random(4);
        let mut table = Table::new(1);
        let (mut looks, mut passes) = (0, 0);
        for i in 0..100_000_u64 {
            if table.needs_growth() {
                passes += 1;
                table.make_room(|words| {
                    looks += 1;
                    words[0] % garbage_in != 0
                });
                table.check();
            }
            table.insert(random.key(), &[i]);
        }
        assert!(passes > 0);
        assert!(looks < 20 * 100_000, "{looks} looks with one in {garbage_in} to drop");
    }
}

#[test]
fn a_round_of_walks_sees_every_entry_whatever_happens_in_between() {
    let mut random = Random(5);
    for round in 0..50 {
        let mut table = Table::new(1);
        let resident = 10 + round * 7;
        for i in 0..resident {
            table.insert(random.key(), &[i]);
        }
        table.walk(random.next() as usize % 500, |_| true);
        let mut passing = Vec::new();
        let mut seen = vec![0; resident as usize];
        // Two round's worth of steps at the largest size; others come and go and the table grows.
        for _ in 0..3_000 {
            table.walk(2, |words| {
                if let Some(count) = seen.get_mut(words[0] as usize) {
                    *count += 1;
                }
                words[0] < 2_000_000
            });
            if random.next().is_multiple_of(2) && passing.len() < 1_000 {
                let key = random.key();
                table.insert(key, &[1_000_000 + random.next() % 2 * 1_000_000]);
                passing.push(key);
            } else if !passing.is_empty() {
                let key = passing.swap_remove(random.next() as usize % passing.len());
                if let Some(slot) = table.find(key) {
                    table.remove(slot);
                }
            }
        }
        table.check();
        assert!(seen.iter().all(|&count| count > 0), "missed in {:?}", seen);
    }
}

/// Exactly: between two wraps of the cursor nobody is missed, also when a removal elsewhere pulls
/// the next entry back over the cursor.
#[test]
fn a_removal_behind_the_cursor_hides_nothing_from_it() {
    let key = |i: u64| Fingerprint::new(i, u64::MAX);
    for walked in 0..6 {
        for removed in 0..6 {
            let mut table = Table::new(1);
            for i in 0..6 {
                table.insert(key(i), &[i]);
            }
            table.cursor = 0;
            let mut seen = Vec::new();
            table.walk(walked, |words| {
                seen.push(words[0]);
                true
            });
            table.remove(table.find(key(removed)).unwrap());
            table.walk(table.slots - table.cursor, |words| {
                seen.push(words[0]);
                true
            });
            seen.push(removed);
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, [0, 1, 2, 3, 4, 5], "walked {walked}, removed {removed}");
        }
    }
}

#[test]
fn a_walk_may_drop_everything_it_sees() {
    let mut random = Random(6);
    let mut table = Table::new(1);
    for i in 0..1_000 {
        table.insert(random.key(), &[i]);
    }
    let dropped: usize = (0..1_000).map(|_| table.walk(3, |_| false)).sum();
    assert_eq!((dropped, table.len(), table.bytes()), (1_000, 0, 0));
}

#[test]
fn samples_are_occupied_distinct_and_reach_everywhere() {
    let mut random = Random(7);
    let mut table = Table::new(1);
    for i in 0..500 {
        table.insert(random.key(), &[i]);
    }
    let mut met = vec![false; 500];
    for _ in 0..2_000 {
        let mut sample: Vec<u64> = table.sample(random.next(), 5).map(|slot| table.words(slot)[0]).collect();
        sample.iter().for_each(|&i| met[i as usize] = true);
        sample.sort_unstable();
        sample.dedup();
        assert_eq!(sample.len(), 5);
    }
    assert!(met.iter().all(|&met| met));
    assert_eq!(table.sample(u64::MAX, 1_000).count(), 500);
    assert_eq!(table.sample(0, 0).count(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64, u64),
    Remove(usize),
    Change(usize, u64),
    Retain(u64),
    MakeRoom(u64),
    Walk(usize, u64),
}

/// Halves of fingerprints: mostly crowded ones, at both ends and in one place, and some uniform.
fn half() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..4_u64,
        (0..4_u64).prop_map(|below| u64::MAX - below),
        (0..64_u64).prop_map(|part| part << 58),
        any::<u64>(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (half(), half(), any::<u64>()).prop_map(|(lo, hi, word)| Step::Insert(lo, hi, word)),
        4 => any::<usize>().prop_map(Step::Remove),
        2 => (any::<usize>(), any::<u64>()).prop_map(|(pick, word)| Step::Change(pick, word)),
        1 => (1..20_u64).prop_map(Step::Retain),
        1 => (1..20_u64).prop_map(Step::MakeRoom),
        3 => (0..40_usize, 2..20_u64).prop_map(|(steps, one_in)| Step::Walk(steps, one_in)),
    ]
}

type Model = HashMap<Fingerprint, [u64; 2]>;

fn pick(model: &Model, pick: usize) -> Option<Fingerprint> {
    let mut keys: Vec<_> = model.keys().copied().collect();
    keys.sort_unstable_by_key(|key| (key.hi, key.lo));
    (!keys.is_empty()).then(|| keys[pick % keys.len()])
}

fn take(table: &mut Table, model: &mut Model, step: &Step) {
    match *step {
        Step::Insert(lo, hi, word) => {
            let key = Fingerprint::new(lo, hi);
            assert_eq!(table.find(key).is_some(), model.contains_key(&key));
            model.entry(key).or_insert_with(|| {
                let slot = table.insert(key, &[word, !word]);
                assert_eq!(table.find(key), Some(slot));
                [word, !word]
            });
        }
        Step::Remove(at) => {
            if let Some(key) = pick(model, at) {
                table.remove(table.find(key).unwrap());
                model.remove(&key);
            }
        }
        Step::Change(at, word) => {
            if let Some(key) = pick(model, at) {
                let slot = table.find(key).unwrap();
                table.words_mut(slot)[0] = word;
                model.get_mut(&key).unwrap()[0] = word;
            }
        }
        Step::Retain(one_in) | Step::MakeRoom(one_in) => {
            let before = model.len();
            model.retain(|_, words| words[0] % one_in != 0);
            let dropped = match step {
                Step::MakeRoom(_) => table.make_room(|words| words[0] % one_in != 0),
                _ => table.retain(|words| words[0] % one_in != 0),
            };
            assert_eq!(dropped, before - model.len());
        }
        Step::Walk(steps, one_in) => {
            let mut gone = Vec::new();
            let dropped = table.walk(steps, |words| {
                let keep = words[0] % one_in != 0;
                if !keep {
                    gone.push([words[0], words[1]]);
                }
                keep
            });
            assert_eq!(dropped, gone.len());
            model.retain(|&key, words| {
                let there = table.find(key).is_some();
                let position = gone.iter().position(|gone| !there && gone == words);
                assert_eq!(there, position.is_none(), "{key:?} vanished unasked");
                position.map(|position| gone.swap_remove(position));
                there
            });
            assert!(gone.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn a_table_is_a_map(steps in prop::collection::vec(step(), 0..400)) {
        let (mut table, mut model) = (Table::new(2), Model::new());
        for step in &steps {
            take(&mut table, &mut model, step);
            table.check();
            prop_assert_eq!(table.len(), model.len());
        }
        let held: Model = table.iter().map(|(key, words)| (key, [words[0], words[1]])).collect();
        prop_assert_eq!(&held, &model);
        for (&key, words) in &model {
            let slot = table.find(key);
            prop_assert_eq!(slot.map(|slot| table.words(slot)), Some(&words[..]));
        }
    }
}
