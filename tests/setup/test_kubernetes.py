"""The manifest of the pipeline: valid by Kubernetes' own schemas, and all that it names is there."""

import re
import shlex
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from controlplane.cli.pipeline.sql import Engine
from controlplane.cli.root import root
from controlplane.version import __version__
from tests.helpers.kubernetes_manifest import (
    EXECUTOR_FILE,
    FOLDER,
    MANIFEST,
    MENDING_MANIFEST,
    documents,
    driver_pod,
    named,
    spark_files,
    spark_settings,
)
from tests.helpers.readme import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "run-the-pipeline-on-kubernetes.md"
VERSIONS = ("1.32", "1.34", kubernetes_validate.latest_version())
NAMES = {each["kind"]: {each["metadata"]["name"]} for each in documents()} | {
    "ConfigMap": {each["metadata"]["name"] for each in documents() if each["kind"] == "ConfigMap"}
}


def executor_pod() -> dict[str, Any]:
    """The template of executors."""
    template: dict[str, Any] = yaml.safe_load(spark_files()[EXECUTOR_FILE])
    return template


def driver() -> dict[str, Any]:
    """The driver's container."""
    (container,) = driver_pod()["containers"]
    assert isinstance(container, dict)
    return container


def run_parameters() -> dict[str, Any]:
    """The driver's command line as the command's own parser reads it."""
    group, name, *words = driver()["args"]
    pipeline = root.get_command(click.Context(root), group)
    assert isinstance(pipeline, click.Group)
    return dict(pipeline.commands[name].make_context(name, words).params)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(version: str) -> None:
    """Strictly: a field that Kubernetes does not know would be dropped without a word."""
    for each in (*documents(), *documents(MENDING_MANIFEST), executor_pod()):
        kubernetes_validate.validate(each, version, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_refused() -> None:
    """The check above can fail."""
    broken = named("StatefulSet", "controlplane-pipeline")
    broken["spec"]["template"]["spec"]["restartsPolicy"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


def test_everything_is_in_one_namespace() -> None:
    """And the driver asks for executors there."""
    (namespace,) = NAMES["Namespace"]
    placed = [each["metadata"] for each in documents() if each["kind"] != "Namespace"]
    assert [each.get("namespace") for each in placed] == [namespace] * len(placed)
    assert spark_settings()["spark.kubernetes.namespace"] == namespace


def test_every_name_that_is_referred_to_exists() -> None:
    """Accounts, roles, claims, settings, the driver's own names."""
    pod, settings = driver_pod(), spark_settings()
    binding, set_of_one = named("RoleBinding", "controlplane-pipeline"), named("StatefulSet", "controlplane-pipeline")
    volumes = {each["name"]: each for each in pod["volumes"]}
    (namespace,), (claim,), (service,) = NAMES["Namespace"], NAMES["PersistentVolumeClaim"], NAMES["Service"]
    (account,) = NAMES["ServiceAccount"]
    assert {binding["roleRef"]["name"]} == NAMES["Role"]
    assert [(each["kind"], each["name"], each["namespace"]) for each in binding["subjects"]] == [
        ("ServiceAccount", account, namespace)
    ]
    assert pod["serviceAccountName"] == account
    assert volumes["tables"]["persistentVolumeClaim"]["claimName"] == claim
    claimed = "spark.kubernetes.executor.volumes.persistentVolumeClaim.tables"
    assert settings[f"{claimed}.options.claimName"] == claim
    asked = {volumes["spark"]["configMap"]["name"], *(each["configMapRef"]["name"] for each in driver()["envFrom"])}
    assert asked == NAMES["ConfigMap"]
    assert {each["name"] for each in driver()["volumeMounts"]} == volumes.keys()
    assert set_of_one["spec"]["serviceName"] == service
    labels = set_of_one["spec"]["template"]["metadata"]["labels"]
    assert labels == named("Service", service)["spec"]["selector"] == set_of_one["spec"]["selector"]["matchLabels"]
    assert settings["spark.driver.host"] == f"{service}.{namespace}.svc"
    assert settings["spark.kubernetes.driver.pod.name"] == f"{set_of_one['metadata']['name']}-0"


def test_the_command_takes_its_words() -> None:
    """Master, folder and port are those of the other objects."""
    parameters, settings = run_parameters(), spark_settings()
    mounts = {each["name"]: each["mountPath"] for each in driver()["volumeMounts"]}
    assert parameters["master"] == "k8s://https://kubernetes.default.svc"
    assert str(parameters["tables_dir"]) == mounts["tables"]
    assert settings["spark.kubernetes.executor.volumes.persistentVolumeClaim.tables.mount.path"] == mounts["tables"]
    environment = {each["name"]: each["value"] for each in driver()["env"]}
    assert environment["SPARK_CONF_DIR"] == mounts["spark"]
    assert settings["spark.kubernetes.executor.podTemplateFile"] == f"{mounts['spark']}/{EXECUTOR_FILE}"
    executors = int(settings["spark.executor.instances"]) * int(settings["spark.executor.cores"])
    assert parameters["cores"] == executors <= parameters["bucket_count"]
    options = {f"CONTROLPLANE_{name.upper()}" for name in (each.name for each in root.params) if name}
    assert named("ConfigMap", "controlplane-options")["data"].keys() <= options


def test_ports_are_the_same_everywhere() -> None:
    """The container's, the service's, Spark's, the probes' and those that Prometheus is told."""
    ports = {each["name"]: each["containerPort"] for each in driver()["ports"]}
    settings = spark_settings()
    assert ports == {each["name"]: each["port"] for each in named("Service", "controlplane-pipeline")["spec"]["ports"]}
    assert str(ports["driver"]) == settings["spark.driver.port"]
    assert str(ports["blocks"]) == settings["spark.driver.blockManager.port"]
    assert ports["metrics"] == run_parameters()["metrics_port"]
    for probe in ("readinessProbe", "livenessProbe"):
        assert driver()[probe]["httpGet"]["port"] == "metrics"
    annotations = named("StatefulSet", "controlplane-pipeline")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(ports["metrics"])


def test_the_pod_for_mending_is_like_the_driver() -> None:
    """Image, user, folder of tables and options; it asks Kubernetes for nothing."""
    (pod,) = documents(MENDING_MANIFEST)
    spec, (container,) = pod["spec"], pod["spec"]["containers"]
    assert {pod["metadata"]["namespace"]} == NAMES["Namespace"]
    for name in ("image", "envFrom", "securityContext"):
        assert container[name] == driver()[name], name
    assert spec["securityContext"] == driver_pod()["securityContext"]
    assert spec["automountServiceAccountToken"] is False
    settings_of_spark = "spark"  # the one volume that only a session of Spark reads
    assert container["volumeMounts"] == [each for each in driver()["volumeMounts"] if each["name"] != settings_of_spark]
    assert spec["volumes"] == [each for each in driver_pod()["volumes"] if each["name"] != settings_of_spark]
    assert pod["metadata"]["name"] in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_login_of_the_page_fits_into_the_driver(version: str) -> None:
    """Its lines are put where the page says; the variable is the command's, and executors mount the same path."""
    text = blocks(PAGE)["login"]
    added, given = yaml.safe_load(text), named("StatefulSet", "controlplane-pipeline")
    (its_container,) = added["containers"]
    spec = given["spec"]["template"]["spec"]
    assert its_container["name"] == spec["containers"][0]["name"]
    spec["containers"][0]["volumeMounts"] += its_container["volumeMounts"]
    spec["volumes"] += added["volumes"]
    kubernetes_validate.validate(given, version, strict=True)
    (mount,), (volume,) = its_container["volumeMounts"], added["volumes"]
    assert mount["name"] == volume["name"]
    setting = f"spark.kubernetes.executor.secrets.{volume['secret']['secretName']}"
    page = PAGE.read_text(encoding="utf-8")
    assert f"{setting}  {mount['mountPath']}" in page
    assert f"CONTROLPLANE_SECURITY: {mount['mountPath']}/kafka.properties" in page
    assert "security" in {each.name for each in root.params}


def test_no_container_has_a_right_that_it_does_not_need() -> None:
    """Neither root nor what root may; executors cannot ask the API, and the driver writes nothing else than pods."""
    for pod in (driver_pod(), executor_pod()["spec"]):
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
    assert executor_pod()["spec"]["automountServiceAccountToken"] is False
    created = [
        rule["resources"] for rule in named("Role", "controlplane-pipeline")["rules"] if "create" in rule["verbs"]
    ]
    assert created == [["pods", "configmaps"]]


def test_driver_and_executors_are_of_one_image() -> None:
    """Which is tagged with this version, and is of the Spark, the user and the path that everything else names."""
    image = spark_settings()["spark.kubernetes.container.image"]
    dockerfile = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    pyspark = next(
        line
        for line in (FOLDER.parents[1] / "pyproject.toml").read_text(encoding="utf-8").split('"')
        if "pyspark==" in line
    )
    assert driver()["image"] == image
    assert image in dockerfile
    assert image.endswith(f":{__version__}")
    assert f"FROM spark:{pyspark.removeprefix('pyspark==')}-" in dockerfile
    assert re.findall(r"^USER (\d+)$", dockerfile, re.MULTILINE) == [str(driver_pod()["securityContext"]["runAsUser"])]


def test_the_page_names_what_is_there_to_change() -> None:
    """Each name of its table stands in the manifest, the image as often as the page says; its question is accepted."""
    text, manifest = PAGE.read_text(encoding="utf-8"), MANIFEST.read_text(encoding="utf-8")
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) > 6
    assert [name for name in names if name not in manifest] == []
    assert manifest.count(spark_settings()["spark.kubernetes.container.image"]) == 2
    (question,) = re.findall(r"python -m controlplane.cli (sql .*)$", text, re.MULTILINE)
    _, *words = shlex.split(question)
    sql = root.get_command(click.Context(root), "sql")
    assert sql is not None
    asked = sql.make_context("sql", words).params
    mounted = {each["mountPath"] for each in driver()["volumeMounts"]}
    assert str(asked["tables_dir"]) in mounted
    assert asked["engine"] is Engine.SPARK
