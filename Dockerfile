# One image, three roles: `serve` (the default), `job`, and any other command of `coincide`.
#
#   docker build --tag coincide .
#   docker run --rm coincide --help

# Debian 12 (bookworm) has Java 17, with which Spark and Kafka are tested.
FROM python:3.11.16-slim-bookworm@sha256:528257d48c1da0dcecc2e725d1ae34498d60c965f1241e39cd6a85a8859bdf84 AS base

# Versions are not pinned: Debian removes superseded builds, so a pin would break the build later.
# The package of Java links its manual pages into a folder that slim images do not have.
# hadolint ignore=DL3008
RUN mkdir --parents /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 coincide \
    && useradd --uid 10001 --gid coincide --home-dir /var/lib/coincide --create-home coincide

ENV PATH=/opt/coincide/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/var/cache/coincide/numba


FROM base AS build

WORKDIR /build

# Dependencies first: a change of the source does not install them again.
COPY requirements/runtime.txt requirements/build.txt requirements/
RUN python -m venv /opt/coincide \
    && pip install --no-cache-dir --require-hashes --requirement requirements/runtime.txt \
       --requirement requirements/build.txt

COPY . .
# numba identifies the source of a cached kernel by its modification time, of which a layer keeps only
# whole seconds. Each file therefore gets a time computed from its content. The pinned build backend
# is used, and not a newer one; the image needs neither it nor pip.
RUN pip install --no-cache-dir --no-compile --no-deps --no-build-isolation . \
    && pip uninstall --yes setuptools pip \
    && packages="$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    && find "$packages/correlation" -name '*.py' -exec \
       sh -c 'for f; do touch --date="@$(cksum < "$f" | cut -d" " -f1)" "$f"; done' sh {} + \
    && python -m compileall -q "$packages/correlation" "$packages/kafka_client" \
       "$packages/coincide" "$packages/service" "$packages/spark_jobs" "$packages/cli"

# Compiles the kernels for this type of processor; on other types the first batch compiles them.
RUN python deploy/warm_up.py


FROM base

LABEL org.opencontainers.image.title="coincide" \
      org.opencontainers.image.description="Correlation of events whose times are uncertain, over Kafka"

COPY --from=build /opt/coincide /opt/coincide
COPY --from=build --chown=10001:10001 /var/cache/coincide /var/cache/coincide

# Folder of the checkpoint: mount a volume here, or set a URL that Spark can read.
# The service starts on all addresses only with access control, or COINCIDE_OPEN_TO_EVERYONE=true.
ENV COINCIDE_CHECKPOINT=/var/lib/coincide/checkpoint \
    COINCIDE_JAVA_CACHE=/var/cache/coincide/java \
    COINCIDE_HOST=0.0.0.0
WORKDIR /var/lib/coincide
RUN install --directory --owner=10001 --group=10001 --mode=0700 checkpoint
USER 10001:10001

EXPOSE 8080

# Check of the default role; the check of the job is in deploy/compose.yaml.
HEALTHCHECK --interval=10s --timeout=12s --start-period=60s \
    CMD ["coincide", "health"]

# tini forwards signals and reaps orphaned processes of the JVM and of Spark's workers.
ENTRYPOINT ["tini", "--", "coincide"]
CMD ["serve"]
