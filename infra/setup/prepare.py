"""Set-up from a bare checkout, first step: a Python that will do. The second step is environment.py.

Run by whatever ``python3`` the machine has, so this file keeps to what Python 3.6 understands; environment.py does not.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
NEWEST = (3, 13)
EXIT_UNSUITABLE_MACHINE = 2


def is_suitable(version):  # noqa: ANN001, ANN201 - a tuple of numbers, a truth value: see the module's docstring
    """Whether the project runs on this version, given as (major, minor)."""
    return OLDEST <= tuple(version) <= NEWEST


def find_suitable_python():  # noqa: ANN201 - a path or None
    """The path of a suitable Python on PATH, the oldest version first, or None."""
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        path = shutil.which(f"python3.{minor}")
        # A name on PATH may be a version manager's stand-in that cannot run: only an answer counts.
        if path and _answers(path, (3, minor)):
            return path
    return None


def _answers(path, version):  # noqa: ANN001, ANN202 - a path and (major, minor)
    question = "import sys; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [path, "-c", question], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.decode().split() == [str(number) for number in version]


def main(arguments):  # noqa: ANN001, ANN201 - a list of strings, an exit code
    """Go on with environment.py, under another Python if this one does not suit."""
    if not is_suitable(sys.version_info[:2]):
        better = find_suitable_python()
        if better is None:
            found = "{} is {}.{}".format(sys.executable, *sys.version_info[:2])
            oldest, newest = ("{}.{}".format(*version) for version in (OLDEST, NEWEST))
            print(
                f"Python {oldest} to {newest} is needed, and {found}: install one (for example the package "
                f"python{oldest}), or name one: make PYTHON=/path/to/python{oldest}",
                file=sys.stderr,
            )
            return EXIT_UNSUITABLE_MACHINE
        os.execv(better, [better, str(Path(__file__).resolve()), *arguments])  # noqa: S606 - the same script, no shell
    import environment  # noqa: PLC0415 - only now is it known that this Python understands the file

    return environment.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
