//! Tells the linker where libtorch is, so that the binary runs without `LD_LIBRARY_PATH`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Set by torch-sys. Link arguments of a dependency never reach the binary, so it is done here.
    if let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{lib}");
        // For a binary that was copied, with the libraries beside it.
        println!("cargo::rustc-link-arg=-Wl,-rpath,$ORIGIN/libtorch/torch/lib");
    }
}
