//! `Field`: one number of a scenario file, in the tables of which every world makes its own.

/// One number of a scenario file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    /// Name in the file; unit last.
    pub name: &'static str,
    /// Value when the file says nothing; `None` where the file must say it.
    pub default: Option<f64>,
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    /// Natural unit; empty for a share or a plain number.
    pub unit: &'static str,
    /// Whole numbers only; a drawn value is rounded half to even.
    pub whole: bool,
    /// One sentence.
    pub doc: &'static str,
}

impl Field {
    /// The value of a draw: cut at the ends of the range, whole numbers rounded half to even.
    pub fn settle(&self, drawn: f64) -> f64 {
        let cut = drawn.clamp(self.low, self.high);
        if self.whole { cut.round_ties_even() } else { cut }
    }
}
