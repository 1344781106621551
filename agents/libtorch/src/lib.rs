//! Which libtorch `oncall-ppo` is built with, and a build script that looks for it.
//!
//! The script of `torch-sys` runs before that of any crate that uses it, and a folder that is not there
//! shows itself as pages of C++ errors. This crate uses nothing, so that with the feature `check` its
//! own script is among the first that cargo runs, and says in one sentence what is wrong and what to do.

/// The version that `tch` expects.
pub const VERSION: &str = "2.13.0";

#[cfg(test)]
mod tests {
    use super::VERSION;

    #[test]
    fn the_version_is_that_of_the_script_that_fetches_it() {
        let script = include_str!("../../../scripts/get_libtorch.py");
        assert!(script.contains(&format!("VERSION = \"{VERSION}\"")));
        let build = include_str!("../build.rs");
        assert!(build.contains(&format!("VERSION: &str = \"{VERSION}\"")));
    }
}
