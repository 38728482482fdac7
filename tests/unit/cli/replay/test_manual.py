"""The commands of docs/replay.md and of the pages of tasks, run in order in one folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
BINARIES = Path(sys.executable).parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPEED = re.compile(r"in [\d.]+ s, [\d,]+ events/s")
# Number of outputs that each page shows.
SHOWN_OUTPUTS = {
    "docs/replay.md": 5,
    "docs/tasks/absence.md": 1,
    "docs/tasks/batches.md": 1,
    "docs/tasks/clocks.md": 2,
    "docs/tasks/repeats.md": 1,
}


def _run(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run commands as typed into a shell with the project's environment."""
    environment = {
        **os.environ,
        "PATH": f"{BINARIES}{os.pathsep}{os.environ['PATH']}",
        # This checkout, wherever the command was installed from.
        "PYTHONPATH": str(ROOT),
    }
    # The commands are the project's own.
    return subprocess.run(  # noqa: S603
        ["bash", "-euo", "pipefail", "-c", commands],  # noqa: S607 - the user's own shell
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def _without_speed(text: str) -> str:
    return SPEED.sub("in a moment", text)


def test_every_page_of_tasks_is_run() -> None:
    tasks = {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "tasks").iterdir()}
    assert tasks == set(SHOWN_OUTPUTS) - {"docs/replay.md"}


@pytest.mark.parametrize("page", SHOWN_OUTPUTS)
def test_commands_of_the_manual_write_what_it_shows(page: str, tmp_path: Path) -> None:
    done = None
    compared = 0
    for mark, block in _blocks(page):
        if mark == "sh":
            done = _run(block, tmp_path)
            assert done.returncode == 0, done.stderr
            continue
        if mark == "bash":
            # It needs a Kafka: tests/integration/test_replay_topics.py.
            continue
        assert done is not None
        if mark == "summary":
            assert _without_speed(done.stderr) == _without_speed(block)
        else:
            assert done.stdout == block
        compared += 1
    assert compared == SHOWN_OUTPUTS[page]


def test_commands_of_getting_started_run_on_the_files_of_the_manual(tmp_path: Path) -> None:
    for block in [block for mark, block in _blocks("docs/replay.md") if mark == "sh"][:2]:
        assert _run(block, tmp_path).returncode == 0
    # The file that the page shows for `apply` is the file of the manual.
    start = _blocks("docs/getting-started.md")
    (resources,) = [block for mark, block in start if mark == "yaml"]
    assert resources == (tmp_path / "footsteps.yaml").read_text(encoding="utf-8")
    (commands,) = [block for mark, block in start if mark == "bash"]
    done = _run(commands, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "alarms.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert done.stdout.splitlines()[0].split() == ["threshold", "footsteps"]
