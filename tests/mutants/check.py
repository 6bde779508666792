#!/usr/bin/env python3
"""Checks that every mutant can still be planted, and that the tests that notice it are still there.

usage: check.py ROOT
"""

import pathlib
import re
import sys

from mutants import MUTANTS


def sources_of_tests(root):
    """The text of all tests, and the names of the programs they are built into."""
    tests = "\n".join(path.read_text() for path in sorted((root / "tests").rglob("*.cpp")))
    tests += "\n".join(path.read_text() for path in sorted((root / "testing").rglob("*.?pp")))
    lists = "\n".join(path.read_text() for path in sorted((root / "tests").rglob("CMakeLists.txt")))
    programs = set(re.findall(r"add_executable\((\w+)", lists))
    programs |= {f"holdfast_redis_{name}_tests"
                 for name in re.findall(r"holdfast_redis_program\((\w+)", lists)}
    return tests, programs


def problems_of(mutant, root, tests, programs):
    path = root / mutant.file
    count = path.read_text().count(mutant.old) if path.is_file() else 0
    if count != 1:
        yield f"its text is there {count} times"
    if mutant.old == mutant.new:
        yield "it changes nothing"
    if bool(mutant.test) == bool(mutant.survives):
        yield "it needs a test that notices it, or the reason why none does"
    words = [word for word in mutant.test.split() if not re.match(r"[A-Z_]+=", word)]
    if words and words[0] not in programs:
        yield f"there is no program {words[0]}"
    for name in re.findall(r"\w+", words[1]) if len(words) > 1 else []:
        if name not in tests:
            yield f"there is no test {name}"


def main(root):
    tests, programs = sources_of_tests(root)
    found = [f"{one.file}: {one.promise} {problem}" for one in MUTANTS
             for problem in problems_of(one, root, tests, programs)]
    twice = {(one.file, one.old, one.new) for one in MUTANTS}
    if len(twice) != len(MUTANTS):
        found.append("a mutant is there twice")
    print("\n".join(found) or f"{len(MUTANTS)} mutants can be planted")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
