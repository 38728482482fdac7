# One image, three roles: `serve` (the default), `job`, and any other command of `coincide`.
#
#   docker build --tag coincide .
#   docker run --rm coincide --help

# Debian is named because its Java is: this release brings 17, which Spark and Kafka are tried with.
FROM python:3.11-slim-bookworm AS base

# Not pinned: Debian removes superseded builds, and a pin would keep a hole or break the build.
# Java's package links its manual pages: their folder must be there, though slim images have none.
# hadolint ignore=DL3008
RUN mkdir --parents /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 coincide \
    && useradd --uid 10001 --gid coincide --home-dir /var/lib/coincide --create-home coincide

ENV PATH=/opt/coincide/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    COINCIDE_JARS=/opt/coincide/jars \
    NUMBA_CACHE_DIR=/var/cache/coincide/numba


FROM base AS build

WORKDIR /build

# First what changes least, so that a change of the source installs nothing else again.
COPY requirements/runtime.txt requirements/
RUN python -m venv /opt/coincide \
    && pip install --no-cache-dir --require-hashes --requirement requirements/runtime.txt

COPY . .
# A kernel's cache holds for its source's time, of which a layer keeps whole seconds only: each file
# gets a time made of its content, so that another version never takes it for its own.
RUN pip install --no-cache-dir --no-compile --no-deps . \
    && packages="$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    && find "$packages/correlation" -name '*.py' -exec \
       sh -c 'for f; do touch --date="@$(cksum < "$f" | cut -d" " -f1)" "$f"; done' sh {} + \
    && python -m compileall -q "$packages/correlation" "$packages/kafka_client" \
       "$packages/service" "$packages/spark_jobs" "$packages/cli"

# The project's own command fetches the connector; what it downloads stays out of the image.
RUN --mount=type=cache,target=/opt/coincide/jars/ivy \
    python -c 'from cli.stack.jars import spark_jars; print(len(spark_jars()), "archives")'

# Compiled here for machines like this one; another kind of processor compiles at its first batch.
RUN python deploy/warm_up.py


FROM base

LABEL org.opencontainers.image.title="coincide" \
      org.opencontainers.image.description="Correlation of events whose times are uncertain, over Kafka"

COPY --from=build /opt/coincide /opt/coincide
COPY --from=build --chown=10001:10001 /var/cache/coincide /var/cache/coincide

# The checkpoint: mount a volume here, or name a URL that Spark reaches.
ENV COINCIDE_CHECKPOINT=/var/lib/coincide/checkpoint \
    COINCIDE_HOST=0.0.0.0
WORKDIR /var/lib/coincide
RUN install --directory --owner=10001 --group=10001 --mode=0700 checkpoint
USER 10001:10001

EXPOSE 8080

# Of the default role; the job's own check is in deploy/compose.yaml.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ.get(\"COINCIDE_PORT\", \"8080\")}/livez', timeout=4)"]

# tini passes signals on and reaps what the Java machine and Spark's workers leave.
ENTRYPOINT ["tini", "--", "coincide"]
CMD ["serve"]
