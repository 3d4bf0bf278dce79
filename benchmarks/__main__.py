"""``python -m benchmarks [NAME ...]``: every ``bench_*.py`` in turn, or those named, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run the benchmarks asked for; the exit code is the worst of theirs."""
    known = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    unknown = set(sys.argv[1:]) - set(known)
    if unknown:
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    worst = 0
    for name in sys.argv[1:] or known:
        print(f"\n== {name}", flush=True)
        worst = max(worst, subprocess.run([sys.executable, "-m", f"benchmarks.bench_{name}"], check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
