//! Tables of results, for people and for programs.

use serde::Serialize;

/// What one contender reached, in each column.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Who.
    pub name: &'static str,
    /// Each figure, under the column's name.
    pub figures: Vec<f64>,
}

/// Results in rows and columns.
#[derive(Debug, Serialize)]
pub struct Table {
    /// What the figures are.
    pub title: String,
    /// What each column is.
    pub columns: Vec<String>,
    /// One for each contender.
    pub rows: Vec<Row>,
}

impl Table {
    /// The table with, beside each figure, how many times the figure of row `peer` it is.
    pub fn compared_with(&self, peer: usize) -> String {
        let mut text = format!("{}\n\n", self.title);
        let cells = |row: &Row| -> Vec<String> {
            let pair = |(figure, peer): (&f64, &f64)| format!("{figure:.1} ({:.1}x)", figure / peer);
            row.figures.iter().zip(&self.rows[peer].figures).map(pair).collect()
        };
        let rows: Vec<(&str, Vec<String>)> = self.rows.iter().map(|row| (row.name, cells(row))).collect();
        let name_width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let width = |column: usize| {
            let widths = rows.iter().map(|(_, cells)| cells[column].len());
            widths.chain([self.columns[column].len()]).max().unwrap_or(0)
        };
        let mut line = |name: &str, cells: &[String]| {
            text.push_str(&format!("{name:name_width$}"));
            for (column, cell) in cells.iter().enumerate() {
                text.push_str(&format!("  {cell:>width$}", width = width(column)));
            }
            text.push('\n');
        };
        line("", &self.columns);
        rows.iter().for_each(|(name, cells)| line(name, cells));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_ratios_are_to_the_peer() {
        let row = |name, figures: [f64; 2]| Row { name, figures: figures.into() };
        let table = Table {
            title: "Million checks/s".to_owned(),
            columns: vec!["hot".to_owned(), "uniform".to_owned()],
            rows: vec![row("peer", [10.0, 4.0]), row("tidegate", [90.0, 34.0])],
        };
        let expected = "Million checks/s\n\n                  hot      uniform\npeer      10.0 (1.0x)   4.0 (1.0x)\n\
                        tidegate  90.0 (9.0x)  34.0 (8.5x)\n";
        assert_eq!(table.compared_with(0), expected);
    }
}
