//! Looks for libtorch where the script of `torch-sys` will, and says what to do if it is not there.

use std::path::Path;

/// The version that `tch` expects.
const VERSION: &str = "2.13.0";

/// What to do, from the root of the clone.
const CURE: &str = "run `make libtorch` (540 MB to download, once)";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["LIBTORCH", "LIBTORCH_USE_PYTORCH", "LIBTORCH_BYPASS_VERSION_CHECK"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let is_set = |name| std::env::var_os(name).is_some();
    // PyTorch's own folders are asked for with Python, and checked, by torch-sys.
    if !is_set("CARGO_FEATURE_CHECK") || is_set("LIBTORCH_USE_PYTORCH") {
        return;
    }
    // A clone's .cargo/config.toml sets it; without it torch-sys looks at the system's folders.
    let Some(folder) = std::env::var_os("LIBTORCH") else { return };
    let folder = Path::new(&folder);
    println!("cargo::rerun-if-changed={}", folder.join("build-version").display());
    if let Err(problem) = check(folder, is_set("LIBTORCH_BYPASS_VERSION_CHECK")) {
        println!("cargo::error=LIBTORCH = {}: {problem}", folder.display());
    }
}

fn check(folder: &Path, any_version: bool) -> Result<(), String> {
    if !folder.join("include/torch").is_dir() || !folder.join("lib").is_dir() {
        return Err(format!("no libtorch is there: {CURE}, or point it to a libtorch {VERSION}"));
    }
    // A libtorch of other makers may not say; then the compiler decides.
    let Ok(found) = std::fs::read_to_string(folder.join("build-version")) else { return Ok(()) };
    let found = found.trim();
    if any_version || found.split('+').next() == Some(VERSION) {
        return Ok(());
    }
    Err(format!("libtorch {found} is there, expected {VERSION}: unset LIBTORCH and {CURE}"))
}
