//! The binary `oncall`; all of it is in the library, which the wheel's console script runs as well.

fn main() {
    std::process::exit(oncall_cli::run(std::env::args_os()));
}
