//! Walks the tree of a file and keeps all that is wrong with it, each with the way there.

use std::collections::HashMap;

use super::errors::{Fault, Place, Problems, Site, quoted};
use super::leaf::{Leaf, read, written};
use super::suggest::unknown_field;
use super::yaml::{Key, Node, Value};

/// A value that may be given, and where it stands.
#[derive(Debug, Clone, Default)]
pub(super) enum Field<T> {
    /// The file does not have it.
    #[default]
    Absent,
    /// It is there and wrong, which is told already.
    Wrong,
    /// It is there. Boxed, since most fields of most mappings are absent.
    Given(Box<At<T>>),
}

impl<T> Field<T> {
    pub fn given_at(value: T, site: Site) -> Self {
        Field::Given(Box::new(At { value, site }))
    }

    pub fn given(&self) -> Option<&At<T>> {
        match self {
            Field::Given(at) => Some(at),
            Field::Absent | Field::Wrong => None,
        }
    }

    pub fn is_absent(&self) -> bool {
        matches!(self, Field::Absent)
    }
}

impl<T: Copy> Field<T> {
    pub fn value(&self) -> Option<T> {
        self.given().map(|at| at.value)
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    pub value: T,
    pub site: Site,
}

/// A node of the tree and the way to it.
pub(super) struct Cursor<'t> {
    node: &'t Node,
    path: String,
}

impl<'t> Cursor<'t> {
    pub fn root(node: &'t Node) -> Self {
        Cursor { node, path: String::new() }
    }

    pub fn site(&self) -> Site {
        Site { place: self.node.place, path: self.path.clone(), written: written(&self.node.value) }
    }

    /// Reads the node as a mapping of known fields; `example` is what to write instead of anything else.
    pub fn record<T>(
        &self,
        example: &str,
        problems: &mut Problems,
        read: impl FnOnce(&mut Fields<'t, '_>) -> T,
    ) -> Option<T> {
        let entries = self.entries(example, problems)?;
        let mut fields = Fields { path: &self.path, entries, known: Vec::new(), problems };
        let record = read(&mut fields);
        fields.refuse_the_rest();
        Some(record)
    }

    /// Reads the node as a mapping whose keys are names of the user's own.
    pub fn named(&self, example: &str, problems: &mut Problems) -> Option<Vec<(At<String>, Cursor<'t>)>> {
        let entries = self.entries(example, problems)?;
        let named = entries.into_iter().map(|(key, node)| {
            let path = step(&self.path, &key.text);
            let site = Site { place: key.place, path: path.clone(), written: None };
            (At { value: key.text.clone(), site }, Cursor { node, path })
        });
        Some(named.collect())
    }

    /// Whether there is nothing: an empty field, `null` or `~`.
    pub fn is_nothing(&self) -> bool {
        matches!(self.node.value, Value::Nothing)
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.node.value, Value::List(_))
    }

    /// Whether it is a mapping.
    pub fn is_map(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    /// Reads the node as a list.
    pub fn list(&self, example: &str, problems: &mut Problems) -> Option<Vec<Cursor<'t>>> {
        let Value::List(items) = &self.node.value else {
            problems.add(&self.site(), wrong_kind(&self.node.value, "a list", example));
            return None;
        };
        let item = |(index, node)| Cursor { node, path: format!("{}[{index}]", self.path) };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// Reads the node as a value without parts.
    pub fn leaf<T: Leaf>(&self, problems: &mut Problems) -> Field<T> {
        match read(&self.node.value) {
            Ok(value) => Field::given_at(value, self.site()),
            Err(fault) => {
                let mut site = self.site();
                if let Value::Text(text) | Value::Plain(text) = &self.node.value
                    && T::may_be_secret(text)
                {
                    site.written = None;
                }
                problems.add(&site, fault);
                Field::Wrong
            }
        }
    }

    /// The entries of a mapping, each key once.
    fn entries(&self, example: &str, problems: &mut Problems) -> Option<Vec<(&'t Key, &'t Node)>> {
        let Value::Map(entries) = &self.node.value else {
            problems.add(&self.site(), wrong_kind(&self.node.value, "a mapping", example));
            return None;
        };
        let mut seen: HashMap<&str, Place> = HashMap::with_capacity(entries.len());
        let mut once = Vec::with_capacity(entries.len());
        for (key, node) in entries {
            match seen.get(key.text.as_str()) {
                None => {
                    seen.insert(&key.text, key.place);
                    once.push((key, node));
                }
                Some(first) => {
                    let site = Site { place: key.place, path: step(&self.path, &key.text), written: None };
                    problems
                        .add(&site, Fault::new(format!("already given on line {}", first.line), "keep one"));
                }
            }
        }
        Some(once)
    }
}

fn wrong_kind(value: &Value, wanted: &str, example: &str) -> Fault {
    let found = match value {
        Value::Nothing => return Fault::new("no value", format!("write {example}")),
        Value::Text(_) => "text",
        Value::Plain(_) => "a plain value",
        Value::List(_) => "a list",
        Value::Map(_) => "a mapping",
    };
    Fault::new(format!("{found} where {wanted} belongs"), format!("write {example}"))
}

/// The fields of a mapping while they are being asked for.
pub(super) struct Fields<'t, 'p> {
    path: &'p str,
    /// Those not asked for yet.
    entries: Vec<(&'t Key, &'t Node)>,
    known: Vec<&'static str>,
    pub problems: &'p mut Problems,
}

impl<'t> Fields<'t, '_> {
    /// The field of this name, if the file has it.
    pub fn child(&mut self, name: &'static str) -> Option<Cursor<'t>> {
        self.known.push(name);
        let index = self.entries.iter().position(|(key, _)| key.text == name)?;
        let (_, node) = self.entries.remove(index);
        Some(Cursor { node, path: step(self.path, name) })
    }

    /// The field of this name as a value without parts.
    pub fn leaf<T: Leaf>(&mut self, name: &'static str) -> Field<T> {
        match self.child(name) {
            Some(cursor) => cursor.leaf(self.problems),
            None => Field::Absent,
        }
    }

    fn refuse_the_rest(self) {
        for (key, _) in &self.entries {
            // Guessing what was meant takes a while, and a file may have a million fields.
            if self.problems.only_count() {
                continue;
            }
            let site = Site { place: key.place, path: step(self.path, &key.text), written: None };
            self.problems.add(&site, unknown_field(&key.text, &self.known));
        }
    }
}

/// The path one key further: `policies.api`, `overrides["user:vip"]`.
pub(super) fn step(path: &str, key: &str) -> String {
    let simple =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    match (path, simple) {
        ("", true) => key.to_owned(),
        (_, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[{}]", quoted(key)),
    }
}
