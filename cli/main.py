"""The ``coincide`` command line.

Exit codes: 0 success; 1 a check failed; 2 wrong usage or settings; 3 error of Java, 4 of the Java
archives, 5 of the broker, 6 of the service, 7 of a started process; 130 interrupted.
Commands import their dependencies when they run, so that ``--help`` is fast.
"""

# Imports inside commands: Spark and Kafka's client take a second to import; --help needs neither.
# ruff: noqa: PLC0415
import os
import sys
from importlib import metadata
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console

from cli.client.asyncapi_command import asyncapi
from cli.client.backup_command import backup, restore
from cli.client.configuration_commands import apply, diff, export, schema
from cli.client.explain_command import explain
from cli.client.health_command import health
from cli.client.keys_command import keys_app
from cli.client.lines import counted, write_json_line
from cli.client.plan_command import plan
from cli.client.query_command import query_app
from cli.client.repair_command import repair_config
from cli.client.rescale_command import rescale
from cli.client.tail_command import tail
from cli.client.validate_command import validate
from cli.client.watermark import reset_watermark
from cli.error_messages import describe_error
from cli.errors import BrokerError, CliError, UsageError
from cli.exit_codes import INTERRUPTED
from cli.flags import FlagsCommand, FlagsGroup
from cli.interrupts import plain_interrupts
from cli.replay.command import replay
from cli.settings import Settings, options_to, read_settings
from cli.variables import warn_of_unknown
from correlation.printable import printable

app = typer.Typer(
    name="coincide",
    cls=FlagsGroup,
    help="Correlate streams of events whose times are uncertain.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Bootstrap = Annotated[
    str | None,
    typer.Option(help="Addresses of the Kafka brokers; default: COINCIDE_BOOTSTRAP."),
]
Url = Annotated[str | None, typer.Option(help="URL of the service; default: COINCIDE_URL.")]
_Rebuild = Annotated[
    bool,
    typer.Option(
        "--rebuild",
        help="Replace the query of the checkpoint by one whose state is rebuilt from Kafka.",
    ),
]
_FromNow = Annotated[
    bool, typer.Option("--from-now", help="As --rebuild, but give up the buffered events.")
]
_FromBeginning = Annotated[
    bool,
    typer.Option(
        "--from-beginning",
        help="Replace the query by one that reads all topics and writes their alarms again.",
    ),
]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors are one sentence on standard error.

    Parameters
    ----------
    arguments
        Arguments without the program name; those of the process by default.

    Raises
    ------
    SystemExit
        Always, with the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Characters that the terminal's encoding lacks are escaped, not an error.
            stream.reconfigure(errors="backslashreplace")
    try:
        with plain_interrupts():
            app(args=arguments, prog_name="coincide")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (CliError, ValidationError, OSError) as error:
        sentences, exit_code = describe_error(error)
        problem = Console(stderr=True, highlight=False, soft_wrap=True)
        for sentence in sentences:
            problem.print("error: ", style="bold red", end="")
            problem.print(printable(sentence, kept="\n\t"), markup=False)
        sys.exit(exit_code)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer's own signature
    """Print the version and exit."""
    if wanted:
        typer.echo(f"coincide {metadata.version('coincide')}")
        raise typer.Exit


