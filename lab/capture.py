"""Writes what the lab says into docs/learn: capture.py PROGRAM ROOT [SCENARIO…].

Each page has one ```text block, which is replaced by the output of a run. Fails when a verdict is not
as stated, and leaves that page alone.
"""

import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```text\n.*?^```$", re.M | re.S)


def scenarios(program):
    listing = subprocess.run([program, "list"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in listing.stdout.splitlines()]


def output_of(program, name):
    run = subprocess.run([program, "run", name], capture_output=True, text=True, check=False)
    return run.stdout.strip() if run.returncode == 0 else None


def main(arguments):
    program, learn = arguments[1], Path(arguments[2]) / "docs" / "learn"
    failed = 0
    for name in arguments[3:] or scenarios(program):
        output = output_of(program, name)
        if output is None:
            print(f"{name}: not as stated")
            failed += 1
            continue
        block = f"```text\n{output}\n```"
        for page in (learn / f"{name}.md", learn / "zh" / f"{name}.md"):
            page.write_text(BLOCK.sub(lambda _: block, page.read_text(), count=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
