"""The dashboard: what it shows, that it changes with the shift, and that it refuses plainly."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

from oncall_gym import OncallEnv, OncallVectorEnv
from oncall_gym.render import Header, History, ansi, draw

pytest.importorskip("matplotlib", reason="needs oncall-gym[render]")

HEADER = Header("spike", 7, 2, 240, 14.4)


@pytest.fixture(scope="module")
def played() -> tuple[Any, History]:
    """A spike and the history of its first hundred minutes under the opening dials."""
    env = OncallVectorEnv("spike", 1)
    env.reset(seed=[3])
    spec = env.world_spec
    history = History(spec)
    names = spec.signal_names
    for _ in range(100):
        history.append(
            [env.signals()[name][0] for name in names],
            [env.episode_stats(running=True)[term][0] for term in spec.term_names],
        )
        env.step(np.zeros((1, len(spec.dials)), np.int64))
    return spec, history


def test_history_keeps_the_newest_rows_in_order(played: tuple[Any, History]) -> None:
    spec, _ = played
    history = History(spec, capacity=5)
    assert len(history) == 0
    assert history.last("serving", 9.0) == 9.0
    for minute in range(8):
        row = np.zeros(len(spec.signals))
        row[spec.signal_names.index("serving")] = minute
        history.append(row, [minute] * len(spec.terms))
    assert history.column("serving").tolist() == [3, 4, 5, 6, 7]
    assert (len(history), history.last("serving")) == (5, 7.0)
    assert history.dollars.tolist() == [7.0] * len(spec.terms)
    assert not history.has("nonsense")
    history.clear()
    assert (len(history), history.dollars.sum()) == (0, 0.0)
    with pytest.raises(ValueError, match="capacity"):
        History(spec, capacity=1)


def test_text_shows_the_readouts_as_they_are(played: tuple[Any, History]) -> None:
    spec, history = played
    text = ansi(history, spec, HEADER)
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in text
    assert lines[0].startswith("spike · seed 7 · episode 2 · minute 99/240 · 09:39")
    demand = next(line for line in lines if line.startswith("Demand"))
    assert f"{history.last('offered_rps'):,.0f} req/s" in demand
    assert f"min_instances {history.last('dial_min_instances'):.0f}" in text
    assert f"all {history.dollars.sum():.2f}" in text
    assert sum("▁" <= character <= "█" for character in demand) == 40
    for dial in spec.dials:
        assert dial.name in text


def test_text_says_when_the_pager_rings(played: tuple[Any, History]) -> None:
    spec, _ = played
    for page, said in ((1.0, "** PAGE **"), (0.0, "quiet")):
        history = History(spec)
        row = np.zeros(len(spec.signals))
        row[spec.signal_names.index("page")] = page
        history.append(row)
        assert ansi(history, spec, HEADER).splitlines()[0].endswith(said)


def test_image_has_its_size_and_is_a_new_array(played: tuple[Any, History]) -> None:
    spec, history = played
    image = draw(history, spec, HEADER)
    assert (image.dtype, image.shape) == (np.uint8, (640, 960, 3))
    assert draw(history, spec, HEADER, width=800, height=500).shape == (500, 800, 3)
    again = draw(history, spec, HEADER)
    assert np.array_equal(image, again)
    assert not np.shares_memory(image, again)


def test_image_shows_each_part(played: tuple[Any, History]) -> None:
    """Each change of what is shown changes the picture where it is shown, and nowhere far off."""
    spec, history = played
    image = draw(history, spec, HEADER)

    def changed(name: str, value: float) -> Any:
        other = pickle.loads(pickle.dumps(history))
        row = np.array([other.last(signal) for signal in spec.signal_names])
        row[spec.signal_names.index(name)] = value
        other._rows[other._count - 1] = row
        ys, xs, _ = np.nonzero(draw(other, spec, HEADER) != image)
        assert len(ys), f"{name} is not shown"
        return ys.min() // 213, ys.max() // 213, xs.min() // 320, xs.max() // 320

    serving = history.last("serving")
    assert changed("serving", serving + 1) == (0, 0, 1, 1)
    assert changed("utilization", 0.9) == (0, 0, 2, 2)
    assert changed("p99_ms", 2500.0) == (1, 1, 0, 0)
    assert changed("burn_1h", 30.0) == (1, 1, 1, 1)
    assert changed("budget_left", 0.2) == (1, 1, 2, 2)
    assert changed("cache_hit", 0.1) == (2, 2, 0, 0)
    assert changed("dial_cache_ttl_s", 300.0) == (2, 2, 1, 1)
    badge = draw(history, spec, HEADER)[20:45, 880:945].reshape(-1, 3)
    other = pickle.loads(pickle.dumps(history))
    other._rows[other._count - 1, spec.signal_names.index("page")] = 1.0
    page = draw(other, spec, HEADER)[20:45, 880:945].reshape(-1, 3)
    assert badge[:, 1].mean() > badge[:, 0].mean()  # green
    assert page[:, 0].mean() > page[:, 1].mean()  # red


def test_extreme_values_are_drawn(played: tuple[Any, History]) -> None:
    spec, _ = played
    history = History(spec)
    for size in (0.0, 1e9, -1e6):
        history.append(np.full(len(spec.signals), size), np.full(len(spec.terms), size))
        assert draw(history, spec, HEADER).shape == (640, 960, 3)
        assert all(len(line) <= 80 for line in ansi(history, spec, HEADER).splitlines())


def test_bad_requests_are_refused(played: tuple[Any, History]) -> None:
    spec, history = played
    for board in (ansi, draw):
        with pytest.raises(ValueError, match="history: expected at least one row"):
            board(History(spec), spec, HEADER)
    with pytest.raises(ValueError, match="at least 640 and 400"):
        draw(history, spec, HEADER, width=100)


def test_missing_matplotlib_names_the_extra(
    played: tuple[Any, History], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, history = played
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"oncall-gym\[render\]"):
        draw(history, spec, HEADER, width=901)


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_environments_draw_their_rows(mode: str) -> None:
    vector = OncallVectorEnv("cache-flush", 2, render_mode=mode, max_minutes=6)
    single = OncallEnv("cache-flush", render_mode=mode, max_minutes=6)
    vector.reset(seed=[5, 6])
    single.reset(seed=5)
    keep = np.zeros(len(vector.world_spec.dials), np.int64)
    for _ in range(4):
        vector.step(np.stack([keep, keep]))
        single.step(keep)
    first, second = vector.render()
    alone = single.render()
    assert np.array_equal(first, alone)
    assert not np.array_equal(first, second)
    assert np.array_equal(vector.render()[0], first)


def test_the_last_frame_of_an_episode_is_its_own(played: tuple[Any, History]) -> None:
    """In next-step mode the board stays until the reset step, and then starts over."""
    env = OncallVectorEnv("steady", 1, render_mode="ansi", max_minutes=3)
    env.reset(seed=1)
    keep = np.zeros((1, len(env.world_spec.dials)), np.int64)
    for _ in range(3):
        _, _, _, truncated, _ = env.step(keep)
    assert truncated[0]
    assert "episode 0 · minute 3/3" in env.render()[0]
    assert "all 0.00" not in env.render()[0]
    env.step(keep)
    assert "episode 1 · minute 0/3" in env.render()[0]
    assert "all 0.00" in env.render()[0]


def test_frames_are_quick_enough_for_videos(played: tuple[Any, History]) -> None:
    """A frame is drawn over kept bitmaps: far quicker than the first, which draws everything."""
    import time

    spec, history = played
    begin = time.process_time()
    draw(history, spec, HEADER, width=910)
    first = time.process_time() - begin
    times = []
    for _ in range(7):
        begin = time.process_time()
        draw(history, spec, HEADER, width=910)
        times.append(time.process_time() - begin)
    assert min(times) < first / 2


def test_gymnasium_records_it(tmp_path: Any) -> None:
    pytest.importorskip("moviepy", reason="RecordVideo needs it")
    folder = tmp_path / "video"
    env = gymnasium.wrappers.RecordVideo(
        OncallEnv("spike", render_mode="rgb_array", max_minutes=3),
        str(folder),
        disable_logger=True,
    )
    env.reset(seed=0)
    for _ in range(3):
        env.step(env.action_space.sample())
    env.close()
    assert [path.suffix for path in (tmp_path / "video").iterdir()] == [".mp4"]
