"""The Go programs of a control plane, built once for each version and kept in the user's cache.

Each is a ``tool`` of a small module beside this file; modules are apart so that their dependencies never meet. A
program is built anew when the files of its module change. ``python -m tests.servers.programs.build NAME...`` builds
what is missing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

__all__ = ["CLUSTER", "PROGRAMS", "Program", "build"]

HERE = Path(__file__).resolve().parent
_KUBERNETES = "v1.36.3"
_FETCHES_OTHERS = (1, 21)
"""From here on a Go fetches the version that a module asks for."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program: the folder of its module here, its main package, and what its linker is told."""

    name: str
    module: str
    package: str
    link: str = ""

    @property
    def path(self) -> Path:
        """Where it is kept, whether it was built or not."""
        key = hashlib.sha256(self.link.encode())
        for name in ("go.mod", "go.sum"):
            key.update((HERE / self.module / name).read_bytes())
        return _cache() / key.hexdigest()[:16] / self.name


def _kubernetes(name: str) -> Program:
    # Not told its version, a server calls itself v0.0.0-master, which clients take for a very old one.
    version, (major, minor, _) = "k8s.io/component-base/version", _KUBERNETES.removeprefix("v").split(".")
    stamps = {"gitVersion": _KUBERNETES, "gitMajor": major, "gitMinor": minor}
    link = " ".join(f"-X {version}.{key}={value}" for key, value in stamps.items())
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", link)


CLUSTER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Those of a control plane."""
PROGRAMS = {
    program.name: program
    for program in (
        Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
        *map(_kubernetes, CLUSTER[1:]),
        Program("karpenter", "karpenter", "sigs.k8s.io/karpenter/kwok"),
        Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    )
}
"""All programs by name."""


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "gsa-tests"


def build(program: Program) -> Path:
    """Where the program is, built now if it is not there."""
    if program.path.exists():
        return program.path
    go, begun, made = _go(), monotonic(), program.path.with_suffix(f".{os.getpid()}")
    program.path.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {program.link}", "-o", str(made)]
    subprocess.run([go, "build", *flags, program.package], cwd=HERE / program.module, check=True)
    # Another process may have built the same: the last to finish replaces a program with its equal.
    made.replace(program.path)
    sys.stderr.write(f"built {program.name} in {monotonic() - begun:.0f} s\n")
    return program.path


def _go() -> str:
    """The Go on the PATH; leaves with a sentence where there is none of use."""
    found = shutil.which("go")
    told = "" if found is None else subprocess.check_output([found, "version"], text=True, cwd=HERE)
    number = re.search(r"go(\d+)\.(\d+)", told)
    if found is None or number is None or (int(number[1]), int(number[2])) < _FETCHES_OTHERS:
        raise SystemExit(
            f"The control plane is built from source by Go 1.21 or newer; here is {told.strip() or 'none'}. "
            "Install a newer one first."
        )
    return found


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PROGRAMS:
        build(PROGRAMS[wanted])
