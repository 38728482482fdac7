"""The folder of the kernels depends on all source files of a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.kernels import choose_kernel_folder, kernel_folder

ROOT = Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with sources like a checkout."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "correlation" / "timing").mkdir(parents=True)
    (tmp_path / "correlation" / "kernels.py").write_text("1")
    (tmp_path / "correlation" / "timing" / "called.py").write_text("2")
    return tmp_path


def test_a_change_of_any_source_file_changes_the_folder(checkout: Path) -> None:
    former = kernel_folder(checkout)
    assert former == kernel_folder(checkout)
    assert former.parent == checkout / ".cache" / "numba"
    called = checkout / "correlation" / "timing" / "called.py"
    called.write_text("3")
    assert kernel_folder(checkout) != former
    called.write_text("2")
    assert kernel_folder(checkout) == former


def test_a_checkout_has_its_own_folder(checkout: Path) -> None:
    environment: dict[str, str] = {}
    choose_kernel_folder(environment, checkout)
    assert environment == {"NUMBA_CACHE_DIR": str(kernel_folder(checkout))}


@pytest.mark.parametrize("chosen", [{"NUMBA_CACHE_DIR": "/kernels"}, {"NUMBA_BOUNDSCHECK": "1"}])
def test_the_folder_of_the_user_is_kept(checkout: Path, chosen: dict[str, str]) -> None:
    environment = dict(chosen)
    choose_kernel_folder(environment, checkout)
    assert environment == chosen


def test_unchecked_bounds_are_the_usual_ones(checkout: Path) -> None:
    environment = {"NUMBA_BOUNDSCHECK": "0"}
    choose_kernel_folder(environment, checkout)
    assert environment["NUMBA_CACHE_DIR"] == str(kernel_folder(checkout))


def test_a_source_file_that_cannot_be_read_does_not_end_the_command(checkout: Path) -> None:
    # An editor's lock, a link to a file that does not exist.
    (checkout / "correlation" / ".#kernels.py").symlink_to("nobody@nowhere")
    environment: dict[str, str] = {}
    choose_kernel_folder(environment, checkout)
    assert environment == {}


def test_an_installed_package_has_the_folder_of_numba(checkout: Path) -> None:
    (checkout / "pyproject.toml").unlink()
    environment: dict[str, str] = {}
    choose_kernel_folder(environment, checkout)
    assert environment == {}


def test_make_uses_the_same_folder() -> None:
    shown = subprocess.run(
        ["make", "--dry-run", "--always-make", "test"],  # noqa: S607 - the make of the path
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"NUMBA_CACHE_DIR={kernel_folder(ROOT)}-checked " in shown.stdout
