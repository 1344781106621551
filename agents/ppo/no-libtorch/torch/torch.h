// Stands in the search path behind libtorch (.cargo/config.toml), so that it is read only where there is
// none: then this is the compiler's last word instead of pages about its headers. A name that cannot be
// found ends a compilation at once; #error would not.
#include "libtorch 2.13.0 is missing: run `make libtorch` (540 MB, once), or set LIBTORCH to its folder"
