"""The checkpoint folder of the job: Spark's checkpoint and the job's own files beside it.

All files are accessed through Hadoop's file systems, so the folder can be on any file system that
Spark can write.
"""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from spark_jobs.driver.failures import naming_store, query_error

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from kafka_client.partition_offsets import Place

# An offsets file begins with a version and properties; one line per source follows.
_HEAD_LINES = 2
_NO_OFFSETS = ("", "null", "-")
_QUERY = "query"


class Checkpoint:
    """Files of the job's checkpoint.

    The methods raise CheckpointStoreError when the store cannot be read or written.

    Parameters
    ----------
    session : SparkSession
        Session whose Hadoop file systems are used.
    location : str
        Folder or URL.
    """

    def __init__(self, session: SparkSession, location: str) -> None:
        # Spark's Python API has no file access; Hadoop's is reached through the JVM.
        jvm: Any = session._jvm  # noqa: SLF001 - see above
        self._jvm = jvm
        self._hadoop: Any = jvm.org.apache.hadoop.fs
        self._configuration: Any = session._jsc.hadoopConfiguration()  # noqa: SLF001 - see above
        self._gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - see above
        self.location = location
        given = self._hadoop.Path(location)
        with self.naming_store():
            self._files: Any = given.getFileSystem(self._configuration)
        self._root = self._files.makeQualified(given)
        # Folder of Spark's own checkpoint of the query; the layout names it.
        self.query = _QUERY

    def naming_store(self) -> AbstractContextManager[None]:
        """Raise CheckpointStoreError in place of an I/O error of the store."""
        return naming_store(self._gateway, self.location)

    def query_error(self, query: StreamingQuery) -> Exception | None:
        """Return the error with which a query of this checkpoint ended, or None."""
        return query_error(self._gateway, query, self.location)

    @property
    def is_local(self) -> bool:
        """Whether the folder is in this machine's file system."""
        return bool(self._files.getScheme() == "file")

    @property
    def query_location(self) -> str:
        """Location of Spark's own checkpoint of the query."""
        return str(self._path(self.query).toString())

    @property
    def cache_folder(self) -> str:
        """Folder of the workers' blob files: in a local checkpoint, or relative to each worker."""
        folder = str(self._path("cache").toUri().getPath())
        return folder if self.is_local else "coincide-cache"

    def _path(self, name: str) -> Any:  # noqa: ANN401 - an object of the JVM
        return self._hadoop.Path(self._root, name)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None when the file is missing."""
        path = self._path(name)
        with self.naming_store():
            if not self._files.exists(path):
                return None
            stream = self._files.open(path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically: readers see the old or the new content, even after a kill."""
        path = self._path(name)
        if self.is_local:
            with self.naming_store():
                _replace(Path(path.toUri().getPath()), content)
            return
        unfinished = self._path(f".{path.getName()}.new")
        rename = self._hadoop.Options.Rename
        options = self._gateway.new_array(rename, 1)
        options[0] = rename.OVERWRITE
        with self.naming_store():
            stream = self._files.create(unfinished, True)  # noqa: FBT003 - Java has no keywords
            try:
                stream.write(content)
            finally:
                stream.close()
            context = self._hadoop.FileContext.getFileContext(
                self._root.toUri(), self._configuration
            )
            context.rename(unfinished, path, options)

    def remove(self, name: str) -> None:
        """Remove a file or folder, if it exists."""
        path = self._path(name)
        with self.naming_store():
            self._files.delete(path, True)  # noqa: FBT003 - Java has no keywords
        if self.is_local:
            local = Path(path.toUri().getPath())
            local.with_name(f".{local.name}.crc").unlink(missing_ok=True)

    def query_id(self) -> str | None:
        """Return the id of the query; None: the checkpoint has no query."""
        stored = self.read(f"{self.query}/metadata")
        return None if stored is None else str(orjson.loads(stored)["id"])

    def remove_query(self, name: str) -> None:
        """Remove the folder of a query."""
        # First: without its id, the rest of the query has no marks in Kafka.
        self.remove(f"{name}/metadata")
        self.remove(name)

    def remove_other_queries(self) -> None:
        """Remove what state stores of former queries have written after these were removed."""
        with self.naming_store():
            names = [str(it.getPath().getName()) for it in self._files.listStatus(self._root)]
        for name in names:
            if name.startswith(_QUERY) and name != self.query:
                self.remove(name)

    def newest_batch(self) -> int:
        """Return the newest batch that was begun, or -1."""
        return self._newest("offsets")

    def has_unfinished_batch(self) -> bool:
        """Return whether the newest batch was begun but not completed."""
        return self.newest_batch() > self.completed_batch()

    def completed_batch(self) -> int:
        """Return the newest completed batch, or -1."""
        return self._newest("commits")

    def completed_offsets(self) -> dict[Place, int]:
        """Return the end offset of the completed batches for each (topic, partition)."""
        return parse_offsets(*self._offsets("commits")[_HEAD_LINES:])

    def begun_offsets(self) -> dict[Place, int]:
        """Return the end offsets of the newest batch, whether completed or not."""
        return parse_offsets(*self._offsets("offsets")[_HEAD_LINES:])

    def change_offsets(
        self, gone: Collection[str], ends: Mapping[Place, int] | None = None
    ) -> None:
        """Change the end offsets of the newest batch for deleted or truncated topics.

        An unfinished batch reads no further records of these topics. The next batch reads a removed
        topic from its beginning, and a truncated partition from its new end.

        Parameters
        ----------
        gone : collection of str
            Topics to remove: they were deleted or recreated. Spark would otherwise try to read
            records that no longer exist.
        ends : mapping of (topic, partition) to int
            End offsets of truncated partitions.
        """
        lines = self._offsets("offsets")
        changed = [_changed(line, gone, ends or {}) for line in lines[_HEAD_LINES:]]
        if changed != lines[_HEAD_LINES:]:
            name = f"{self.query}/offsets/{self.newest_batch()}"
            self.write(name, "\n".join([*lines[:_HEAD_LINES], *changed]).encode())

    def remove_unbegun(self) -> None:
        """Remove what former jobs have left in the folder of a query without a batch.

        Spark does not begin such a query if it finds files: a job that is killed while it writes
        the first offsets leaves them under another name, and an executor may outlive its job.
        """
        if self.newest_batch() < 0 and self.completed_batch() < 0:
            for name in ("offsets", "commits", "state"):
                self.remove(f"{self.query}/{name}")

    def discard_batch(self, batch: int) -> None:
        """Remove the offsets of an unfinished batch, and the state that its tasks have stored.

        No query of this checkpoint may run, not even in another process.

        Parameters
        ----------
        batch : int
            Number of the newest batch.
        """
        # Offsets are removed last: until then the batch is unfinished.
        if batch == 0:
            # Spark requires that the first batch finds no state.
            self.remove(f"{self.query}/state")
        else:
            self._remove_state(batch + 1)
        self.remove(f"{self.query}/offsets/{batch}")

    def _remove_state(self, version: int) -> None:
        """Remove changes and snapshots of a version of the state: the batch that reads it."""
        store = self._path(f"{self.query}/state")
        names = {f"{version}.changelog", f"{version}.zip"}
        with self.naming_store():
            if not self._files.exists(store):
                return
            found = self._files.listFiles(store, True)  # noqa: FBT003 - Java has no keywords
            while found.hasNext():
                path = found.next().getPath()
                if path.getName() in names:
                    self._files.delete(path, False)  # noqa: FBT003 - see above

    def _offsets(self, folder: str) -> list[str]:
        """Read the offsets file of the newest batch in a folder, as lines."""
        newest = self._newest(folder)
        stored = self.read(f"{self.query}/offsets/{newest}") if newest >= 0 else None
        return (stored or b"").decode().splitlines()

    def _newest(self, folder: str) -> int:
        path = self._path(f"{self.query}/{folder}")
        with self.naming_store():
            if not self._files.exists(path):
                return -1
            names = [status.getPath().getName() for status in self._files.listStatus(path)]
        return max((int(name) for name in names if name.isdigit()), default=-1)


def parse_offsets(*texts: str | None) -> dict[Place, int]:
    """Parse the offsets of the query's source: a JSON object, topic → partition → offset.

    A source that has not read anything yet has an empty string, null or a dash.
    """
    return {
        (topic, int(number)): offset
        for text in texts
        if text is not None and text not in _NO_OFFSETS
        for topic, found in orjson.loads(text).items()
        for number, offset in found.items()
    }


def _changed(line: str, gone: Collection[str], ends: Mapping[Place, int]) -> str:
    if line in _NO_OFFSETS:
        return line
    found = orjson.loads(line)
    kept = {
        topic: {
            number: min(offset, ends.get((topic, int(number)), offset))
            for number, offset in offsets.items()
        }
        for topic, offsets in found.items()
        if topic not in gone
    }
    # Spark compares offsets as strings, and its source writes them so.
    return line if kept == found else json.dumps(kept)


def _replace(path: Path, content: bytes) -> None:
    """Replace a local file atomically.

    Hadoop renames a file and its checksum in two steps; after a kill between them the file cannot
    be read. Hadoop reads a file without a checksum unverified.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.new")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    unfinished.replace(path)
