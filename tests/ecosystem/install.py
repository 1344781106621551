"""Installs what `make test-ecosystem` needs into the running interpreter's environment.

    python tests/ecosystem/install.py

PyTorch's wheel for Linux needs 3.5 GB of CUDA libraries that a test on CPUs never calls. On Linux
on x86-64 this installs the wheel without them and puts libraries in their place whose functions
end the program, so that `import torch` works and everything on CPUs runs: 1.5 GB and about a
minute instead of 4.7 GB. Elsewhere, or without a C compiler, it installs the wheel as it comes.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# The libraries of the wheel that link against CUDA and are loaded by `import torch`.
LOADED = ("libtorch_python.so", "libtorch_cuda.so", "libtorch_nvshmem.so", "libc10_cuda.so")


def main() -> None:
    """Installs the pinned packages, then fills the gaps that leaving CUDA out made."""
    slim = sys.platform == "linux" and platform.machine() == "x86_64" and compiler() is not None
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if slim:
        pip.append("--no-deps")
    requirements = (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = [line for line in requirements if line and not line.startswith("#")]
    if not slim:
        wanted = [line for line in wanted if not line.startswith("nvidia-")]
    subprocess.run([*pip, *wanted], check=True)
    if slim:
        libraries = Path(sysconfig.get_path("platlib"), "torch", "lib")
        print(f"stood in for {fill_gaps(libraries)} CUDA libraries")
    subprocess.run([sys.executable, "-c", "import torch, stable_baselines3"], check=True)


def compiler() -> str | None:
    """A C compiler; the linker of Rust comes with one."""
    return shutil.which("cc") or shutil.which("gcc")


def fill_gaps(libraries: Path) -> int:
    """Builds the missing libraries beside those that need them; returns their number.

    The first one holds all functions that are asked for: the loader looks through all of them.
    """
    missing = sorted(set(re.findall(r"(\S+) => not found", ldd(libraries))))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "stand_in.c")
        source.write_text("int oncall_stand_in;\n", encoding="utf-8")
        for name in missing:
            build(source, libraries / name)
        # Names of C++ and of the Python interpreter are found when the program runs.
        functions = {
            name
            for name in re.findall(r"undefined symbol: (\w+)", ldd(libraries))
            if not name.startswith(("_Z", "Py", "_Py"))
        }
        lines = [
            "#include <stdio.h>",
            "#include <stdlib.h>",
            "static void none(const char *name) {",
        ]
        lines += ['  fprintf(stderr, "%s: CUDA was left out of this environment\\n", name);']
        lines += ["  abort();", "}"]
        lines += [f'void {name}(void) {{ none("{name}"); }}' for name in sorted(functions)]
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if missing:
            build(source, libraries / missing[0])
    return len(missing)


def ldd(libraries: Path) -> str:
    """What the loader misses, libraries and symbols."""
    said = ""
    for name in LOADED:
        result = subprocess.run(
            ["ldd", "-r", str(libraries / name)], capture_output=True, text=True, check=False
        )
        said += result.stdout + result.stderr
    return said


def build(source: Path, target: Path) -> None:
    """One shared library, under the name by which it is asked for."""
    command = [str(compiler()), "-shared", "-fPIC", "-fno-builtin", "-w", str(source)]
    subprocess.run([*command, "-o", str(target), f"-Wl,-soname,{target.name}"], check=True)


if __name__ == "__main__":
    main()
