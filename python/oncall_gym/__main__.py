"""The command line `oncall`, the same code as the binary."""

from __future__ import annotations

import signal
import sys

from oncall_gym import _native


def main() -> int:
    """Runs the command line with the arguments of the process."""
    # Python only notes an interrupt, and would tell of it when the engine is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.cli_main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
