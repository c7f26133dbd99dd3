//! A command's words.

/// Where a word lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Of a command, which is far shorter than four gigabytes.
    #[inline]
    pub(super) fn new(start: usize, end: usize) -> Self {
        Span { start: start as u32, end: end as u32 }
    }
}

/// The words of a command, its name being the first: ranges of the bytes they were read from.
#[derive(Debug, Clone, Copy)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    pub(super) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Args { bytes, spans }
    }

    /// How many, the name included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is not even a name.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The word at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let Span { start, end } = *self.spans.get(index)?;
        self.bytes.get(start as usize..end as usize)
    }

    /// The words from `index` on.
    pub fn from(self, index: usize) -> impl Iterator<Item = &'a [u8]> {
        (index..self.len()).filter_map(move |at| self.get(at))
    }
}
