"""What is written down is true: examples run, tables are complete, the stub fits."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oncall_gym
from conftest import SHORT, keep
from oncall_gym import OncallEnv, OncallVectorEnv

ROOT = Path(__file__).parents[2]
PACKAGE = Path(oncall_gym.__file__).parent

MODULES = [
    module.name
    for module in pkgutil.walk_packages([str(PACKAGE)], "oncall_gym.")
    if module.name.rsplit(".", 1)[-1] not in ("__main__", "_native", "sb3")
]


@pytest.mark.parametrize("name", ["oncall_gym", *MODULES])
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_the_package_has_an_example() -> None:
    assert doctest.testmod(oncall_gym).attempted > 5


def test_examples_in_the_readme() -> None:
    readme = ROOT / "README.md"
    if not readme.is_file():
        pytest.skip("no README beside the tests")
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        subprocess.run([sys.executable, "-c", block], check=True, capture_output=True)


def table(text: str, heading: str) -> list[str]:
    """Names in the first column of the table with that heading."""
    lines = inspect.cleandoc(text).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(heading))
    names = []
    for line in lines[start + 2 :]:
        if line.startswith("==="):
            break
        names += re.findall(r"^`(\w+)`", line)
    return names


def test_the_table_of_keywords_is_that_of_the_constructor() -> None:
    text = OncallVectorEnv.__doc__ or ""
    parameters = inspect.signature(OncallVectorEnv).parameters
    assert table(text, "keyword") == list(parameters)
    single = set(inspect.signature(OncallEnv).parameters)
    assert set(parameters) - single == {"num_envs", "autoreset_mode", "copy"}
    assert single <= set(parameters)
    for name, parameter in parameters.items():
        row = next(line for line in text.splitlines() if line.strip().startswith(f"`{name}`  "))
        default = parameter.default
        shown = f'`"{default}"`' if isinstance(default, str) else str(default)
        assert shown in row


def test_the_readme_has_the_same_tables() -> None:
    readme = ROOT / "README.md"
    if not readme.is_file():
        pytest.skip("no README beside the tests")
    rows = [line.split("|") for line in readme.read_text(encoding="utf-8").splitlines()]
    known = {tuple(cell.strip() for cell in row[1:-1]) for row in rows if len(row) > 3}
    text = inspect.cleandoc(OncallVectorEnv.__doc__ or "")
    for heading in ("keyword", "key  "):
        assert set(table(text, heading)) <= {cells[0].strip("`") for cells in known}
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if line.startswith("`") and len(cells) == 3:
            assert any(row[:2] == tuple(cells[:2]) for row in known), cells


def test_the_tables_of_infos_are_complete() -> None:
    seen: set[str] = set()
    for mode in ("next_step", "same_step", "disabled"):
        env = OncallVectorEnv(SHORT, 2, autoreset_mode=mode, cost_info=True, info="signals")
        infos = [env.reset(seed=1)[1]]
        infos += [env.step(keep(env))[4] for _ in range(5 if mode == "disabled" else 6)]
        for info in infos:
            seen |= set(info)
            keys = {key for key in info if not key.startswith("_")}
            assert {key for key in info if key.startswith("_")} == {f"_{key}" for key in keys}
            for key in keys:
                mask = info[f"_{key}"]
                assert mask.shape == (2,)
                assert mask.dtype == np.bool_
    names = {key for key in seen if not key.startswith("_")}
    assert names == set(table(OncallVectorEnv.__doc__ or "", "key "))

    env = OncallEnv(SHORT, cost_info=True, info="signals")
    seen = set(env.reset(seed=1)[1])
    for _ in range(5):
        seen |= set(env.step(keep(env))[4])
    assert seen == set(table(OncallEnv.__doc__ or "", "key "))


def test_the_stub_is_that_of_the_module(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    settings = tmp_path / "mypy.ini"
    settings.write_text(f"[mypy]\nmypy_path = {PACKAGE.parent}\n")
    command = [sys.executable, "-m", "mypy.stubtest", "oncall_gym._native"]
    command += ["--mypy-config-file", str(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_docstrings_of_the_engine_are_there() -> None:
    for name, member in inspect.getmembers(oncall_gym._native.VecCore):
        if not name.startswith("_"):
            assert inspect.getdoc(member), name
