"""Files of the checkpoint on this machine, whose modes Java sets itself.

Without its native library, Hadoop runs the command chmod for each file that it creates: about ten
times a batch, 4 ms each. The class that replaces this, `LocalFiles.java`, is compiled when the job
starts, by the compiler with which Spark compiles its plans (Janino, in the archives of pyspark).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from py4j.java_gateway import JavaGateway

_log = logging.getLogger(__name__)

_SOURCE = Path(__file__).with_name("LocalFiles.java")
_CLASS = "coincide.LocalFiles"
_ROOT = "file:///"
# Spark passes properties with this prefix to Hadoop.
_HADOOP = "spark.hadoop."
_OURS = "fs.file.impl"


def use_local_files(gateway: JavaGateway, properties: Mapping[str, str]) -> bool:
    """Let Hadoop in this Java process use `LocalFiles` for the scheme `file`.

    Hadoop keeps one object for a scheme, so this must run before Spark starts there.

    Parameters
    ----------
    gateway : JavaGateway
        Connection to Java.
    properties : mapping
        Properties of Spark. If they name another class for the scheme, nothing is changed.

    Returns
    -------
    bool
        Whether `LocalFiles` is used. If not, Hadoop runs chmod, which is slower.
    """
    if _HADOOP + _OURS in properties:
        return False
    try:
        return _use(gateway.jvm, properties)
    # Py4J takes a class that does not exist for a package, which cannot be called.
    except (Py4JError, TypeError, OSError) as error:
        _log.warning("Hadoop runs chmod for each file of the checkpoint: %s", error)
        return False


def _use(jvm: Any, properties: Mapping[str, str]) -> bool:  # noqa: ANN401 - packages of Java
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE.read_text(encoding="utf-8"))
    configuration = jvm.org.apache.hadoop.conf.Configuration()
    for name, value in properties.items():
        if name.startswith(_HADOOP):
            configuration.set(name.removeprefix(_HADOOP), value)
    configuration.set(_OURS, _CLASS)
    configuration.setClassLoader(compiler.getClassLoader())
    files = jvm.org.apache.hadoop.fs.FileSystem
    # The object that Java's start may have made.
    files.closeAll()
    found = files.get(jvm.java.net.URI(_ROOT), configuration)
    return bool(found.getClass().getName() == _CLASS)
