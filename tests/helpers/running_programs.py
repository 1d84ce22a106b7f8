"""The programs that run below a process, as they are told apart by their command lines."""

from collections.abc import Iterator

import psutil


def running_programs(root: psutil.Process) -> Iterator[tuple[psutil.Process, list[str]]]:
    """A process and all below it, each with its command line.

    Left out are processes that have ended, and forks that are about to become another program: a JVM forks for each
    that it starts, such as chmod, and for a moment the fork has the JVM's name and memory. Spark's Python workers are
    forks of their daemon, and stay that program.
    """
    lines: dict[int, list[str]] = {}
    for each in (root, *root.children(recursive=True)):
        try:
            words, parent = each.cmdline(), each.ppid()
        except psutil.Error:
            continue
        lines[each.pid] = words
        # One without words has ended, and its parent has not asked for its status yet.
        if words and ("pyspark.daemon" in words or words != lines.get(parent)):
            yield each, words
