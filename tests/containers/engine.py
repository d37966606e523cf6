"""Podman, and base images made from Debian packages because registries may be out of reach.

The folders in `images/` are stand-ins for published images: each is a Dockerfile whose name and
tag are those that our Dockerfile and compose file use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
IMAGES = FOLDER / "images"
MIRROR = "http://deb.debian.org/debian"
SUITES = ("bookworm", "trixie", "forky")
# enough for the slowest build on two busy cores
LIMIT = 3600.0
CONFIGURATION = {
    "CONTAINERS_CONF": str(FOLDER / "containers.conf"),
    "CONTAINERS_REGISTRIES_CONF": str(FOLDER / "registries.conf"),
}
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PACKAGES = (
    "podman",
    "buildah",
    "runc",
    "netavark",
    "aardvark-dns",
    "catatonit",
    "iptables",
    "mmdebstrap",
)


class ContainerError(Exception):
    """A command of the container engine failed; the message holds the end of its output."""


def run(command: Sequence[str | Path], *, stdin: str | None = None, cwd: Path | None = None) -> str:
    """Run a command to its end and return its output; raise ContainerError when it fails."""
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        cwd=cwd,
        env={**os.environ, **CONFIGURATION},
    )
    if done.returncode != 0:
        output = (done.stdout + done.stderr)[-4000:]
        raise ContainerError(f"{' '.join(map(str, command))} failed:\n{output}")
    return done.stdout


def podman(*arguments: str | Path, stdin: str | None = None) -> str:
    return run(["podman", *arguments], stdin=stdin)


def run_once(image: str, script: str, *options: str) -> str:
    """Run a shell script in a fresh container."""
    arguments = ("run", "--rm", "--interactive", *options, image, "sh", "-eu")
    return podman(*arguments, stdin=script)


def require_engine() -> None:
    """Install what is missing from Debian; only root on Debian can."""
    programs = ("podman", "buildah", "runc", "iptables", "mmdebstrap")
    if all(shutil.which(program) for program in programs):
        return
    if os.geteuid() != 0:
        raise ContainerError(f"Run: sudo apt-get install {' '.join(PACKAGES)}")
    run(["apt-get", "update", "-qq"])
    run(["apt-get", "install", "-qq", "--no-install-recommends", *PACKAGES])


def debian(suite: str) -> str:
    """`debian:SUITE-slim`, made by mmdebstrap unless it exists."""
    name = f"docker.io/library/debian:{suite}-slim"
    if not _exists(name):
        with tempfile.TemporaryDirectory() as folder:
            tar = Path(folder, "root.tar")
            run(
                [
                    "mmdebstrap", "--variant=minbase", "--include=ca-certificates",
                    # the mirror may be a snapshot whose signature has expired
                    '--aptopt=Acquire::Check-Valid-Until "false"',
                    '--aptopt=APT::Install-Recommends "false"',
                    *_host_certificates(), suite, str(tar), MIRROR,
                ]
            )  # fmt: skip
            variables = [f"ENV {key}={CERTIFICATES}" for key in ("SSL_CERT_FILE", "PIP_CERT")]
            podman("import", *(f"--change={change}" for change in variables), tar, name)
    return name


def _host_certificates() -> list[str]:
    """Trust what this machine trusts: its way to the package indexes may have its own authority."""
    return [f"--customize-hook=copy-in {CERTIFICATES} {CERTIFICATES.parent}"]


def build(name: str, folder: Path, *options: str, files: dict[str, Path] | None = None) -> str:
    """Build an image from a folder with a Dockerfile, with cached layers.

    `files` are copied beside a copy of the Dockerfile first: programs that no package contains.
    """
    # the format that keeps HEALTHCHECK
    command = [
        "buildah",
        "bud",
        "--isolation",
        "chroot",
        "--layers",
        "--quiet",
        "--format",
        "docker",
    ]
    command += [*options, "--tag", name]
    if not files:
        run([*command, folder])
        return name
    with tempfile.TemporaryDirectory(prefix="forager-image-") as context:
        shutil.copytree(folder, context, dirs_exist_ok=True)
        for target, source in files.items():
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, Path(context, target))
        run([*command, context])
    return name


def python_image(version: str) -> tuple[str, str, tuple[str, ...]] | None:
    """An image with this Python, uv and pipx: its name, the interpreter, options of `run`.

    Debian's suites have 3.11, 3.13 and 3.14; another version comes from this user's pyenv.
    """
    suites = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky"}
    suite = suites.get(version, "bookworm")
    own = next((python for python, its in suites.items() if its == suite), "")
    debian(suite)
    arguments = ("--build-arg", f"SUITE={suite}", "--build-arg", f"PYTHON={own}")
    name = build(f"localhost/forager-test-python:{own}", IMAGES / "install", *arguments)
    if version == own:
        return name, f"/usr/bin/python{version}", ()
    for prefix in sorted(Path.home().glob(f".pyenv/versions/{version}.*")):
        return name, f"{prefix}/bin/python", ("--volume", f"{prefix}:{prefix}:ro")
    return None


def _exists(image: str) -> bool:
    return subprocess.run(["podman", "image", "exists", image], check=False).returncode == 0


if __name__ == "__main__":
    require_engine()
    for each in sys.argv[1:] or SUITES:
        print(debian(each))
