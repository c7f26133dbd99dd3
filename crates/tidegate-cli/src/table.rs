//! Tables of plain text.

use std::fmt;

/// Rows of cells under a head; columns of figures stand to the right, all others to the left.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
struct Column {
    head: String,
    right: bool,
}

impl Table {
    /// No columns yet.
    pub fn new() -> Self {
        Table { columns: Vec::new(), rows: Vec::new() }
    }

    /// A column of words.
    #[must_use]
    pub fn words(self, head: impl Into<String>) -> Self {
        self.column(head.into(), false)
    }

    /// A column of figures.
    #[must_use]
    pub fn figures(self, head: impl Into<String>) -> Self {
        self.column(head.into(), true)
    }

    fn column(mut self, head: String, right: bool) -> Self {
        self.columns.push(Column { head, right });
        self
    }

    /// Adds a row: a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn line<'a>(
        &self,
        f: &mut fmt::Formatter<'_>,
        widths: &[usize],
        cells: impl Iterator<Item = &'a str>,
    ) -> fmt::Result {
        let mut line = String::new();
        for ((cell, width), column) in cells.zip(widths).zip(&self.columns) {
            let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
            let (before, after) = if column.right { (gap.as_str(), "") } else { ("", gap.as_str()) };
            line.extend([before, cell, after, "  "]);
        }
        writeln!(f, "{}", line.trim_end())
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = || self.columns.iter().map(|column| column.head.as_str());
        let width = |place: usize, head: &str| {
            let cells = self.rows.iter().map(|row| row[place].chars().count());
            cells.chain([head.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = heads().enumerate().map(|(place, head)| width(place, head)).collect();
        if heads().any(|head| !head.is_empty()) {
            self.line(f, &widths, heads())?;
        }
        self.rows.iter().try_for_each(|row| self.line(f, &widths, row.iter().map(String::as_str)))
    }
}

/// A key as it is shown to people: what a terminal would act on is escaped, and what is long is cut.
pub fn shown_key(key: &[u8]) -> String {
    const MOST: usize = 60;
    if key.is_empty() {
        return "\"\"".to_owned();
    }
    let text: String = String::from_utf8_lossy(key).chars().take(MOST + 1).collect();
    let mut shown = String::new();
    for character in text.chars().take(MOST) {
        match character {
            '\u{fffd}' => shown.push(character),
            _ if character.is_control() || is_invisible(character) => {
                shown.extend(character.escape_default())
            }
            _ => shown.push(character),
        }
    }
    if text.chars().count() > MOST {
        shown.push_str("...");
    }
    shown
}

/// Marks that turn the direction of text round, and spaces of no width: a key could hide behind them.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_to_the_right_and_words_to_the_left() {
        let mut table = Table::new().words("key").figures("checks");
        table.row(["\u{e9}a".to_owned(), "7".to_owned()]);
        table.row(["user:42".to_owned(), "1234567".to_owned()]);
        assert_eq!(table.to_string(), "key       checks\n\u{e9}a             7\nuser:42  1234567\n");
        let mut bare = Table::new().words("").figures("");
        bare.row(["checks".to_owned(), "7".to_owned()]);
        assert_eq!(bare.to_string(), "checks  7\n");
    }

    #[test]
    fn a_key_cannot_reach_the_terminal() {
        assert_eq!(shown_key(b"user:\x1b[31m\n\xff"), "user:\\u{1b}[31m\\n\u{fffd}");
        assert_eq!(shown_key("a\u{202e}b".as_bytes()), "a\\u{202e}b");
        assert_eq!(shown_key(b""), "\"\"");
        assert_eq!(shown_key(&[b'x'; 100]), format!("{}...", "x".repeat(60)));
    }
}
