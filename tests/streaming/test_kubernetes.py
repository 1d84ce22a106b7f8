"""What Spark asks of Kubernetes with the manifest's settings: executors that have all that they need, and no more."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from tests.helpers.kubernetes_api import KubernetesApi
from tests.helpers.kubernetes_manifest import EXECUTOR_FILE, driver_pod, named, spark_files, spark_settings
from tests.helpers.readme import ROOT, clean_environment

PROGRAM = """
import sys
from controlplane.cli.pipeline.spark_setup import spark_config
from streaming.session import build_session

session = build_session("test", spark_config(4, 512, sys.argv[1]))
sys.stdin.read()
session.stop()
"""
VERBS = {"POST": "create", "GET": "get", "WATCH": "watch", "DELETE": "delete", "PATCH": "patch"}
DEADLINE_S = 150.0

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> KubernetesApi:
    """What was asked by a session that started and ended with the manifest's settings."""
    folder = tmp_path_factory.mktemp("spark")
    here = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.port": "0",
        "spark.driver.blockManager.port": "0",
        "spark.kubernetes.executor.podTemplateFile": str(folder / EXECUTOR_FILE),
        # The session waits so long for executors before it goes on without.
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "1s",
    }
    absent = {"spark.kubernetes.authenticate.caCertFile", "spark.kubernetes.authenticate.oauthTokenFile"}
    settings = {name: value for name, value in spark_settings().items() if name not in absent} | here
    lines = (f"{name} {value}\n" for name, value in settings.items())
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    (folder / EXECUTOR_FILE).write_text(spark_files()[EXECUTOR_FILE], encoding="utf-8")
    environment = clean_environment() | {
        "PYTHONPATH": str(ROOT),
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    log = folder / "log"
    with KubernetesApi() as served, log.open("wb") as output:
        command = [sys.executable, "-c", PROGRAM, f"k8s://{served.url}"]
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=output
        )
        try:
            _await_executors(served, process, log)
            process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
            process.communicate()
        assert process.returncode == os.EX_OK, log.read_text(encoding="utf-8")
    return served


def _await_executors(api: KubernetesApi, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while len(executors(api)) < int(spark_settings()["spark.executor.instances"]):
        if process.poll() is not None or time.monotonic() > deadline_s:
            raise AssertionError(f"{api.asked}\n{log.read_text(encoding='utf-8')[-4_000:]}")
        time.sleep(0.1)


def executors(api: KubernetesApi) -> list[dict[str, Any]]:
    """The executors' pods."""
    return [each for each in api.created if each["kind"] == "Pod"]


def test_executors_are_valid_pods_of_the_drivers_image(api: KubernetesApi) -> None:
    """With the rights of the template, which Spark would not complain about if it could not read it."""
    for pod in executors(api):
        kubernetes_validate.validate(pod, kubernetes_validate.latest_version())
        (container,) = pod["spec"]["containers"]
        assert container["image"] == driver_pod()["containers"][0]["image"]
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert pod["metadata"]["labels"]["app"] == "controlplane-pipeline-executor"
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner["name"] == "controlplane-pipeline-0"


def test_executors_have_the_tables_where_the_driver_has_them(api: KubernetesApi) -> None:
    """The same claim, under the same path, to be written."""
    (claim,) = [
        each["persistentVolumeClaim"]["claimName"]
        for each in driver_pod()["volumes"]
        if "persistentVolumeClaim" in each
    ]
    mounts = {each["name"]: each for each in driver_pod()["containers"][0]["volumeMounts"]}
    for pod in executors(api):
        (volume,) = [each for each in pod["spec"]["volumes"] if "persistentVolumeClaim" in each]
        assert volume["persistentVolumeClaim"] == {"claimName": claim, "readOnly": False}
        (mount,) = [each for each in pod["spec"]["containers"][0]["volumeMounts"] if each["name"] == volume["name"]]
        assert mount["mountPath"] == mounts["tables"]["mountPath"]
        assert not mount.get("readOnly")


def test_the_driver_has_the_rights_that_it_used(api: KubernetesApi) -> None:
    """All of them for its start, its executors and its end."""
    rules = named("Role", "controlplane-pipeline")["rules"]
    allowed = {(kind, verb) for rule in rules for kind in rule["resources"] for verb in rule["verbs"]}
    used: set[tuple[str, str]] = set()
    for method, path in api.asked:
        kind, *name = path.split("/namespaces/controlplane/")[1].split("/")
        verb = VERBS[method]
        plural = {"get": "list", "delete": "deletecollection"}
        used.add((kind, verb if name else plural.get(verb, verb)))
    assert used <= allowed, used - allowed
    assert {("pods", "create"), ("pods", "get"), ("configmaps", "create")} <= used
