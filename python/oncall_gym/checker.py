"""A test of any `gymnasium.vector.VectorEnv`, as `check_env` is one of any single environment.

Gymnasium has no such test, and vector environments differ from the contract in ways that show
only in training: seeds that are ignored, buffers that change under the caller's hands, a last
observation that is lost. The rules themselves are in `_vector_check`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

from gymnasium.vector import VectorEnv

from ._vector_check import RULES, Context, NotChecked, Violation

AnyVectorEnv: TypeAlias = VectorEnv[Any, Any, Any]

__all__ = ["Problem", "Report", "VectorEnvError", "check_vector_env", "rule_names"]


@dataclass(frozen=True)
class Problem:
    """One broken rule.

    Attributes:
        rule: name of the rule, one of `rule_names()`.
        message: what was seen, and what was expected instead.
    """

    rule: str
    message: str

    def __str__(self) -> str:
        """The rule and the message."""
        return f"[{self.rule}] {self.message}"


class Report(list[Problem]):
    """All problems found; empty when there are none.

    Attributes:
        checked: names of the rules that were tried.
        not_checked: rule -> reason, for rules that could not be tried, for example since no
            episode ended within `steps`. Read it: a rule that was not tried did not pass.
    """

    def __init__(self) -> None:
        """An empty report."""
        super().__init__()
        self.checked: list[str] = []
        self.not_checked: dict[str, str] = {}

    def rules(self) -> set[str]:
        """Names of the broken rules."""
        return {problem.rule for problem in self}

    def __str__(self) -> str:
        """One line for each problem, then one for each rule not checked."""
        lines = [str(problem) for problem in self] or ["no problem found"]
        lines += [f"not checked: {rule}: {why}" for rule, why in self.not_checked.items()]
        return "\n".join(lines)


class VectorEnvError(AssertionError):
    """A vector environment breaks a rule.

    Attributes:
        problems: what was found; one entry where the check stopped at the first.
    """

    def __init__(self, problems: list[Problem]) -> None:
        """An error about these problems."""
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def rule_names(*, strict: bool = True) -> tuple[str, ...]:
    """Names of all rules, those of `strict` included or not."""
    return tuple(rule.name for rule in RULES if strict or not rule.strict)


def check_vector_env(
    env: AnyVectorEnv | Callable[..., AnyVectorEnv],
    *,
    steps: int = 300,
    seed: int = 0,
    strict: bool = False,
    stochastic: bool = True,
    skip: Collection[str] = (),
    raise_on_first: bool = True,
) -> Report:
    """Tests a vector environment against Gymnasium's contract.

    Checked are attributes and batched spaces, what `reset` and `step` return, infos and their
    masks, seeds (an int, a list, a list with gaps, none), the autoreset mode that the environment
    declares, partial resets by mask, determinism, independence of the rows, and that arrays once
    returned do not change later (unless `env.unwrapped.copy` is False).

    >>> import gymnasium
    >>> check_vector_env(
    ...     lambda: gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    ... )
    []

    Args:
        env: a callable that makes a new environment each time, or an environment. With an
            environment alone, what needs a fresh one or a closed one is not checked, and it is
            left open. A callable that takes the keyword `num_envs` is also asked for a batch of
            one, to compare a row with the same row alone; one that takes `autoreset_mode` is also
            asked for the disabled mode, to compare final observations.
        steps: how many steps at most to take in search of the end of an episode. Rules about
            ends are listed in `Report.not_checked` when no episode ends.
        seed: seeds the actions and the environments.
        strict: adds rules that Gymnasium's own vector environments break, but that hurt:
            `options` changed by `reset`, stepping a closed environment or one never reset without
            an error, no `final_info` in same-step mode.
        stochastic: False for an environment that draws nothing: then nothing has to differ
            between seeds.
        skip: names of rules to leave out.
        raise_on_first: raise at the first problem; else collect all of them.

    Returns:
        The report; without problems if `raise_on_first`.

    Raises:
        VectorEnvError: a rule is broken and `raise_on_first` is set.
        TypeError: `env` is neither an environment nor a callable.
        ValueError: `steps` is not positive, or `skip` names no rule.
    """
    unknown = sorted(set(skip) - set(rule_names()))
    if unknown:
        raise ValueError(f"skip: no such rule {unknown}; rules are {', '.join(rule_names())}")
    if steps < 1:
        raise ValueError(f"steps: expected at least 1, got {steps}")
    report = Report()
    context = _context(env, seed, steps, stochastic)
    try:
        for rule in RULES:
            if rule.name in skip or (rule.strict and not strict):
                continue
            report.checked.append(rule.name)
            try:
                rule.check(context)
                continue
            except Violation as violation:
                report.append(Problem(rule.name, str(violation)))
            except NotChecked as reason:
                report.not_checked[rule.name] = str(reason)
                continue
            except Exception as error:  # any error of the environment is a finding
                report.append(Problem(rule.name, f"raised {type(error).__name__}: {error}"))
            if raise_on_first:
                raise VectorEnvError(list(report))
            if rule.fatal:
                # Without these the other rules would only report the same fault again.
                break
    finally:
        context.close()
    return report


def _context(
    env: AnyVectorEnv | Callable[..., AnyVectorEnv], seed: int, steps: int, stochastic: bool
) -> Context:
    if isinstance(env, VectorEnv):
        given = env
        return Context(lambda: given, seed, steps, stochastic, fresh=False)
    if not callable(env):
        raise TypeError(
            f"env: expected a gymnasium.vector.VectorEnv or a callable that makes one, "
            f"got {type(env).__name__}"
        )
    keywords = _keywords(env)
    return Context(
        env,
        seed,
        steps,
        stochastic,
        fresh=True,
        resizes="num_envs" in keywords,
        remodes="autoreset_mode" in keywords,
    )


def _keywords(factory: Callable[..., AnyVectorEnv]) -> set[str]:
    """Names that a factory says it takes; none where it says nothing."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return set()
    positional_only = inspect.Parameter.POSITIONAL_ONLY
    return {p.name for p in parameters if p.kind is not positional_only}
