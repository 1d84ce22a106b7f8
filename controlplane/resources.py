"""The files of the package that are not modules: schemas, topics, rights, Java libraries, the example.

They are found inside an installed wheel, under ``controlplane/_resources``, or at the root of a checkout, where they
are edited. No installation has both, so the order of the search does not matter.
"""

from pathlib import Path, PurePosixPath

from controlplane.errors import PrerequisiteError

FOLDERS = ("schemas", "infra", "examples")
"""The folders that may hold resources; ``pyproject.toml`` defines which parts of them are in the wheel."""

_PACKAGE_FOLDER = Path(__file__).resolve().parent


def resource_path(relative: str) -> Path:
    """Find a file or folder that belongs to the package.

    Args:
        relative: the path in the repository, with forward slashes, such as ``schemas`` or ``infra/kafka/topics.toml``.

    Returns:
        The absolute path of an existing file or folder.

    Raises:
        ValueError: the path is not below :data:`FOLDERS` (a defect of the caller).
        PrerequisiteError: the installation does not have the file.
    """
    parts = PurePosixPath(relative).parts
    if not parts or parts[0] not in FOLDERS or ".." in parts:
        raise ValueError(
            f"a resource is named by a path below {', '.join(FOLDERS[:-1])} or {FOLDERS[-1]}, not by {relative!r}"
        )
    roots = _roots(_PACKAGE_FOLDER)
    for root in roots:
        candidate = root.joinpath(*parts)
        if candidate.exists():
            return candidate
    searched = ", ".join(str(root) for root in roots)
    raise PrerequisiteError(
        f"{relative} is missing (searched in {searched}): the installation is incomplete; install the package again, "
        "or run from a whole checkout"
    )


def _roots(package_folder: Path) -> tuple[Path, ...]:
    """The folders to search; the parent of the package counts only in a checkout, never in ``site-packages``."""
    inside_wheel = package_folder / "_resources"
    checkout = package_folder.parent
    return (inside_wheel, checkout) if (checkout / "pyproject.toml").is_file() else (inside_wheel,)
