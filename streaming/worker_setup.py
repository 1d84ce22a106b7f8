"""What a Python worker of Spark does at the beginning of a task, so that tasks that follow one another cost little."""

import sys
import zipimport

from controlplane.garbage_collection import collect_seldom


def set_up_worker() -> None:
    """Search for unreachable objects seldom, and forget what was read of archives on the path.

    Spark's worker has ``pyspark.zip`` on its path, and lets Python forget what it knows of the path before each task.
    Of an archive Python 3.11 then reads the whole list of contents again, at once: 20 ms a task, which was a fifth of
    the processor time of all workers at a thousand load reports a second. Without an importer there is nothing to read
    until something is imported that the worker has not imported yet.
    """
    collect_seldom()
    archives = [
        path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimport.zipimporter)
    ]
    for path in archives:
        del sys.path_importer_cache[path]
