//! `oncall check`: everything that is wrong with a scenario file, at once.

use crate::args::CheckArgs;
use crate::output::{hex, note, print};
use crate::scenarios;
use anyhow::bail;

/// Checks every file; an error if one of them is wrong.
///
/// Prints a line `FILE: ok` for a good one, and every problem of a bad one to standard error.
pub fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let mut bad = 0;
    for path in &args.files {
        match scenarios::read(path) {
            Ok(scenario) => {
                let hash = hex(scenario.hash);
                print(&format!("{}: ok ({}, hash {hash})\n", path.display(), scenario.name))?;
            }
            Err(problems) => {
                bad += 1;
                note(&format!("{problems:#}"));
            }
        }
    }
    match (bad, args.files.len()) {
        (0, _) => Ok(()),
        (_, 1) => bail!("{} is not a valid scenario", args.files[0].display()),
        (bad, all) => bail!("{bad} of {all} files are not valid scenarios"),
    }
}
