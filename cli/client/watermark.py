"""Reset the watermark of a stream (``reset-watermark``)."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console

from cli.settings import read_settings
from correlation.printable import printable


def reset_watermark(
    stream: Annotated[str, typer.Argument(help="Name of the stream.")],
    *,
    url: Annotated[
        str | None, typer.Option(help="URL of the service; default: COINCIDE_URL.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Reset the watermark of a stream that a wrong clock or heartbeat moved ahead."""
    # Imported here: slow to import, and --help does not need it.
    from cli.client.near_names import suggesting  # noqa: PLC0415
    from cli.client.rest import ServiceClient  # noqa: PLC0415

    with (
        ServiceClient.of(read_settings(url=url)) as service,
        suggesting(service, {("stream", stream)}),
    ):
        answer = service.post(f"/v1/streams/{quote(stream, safe='')}/reset-watermark", {})
    console = Console(highlight=False, soft_wrap=True)
    if as_json:
        console.print_json(data=answer, indent=None)
        return
    partitions = answer["partitions"].items()
    places = ", ".join(f"partition {number} from offset {offset}" for number, offset in partitions)
    line = f"watermark of {stream} reset" + (f": {places}" if places else "")
    console.print(printable(line), markup=False)
