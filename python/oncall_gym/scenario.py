"""A scenario by name, path, dict or list: to its JSON text, and to the files that it names.

Reads files and parses nothing: what a scenario may say, and every error in it, is the engine's
matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from oncall_gym import _native
from oncall_gym.errors import OptionError, ScenarioError

__all__ = ["ScenarioFiles", "ScenarioLike", "ScenarioText", "resolve", "scenario_names"]

#: A shipped name, a path to a JSON file, the content of such a file, or names and paths to mix.
ScenarioLike: TypeAlias = str | Path | Mapping[str, Any] | Sequence[str]


class ScenarioFiles(dict[str, str]):
    """Texts by name, read from a folder when first asked for and kept.

    Since they are kept, a pickled environment needs no files any more.
    """

    def __init__(self, folder: Path | None = None, texts: Mapping[str, str] | None = None) -> None:
        """Looks in `folder`; starts with `texts`."""
        super().__init__(texts or {})
        self.folder = folder

    def __missing__(self, name: str) -> str:
        """Reads a file; an error in it becomes a `ScenarioError` that tells where it is named."""
        path = Path(name) if self.folder is None else self.folder / name
        self[name] = text = path.read_text(encoding="utf-8")
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        """A plain dict's pickling would lose the folder."""
        return (type(self), (self.folder, dict(self)))


@dataclass(frozen=True)
class ScenarioText:
    """A scenario as the engine takes it."""

    #: JSON.
    text: str
    #: Name of the file, for messages; None if it was given otherwise.
    file: str | None = None
    #: What it refers to: the CSV of a demand series, scenarios of a mixture.
    files: ScenarioFiles = field(default_factory=ScenarioFiles)


def scenario_names() -> list[str]:
    """Names of the scenarios that come along: those of the fleet, then those of discovery."""
    return _native.scenario_names()


def _world_of(name: str) -> str:
    """World of a scenario by its name or path; what cannot be read is left to the engine."""
    world = _native.scenario_world(name)
    if world is None:
        try:
            content = json.loads(Path(name).read_text(encoding="utf-8"))
            world = content.get("world") if isinstance(content, dict) else None
        except (OSError, ValueError):
            world = None
    return world if isinstance(world, str) else "fleet"


def _from_path(path: Path) -> ScenarioText:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}") from error
    return ScenarioText(text, str(path), ScenarioFiles(path.parent))


def _from_name(name: str) -> ScenarioText:
    text = _native.scenario_text(name)
    if text is not None:
        return ScenarioText(text)
    path = Path(name)
    if path.suffix == ".json" or path.is_file():
        return _from_path(path)
    known = ", ".join(scenario_names())
    raise ScenarioError(f"scenario = {name!r}: expected a path to a JSON file or one of {known}")


def _to_json(content: object) -> str:
    try:
        return json.dumps(content, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"scenario: the dict is no JSON: {error}") from error


def resolve(scenario: ScenarioLike) -> ScenarioText:
    """The text of a scenario.

    A name of a shipped scenario, a path to a JSON file, the content of such a file as a dict, or a
    list of names and paths, of which each episode draws one with equal chances.

    Raises:
        ScenarioError: it cannot be found, read or written as JSON.
        OptionError: it is none of these.
    """
    if isinstance(scenario, str):
        return _from_name(scenario)
    if isinstance(scenario, Path):
        return _from_path(scenario)
    if isinstance(scenario, Mapping):
        return ScenarioText(_to_json(dict(scenario)))
    if isinstance(scenario, Sequence) and all(isinstance(name, str) for name in scenario):
        mixture = {
            "schema_version": 1,
            "world": _world_of(scenario[0]) if scenario else "fleet",
            "name": "mixture",
            "mixture": [{"scenario": name} for name in scenario],
        }
        return ScenarioText(_to_json(mixture))
    raise OptionError(
        f"scenario = {scenario!r}: expected a name, a path, a dict, or a list of names and paths"
    )
