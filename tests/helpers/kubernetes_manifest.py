"""The manifest of the pipeline on Kubernetes, read as data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.helpers.readme import ROOT

FOLDER: Final = ROOT / "infra" / "kubernetes"
MANIFEST: Final = FOLDER / "pipeline.yaml"
MENDING_MANIFEST: Final = FOLDER / "mend.yaml"
EXECUTOR_FILE: Final = "executor.yaml"


def documents(path: Path = MANIFEST) -> list[dict[str, Any]]:
    """All objects of it, in their order."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def named(kind: str, name: str) -> dict[str, Any]:
    """One object."""
    (found,) = [each for each in documents() if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def driver_pod() -> dict[str, Any]:
    """The ``spec`` of the driver's pod."""
    spec: dict[str, Any] = named("StatefulSet", "controlplane-pipeline")["spec"]["template"]["spec"]
    return spec


def spark_settings() -> dict[str, str]:
    """What ``spark-defaults.conf`` of the manifest says."""
    text = spark_files()["spark-defaults.conf"]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.strip().split(maxsplit=1) for line in lines)


def spark_files() -> Mapping[str, str]:
    """The files of Spark's settings."""
    files: Mapping[str, str] = named("ConfigMap", "controlplane-spark")["data"]
    return files
