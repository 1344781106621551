//! Where the rows' seeds come from. The engine has no entropy: callers bring it.

use crate::error::{VecError, check_len};
use oncall_core::Generator;
use oncall_core::streams::row_seed;

/// The seeds of a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seeds<'a> {
    /// Every row plays the next episode of the seed it has.
    Keep,
    /// Row `i` gets `row_seed(root, i)` and plays its episode 0. Any root will do, since it is
    /// mixed; for mulberry32 the mixed seeds are cut to 32 bits.
    Root(u64),
    /// One for each row of the batch, masked or not: exactly this seed, episode 0; `None` keeps.
    /// For mulberry32 they must fit in 32 bits.
    Rows(&'a [Option<u64>]),
}

impl Seeds<'_> {
    /// The new seed of a row, `None` for one that keeps its own.
    pub(crate) fn of(self, row: usize, generator: Generator) -> Option<u64> {
        match (self, generator) {
            (Seeds::Keep, _) => None,
            (Seeds::Root(root), Generator::Pcg) => Some(row_seed(root, row as u64)),
            (Seeds::Root(root), Generator::Mulberry32) => {
                Some(row_seed(root, row as u64) & u64::from(u32::MAX))
            }
            (Seeds::Rows(seeds), _) => seeds[row],
        }
    }

    /// Checks the number of seeds, and that each fits the generator.
    pub(crate) fn check(self, rows: usize, generator: Generator) -> Result<(), VecError> {
        let Seeds::Rows(seeds) = self else { return Ok(()) };
        check_len("seeds", seeds.len(), rows, 1)?;
        if generator == Generator::Pcg {
            return Ok(());
        }
        let too_big = |seed: &Option<u64>| seed.is_some_and(|seed| seed > u64::from(u32::MAX));
        match seeds.iter().position(too_big) {
            None => Ok(()),
            Some(row) => Err(VecError::value(
                format!("seeds: row {row}"),
                seeds[row].unwrap_or_default(),
                format!("0..={}, as this scenario draws with mulberry32", u32::MAX),
            )),
        }
    }
}
