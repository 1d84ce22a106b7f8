"""Certificates for a test, with a new authority each time, so that no key is kept."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_DAYS = "2"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, as PEM files."""

    certificate: Path
    key: Path

    def both(self) -> Path:
        """One file with the key and the certificate, as Kafka takes a PEM store."""
        path = self.key.with_suffix(".both.pem")
        path.write_text(self.key.read_text("utf-8") + self.certificate.read_text("utf-8"), encoding="utf-8")
        return path


class Authority:
    """Signs certificates for 127.0.0.1 and for users."""

    def __init__(self, folder: Path) -> None:
        """Make the authority's own key and certificate in this folder."""
        if shutil.which("openssl") is None:
            pytest.skip("no openssl on this machine: the certificates of this test cannot be made")
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._own = Certificate(folder / "ca.pem", folder / "ca.key")
        _openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", _DAYS, "-subj", "/CN=test authority"),
            *("-keyout", str(self._own.key), "-out", str(self._own.certificate)),
        )

    @property
    def certificate(self) -> Path:
        """The certificate authority that clients trust."""
        return self._own.certificate

    def sign(self, name: str) -> Certificate:
        """A certificate for a server on this machine, or for a user of this name."""
        made = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        request, names = self._folder / f"{name}.csr", self._folder / f"{name}.names"
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n", encoding="utf-8")
        subject = ("-subj", f"/CN={name}", "-keyout", str(made.key), "-out", str(request))
        _openssl("req", "-newkey", "rsa:2048", "-nodes", *subject)
        _openssl(
            *("x509", "-req", "-in", str(request), "-days", _DAYS, "-extfile", str(names), "-CAcreateserial"),
            *("-CA", str(self._own.certificate), "-CAkey", str(self._own.key), "-out", str(made.certificate)),
        )
        return made


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