@app.callback()
def _before_each(
    *,
    version: Annotated[  # noqa: ARG001 - its callback has done it
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    warning = Console(stderr=True, highlight=False, soft_wrap=True)
    for sentence in warn_of_unknown(os.environ):
        warning.print("warning: ", style="yellow", end="")
        warning.print(printable(sentence), markup=False)


def _start_options(*, rebuild: bool, now: bool, beginning: bool) -> tuple[str, ...]:
    """Return the options with which a start of the job replaces the query of the checkpoint."""
    given = {"--rebuild": rebuild, "--from-now": now, "--from-beginning": beginning}
    found = tuple(option for option, is_given in given.items() if is_given)
    if len(found) > 1:
        raise UsageError(
            "--rebuild, --from-now and --from-beginning cannot be combined; use one of them"
        )
    return found


@app.command()
def up(
    *,
    bootstrap: Annotated[
        str | None,
        typer.Option(help="Use this Kafka instead of starting the embedded one."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port of the service; 0: a free one.", min=0, max=65535)
    ] = None,
    broker_port: Annotated[
        int, typer.Option(help="Port of the embedded broker; 0: a free one.", min=0, max=65535)
    ] = 9092,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of data, checkpoint and logs; default: COINCIDE_DATA."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="First remove the data of earlier runs.")
    ] = False,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Remove all data at the end.")
    ] = False,
    rebuild: _Rebuild = False,
    from_now: _FromNow = False,
    from_beginning: _FromBeginning = False,
) -> None:
    """Start the whole local stack: broker, service and job; Ctrl-C stops it.

    --rebuild, --from-now and --from-beginning are those of `job`, for this start only.
    """
    from cli.stack.options import StackOptions
    from cli.stack.up import run_up

    if fresh and ephemeral:
        raise UsageError("--fresh and --ephemeral cannot be combined; remove one of them")
    start = _start_options(rebuild=rebuild, now=from_now, beginning=from_beginning)
    folder = None if ephemeral else (data or Settings().data)
    if port is None:
        from service.settings import Settings as ServiceSettings

        port = ServiceSettings().port
    if bootstrap is not None:
        bootstrap = read_settings(bootstrap=bootstrap).bootstrap
    run_up(
        StackOptions(
            data=folder,
            bootstrap=bootstrap,
            broker_port=broker_port,
            service_port=port,
            job_options=start,
        ),
        fresh=fresh,
        console=Console(stderr=True, highlight=False),
    )


@app.command()
def serve() -> None:
    """Run the service (REST, metrics) in the foreground."""
    from service.main import serve as run_service
    from service.settings import Settings as ServiceSettings

    raise typer.Exit(run_service(ServiceSettings()))


@app.command()
def job(
    *,
    rebuild: _Rebuild = False,
    from_now: _FromNow = False,
    from_beginning: _FromBeginning = False,
) -> None:
    """Run the streaming job (Spark) in the foreground; SIGTERM stops it between two batches.

    The options are in effect for this start only, even with an empty checkpoint.
    """
    from cli.stack.java import find_java

    start = _start_options(rebuild=rebuild, now=from_now, beginning=from_beginning)
    from spark_jobs.main import main as run_job
    from spark_jobs.main import read_start

    find_java()
    raise typer.Exit(run_job(read_start(start)))


@app.command()
def jars() -> None:
    """Fetch missing Java archives of the embedded broker."""
    from cli.stack.jars import broker_jars, default_folder

    folder = default_folder()
    found = len(broker_jars(folder))
    Console().print(f"{counted(found, 'archive')} in {folder}", highlight=False, soft_wrap=True)


@app.command()
def produce(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="File with one JSON document per line; - is standard input. Without a file, "
            "--close-stream closes streams and nothing is sent."
        ),
    ] = None,
    *,
    topic: Annotated[str | None, typer.Option(help="Topic that receives the events.")] = None,
    stream: Annotated[
        str | None, typer.Option(help="Stream whose topic receives the events.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Events per second.", min=0.001)] = None,
    speed: Annotated[
        float | None,
        typer.Option(
            help="Speed as a multiple of the recorded speed; requires --stream.", min=0.000001
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Path of the field that is the key of the record.")
    ] = None,
    close_stream: Annotated[
        list[str] | None,
        typer.Option(
            help="Close this stream at the end: no further events will follow. Repeatable."
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Send the lines of a file to a topic, optionally at a given rate."""
    from cli.client.produce import ProduceOptions, produce_file

    settings = read_settings(bootstrap=bootstrap, url=url)
    options = ProduceOptions(file, topic, stream, rate, speed, key, tuple(close_stream or ()))
    delivery = produce_file(settings, options, Console(stderr=True, highlight=False))
    if as_json:
        write_json_line(delivery._asdict())
    elif file is None:
        Console(soft_wrap=True, highlight=False).print(
            f"{counted(len(options.closes), 'stream')} closed"
        )
    else:
        Console(soft_wrap=True, highlight=False).print(
            f"{counted(delivery.sent - delivery.failed, 'record')} sent; "
            f"to see rejected records: coincide tail --set-aside --from-beginning"
            f"{options_to(settings, 'bootstrap')}"
        )
    if delivery.failed:
        raise BrokerError(
            f"the broker did not store {delivery.failed} of {counted(delivery.sent, 'record')}; "
            f"first error: {delivery.first_error}"
        )


app.command()(apply)
app.command()(diff)
app.command()(export)
app.command()(schema)
app.command()(tail)
app.command()(replay)
app.command()(backup)
app.command()(restore)
app.command("repair-config")(repair_config)
app.command()(rescale)
app.command()(reset_watermark)
app.command()(explain)
app.command()(plan)
app.command()(validate)
app.command()(asyncapi)
app.command()(health)
app.add_typer(query_app, name="query")
app.add_typer(keys_app, name="keys")


@app.command()
def doctor(*, bootstrap: Bootstrap = None, url: Url = None, as_json: AsJson = False) -> None:
    """Check the environment of Coincide: Java, packages, archives, ports, broker, service."""
    from cli.stack.doctor import examine, show

    settings = read_settings(bootstrap=bootstrap, url=url)
    checks = examine(settings)
    if as_json:
        write_json_line([check.to_document() for check in checks])
    else:
        show(checks, Console(highlight=False))
    if any(check.essential and not check.ok for check in checks):
        raise typer.Exit(1)


@app.command()
def demo(
    *,
    days: Annotated[
        int, typer.Option(help="Number of days to replay, from 1 January 2013 on.", min=1, max=365)
    ] = 31,
    messages: Annotated[
        int, typer.Option(help="Number of chat messages to replay.", min=1, max=258_145)
    ] = 20_000,
    rate: Annotated[float, typer.Option(help="Number of events sent per second.", min=1)] = 1000,
    as_json: AsJson = False,
) -> None:
    """Run flights, weather and chat messages through Kafka and Spark, and check the result."""
    from cli.demo.command import run_demo

    report = run_demo(days, messages, rate, Console(stderr=True, highlight=False))
    if as_json:
        write_json_line(report)


for _registered in app.registered_commands:
    _registered.cls = FlagsCommand


if __name__ == "__main__":
    main()
