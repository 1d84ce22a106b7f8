"""What a failed stream says, in one line: Spark's own text is a page, and stands in its log."""

import re
from typing import Final

from controlplane.config import KafkaConfig
from controlplane.errors import ControlPlaneError, LogUnavailableError, PrerequisiteError
from streaming.storage import StoragePath
from streaming.tables.warehouse import NO_SPACE, full_disk

_NO_ANSWER: Final = re.compile(
    r"(?:org\.apache\.kafka\.common\.errors\.\w*(?:Timeout|Disconnect)\w*Exception|LogUnavailableError): (.+)"
)
_AFTER_A_CRASH: Final = 'because the return value of "scala.Option.get()" is null'
_LOST: Final = "not available in Kafka any more"
_PYTHON: Final = re.compile(r"^((?:\w+\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE)
_TRACE: Final = "Traceback (most recent call last)"
_SPARK: Final = re.compile(r"terminated with exception: (.+?)(?: SQLSTATE|$)", re.MULTILINE)
_LONGEST: Final = 300


def words_of(failure: str, kafka: KafkaConfig, warehouse_dir: StoragePath) -> str:
    """A failure in one line.

    Args:
        failure: the text of the exception, as Spark or Python gives it.
        kafka: names the servers.
        warehouse_dir: the folder of the tables.
    """
    if NO_SPACE in failure:
        return full_disk(warehouse_dir)
    if _AFTER_A_CRASH in failure:
        repeated = "the batch that it repeats after a stop or a crash"
        return f"Spark fails once behind {repeated} (SPARK-55271); nothing is lost"
    if _LOST in failure:
        return "Kafka no longer has records that were not read"
    no_answer = _NO_ANSWER.search(failure)
    if no_answer:
        return f"Kafka at {kafka.bootstrap_servers} does not answer: {no_answer[1]:.{_LONGEST}}"
    _, _, trace = failure.partition(_TRACE)
    raised = _PYTHON.findall(trace)
    ended = _SPARK.search(failure)
    sentence = raised[-1] if raised else ended[1] if ended else failure.partition("\n")[0]
    return f"{sentence:.{_LONGEST}}"


def final_error(message: str, failure: str) -> ControlPlaneError:
    """The error with which the pipeline ends after a failure that came again and again."""
    return PrerequisiteError(message) if NO_SPACE in failure else LogUnavailableError(message)
