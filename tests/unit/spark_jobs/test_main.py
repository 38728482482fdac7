"""Arguments of the job."""

from __future__ import annotations

import pytest

from spark_jobs.main import read_start


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ([], None),
        (["--rebuild"], "rebuild"),
        (["--from-now"], "now"),
        (["--from-beginning"], "beginning"),
    ],
)
def test_options_order_a_start_without_the_query_of_the_checkpoint(
    arguments: list[str], start: str | None
) -> None:
    assert read_start(arguments) == start


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--rebuild", "--from-now"], "not allowed with argument --rebuild"),
        (["--reset"], "unrecognized arguments: --reset"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read_start(arguments)
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err
