"""Fetch the CPU part of libtorch 2.13.0, which `agents/ppo` links against (Linux x86-64).

    python scripts/get_libtorch.py [DEST]

DEST is third_party/libtorch by default, where .cargo/config.toml tells cargo to look; for another
place, set LIBTORCH to its folder `torch`.

The package index has no CPU-only libtorch. Its GPU build works without a GPU if two small vendor
libraries lie beside it, so this takes three wheels (540 MB to download, each checked against a
hash), and unpacks five libraries and the headers of them (490 MB on disk). A folder that is already
complete is left alone; one that is half done is made anew.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

VERSION = "2.13.0"

# Pinned by hash: what is linked is what was tested.
WHEELS = {
    "torch": (VERSION, "60fcdcb2f3876e21146cb4524ef06397d727ca9ad5f020818547e25075fe3cb7"),
    "nvidia-cuda-runtime": (
        "13.0.96",
        "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
    ),
    "nvidia-cuda-cupti": (
        "13.0.85",
        "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8",
    ),
}

# libtorch_cpu.so finds the vendor libraries through its own run path, ../../nvidia/cu13/lib.
LIBRARIES = frozenset(
    {
        "torch/lib/libc10.so",
        "torch/lib/libgomp.so.1",
        "torch/lib/libtorch_cpu.so",
        "nvidia/cu13/lib/libcudart.so.13",
        "nvidia/cu13/lib/libcupti.so.13",
    }
)
HEADERS = "torch/include/"

# The wheels are the same for every local Python, which must not matter.
PIP_TARGET = [
    "--implementation=cp",
    "--python-version=311",
    "--platform=manylinux_2_28_x86_64",
    "--platform=manylinux_2_25_x86_64",
    "--platform=manylinux2014_x86_64",
]


def download(folder: Path) -> list[Path]:
    """Download the wheels, checked against their hashes."""
    requirements = folder / "requirements.txt"
    lines = [f"{name}=={version} --hash=sha256:{sha}" for name, (version, sha) in WHEELS.items()]
    requirements.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--require-hashes", "--only-binary=:all:"]
    command += [*PIP_TARGET, f"--dest={folder}", f"--requirement={requirements}"]
    subprocess.run(command, check=True)
    return sorted(folder.glob("*.whl"))


def unpack(wheels: list[Path], folder: Path) -> None:
    """Unpack the libraries and headers, and nothing else."""
    found = set()
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            wanted = [name for name in names if name in LIBRARIES or name.startswith(HEADERS)]
            archive.extractall(folder, wanted)
            found.update(wanted)
    if missing := sorted(LIBRARIES - found):
        raise SystemExit(f"get_libtorch: not in the wheels: {', '.join(missing)}")
    # The wheel's libtorch.so needs the GPU half; a linker script in its place does not.
    (folder / "torch/lib/libtorch.so").write_text("INPUT(libtorch_cpu.so libc10.so)\n")


def is_complete(folder: Path) -> bool:
    """Whether a folder holds this version; its version file is written last."""
    version = folder / "torch/build-version"
    return version.is_file() and version.read_text().strip() == VERSION


def main() -> None:
    """Fetch into DEST, unless it is there already."""
    parser = argparse.ArgumentParser(description="Fetch the CPU part of libtorch for agents/ppo.")
    default = Path(__file__).resolve().parent.parent / "third_party" / "libtorch"
    parser.add_argument("dest", nargs="?", type=Path, default=default)
    dest: Path = parser.parse_args().dest.resolve()
    if is_complete(dest):
        print(f"libtorch {VERSION} is in {dest}")
        return
    if sys.platform != "linux":
        raise SystemExit(
            f"get_libtorch: only Linux x86-64 is served; install torch=={VERSION} with pip and "
            "set LIBTORCH_USE_PYTORCH=1"
        )
    if dest.exists() and any(dest.iterdir()) and not (dest / "torch").is_dir():
        raise SystemExit(f"get_libtorch: {dest} holds something else; name another folder")
    dest.parent.mkdir(parents=True, exist_ok=True)
    print(f"fetching libtorch {VERSION} into {dest} (540 MB) ...", flush=True)
    # On the same disk, so that the finished folder can be moved into place at once.
    with tempfile.TemporaryDirectory(dir=dest.parent) as temporary:
        staged = Path(temporary, "libtorch")
        unpack(download(Path(temporary)), staged)
        # torch-sys reads this file and refuses a version that does not fit.
        (staged / "torch/build-version").write_text(f"{VERSION}\n")
        if dest.exists():
            shutil.rmtree(dest)
        staged.rename(dest)
    if dest == default:
        print("cargo finds it there (.cargo/config.toml)")
    else:
        print(f"set LIBTORCH={dest / 'torch'}")


if __name__ == "__main__":
    main()
