"""Set the local model up with one command: ``python local_model/setup.py``.

Makes ``.venv-local`` beside the app, installs what the model needs (it compiles for some minutes), and fetches the
weights. What is there already is kept. Then the Live page can start and stop the model.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE.parent / ".venv-local"


def main() -> int:
    """Do what is still to be done; returns the exit code."""
    python = VENV / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        print(f"Making {VENV.name} …", flush=True)
        venv.create(VENV, with_pip=True)
    needed = str(HERE / "requirements.txt")
    steps = [
        (
            "Installing (a few minutes: it compiles) …",
            ["-m", "pip", "install", "-q", "-r", needed],
        ),
        ("Fetching the weights (1.1 GB) …", [str(HERE / "fetch.py")]),
    ]
    for told, command in steps:
        print(told, flush=True)
        code = subprocess.run([str(python), *command]).returncode
        if code:
            print("That failed: see above. The same command goes on from here.", file=sys.stderr)
            return code
    print("Ready: start it on the Live page, or with local_model/serve.py.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
