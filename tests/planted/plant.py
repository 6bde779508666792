#!/usr/bin/env python3
"""Writes copies of sources in which tests can switch mistakes on.

usage: plant.py ROOT --list        names the files that have mistakes
       plant.py ROOT --check       checks that every mistake can be planted
       plant.py ROOT DIRECTORY     checks, and writes the copies: DIRECTORY/src/core/renewal.cpp, …

The tables are core_mistakes.py, records_mistakes.py and nodes_mistakes.py (for the simulator) and
waiting_mistakes.py (for the model checker).
"""

import pathlib
import re
import sys

import core_mistakes
import nodes_mistakes
import records_mistakes
import waiting_mistakes

SIMULATED = [core_mistakes.TABLE, records_mistakes.TABLE, nodes_mistakes.TABLE]
MODELLED = [waiting_mistakes.TABLE]
TABLES = SIMULATED + MODELLED


def files_of(tables):
    return sorted({row.file for table in tables for row in table.mistakes})


def problems_of_row(row, switch, text):
    count = text.count(row.old)
    if count != 1:
        yield f"its text is there {count} times, not once:\n{row.old}"
    if switch.replace("NAME", row.name) not in row.new:
        yield f"its new text does not ask {switch.replace('NAME', row.name)}"


def problems_of(tables, texts):
    """`texts` has the text of each file, or nothing where there is no such file."""
    for table in tables:
        for row in table.mistakes:
            for problem in problems_of_row(row, table.switch, texts.get(row.file, "")):
                yield f"{row.file}: {row.name}: {problem}"
    for file in files_of(tables):
        its_tables = [table for table in tables if any(row.file == file for row in table.mistakes)]
        if len(its_tables) > 1:
            yield f"{file}: has mistakes of several tables"
        text = texts.get(file, "")
        rows = [row for row in its_tables[0].mistakes if row.file == file and row.old in text]
        rows.sort(key=lambda row: text.index(row.old))
        for row, after in zip(rows, rows[1:]):
            if text.index(after.old) < text.index(row.old) + len(row.old):
                yield f"{file}: {row.name} and {after.name} change the same text"


def problems_of_names(root):
    """Mistakes that the tests can switch on and nobody makes, and the reverse."""
    header = (root / "tests/planted/planted.hpp").read_text()
    body = re.search(r"enum class bug [^{]*\{(.*?)\};", header, re.S).group(1)
    bugs = set(re.findall(r"^\s*(\w+),", body, re.M)) - {"none"}
    simulated = "\n".join(path.read_text() for path in sorted((root / "testing/sim").glob("*.cpp")))
    in_tables = {row.name for table in SIMULATED for row in table.mistakes}
    in_simulator = set(re.findall(r"planted\((?:core::)?bug::(\w+)", simulated))
    for name in sorted(bugs - in_tables - in_simulator):
        yield f"planted.hpp: {name}: nothing makes this mistake"
    for name in sorted(in_tables - bugs):
        yield f"planted.hpp: {name}: the simulator does not know this mistake"
    tests = "\n".join(path.read_text() for path in sorted((root / "tests/model").glob("*_test.cpp")))
    for name in sorted({row.name for table in MODELLED for row in table.mistakes}):
        if f'"{name}"' not in tests:
            yield f"waiting_mistakes.py: {name}: no test of tests/model looks for it"


def with_mistakes(text, rows, header, original):
    """The copy's text. Its lines have the numbers that they have in the original."""
    result = f'// Written by tests/planted/plant.py.\n#include <{header}>\n#line 1 "{original}"\n'
    at, shifted = 0, False
    for row in sorted(rows, key=lambda row: text.index(row.old)):
        start = text.index(row.old)
        between, shifted = numbered_again(text, at, start, shifted, original)
        result += between + row.new
        at = start + len(row.old)
        shifted = shifted or row.new.count("\n") != row.old.count("\n")
    return result + numbered_again(text, at, len(text), shifted, original)[0]


def numbered_again(text, start, end, shifted, original):
    """`text[start:end]`, with a #line where its first line begins; whether that is still to come."""
    line_start = start if text[start - 1 : start] == "\n" else text.find("\n", start, end) + 1
    if not shifted or line_start == 0 or line_start == len(text):
        return text[start:end], shifted
    number = text.count("\n", 0, line_start) + 1
    return f'{text[start:line_start]}#line {number} "{original}"\n{text[line_start:end]}', False


def write(path, text):
    """Only what has changed, so that only that is compiled again."""
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main(root, wish):
    if wish == "--list":
        print("\n".join(files_of(TABLES)))
        return 0
    texts = {file: (root / file).read_text() for file in files_of(TABLES) if (root / file).is_file()}
    problems = [*problems_of(TABLES, texts), *problems_of_names(root)]
    if problems:
        print("\n".join(f"tests/planted: {problem}" for problem in problems), file=sys.stderr)
        return 1
    if wish == "--check":
        print(f"{sum(len(table.mistakes) for table in TABLES)} places of mistakes can be planted")
        return 0
    for table in TABLES:
        for file in files_of([table]):
            rows = [row for row in table.mistakes if row.file == file]
            write(pathlib.Path(wish) / file,
                  with_mistakes(texts[file], rows, table.header, root / file))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(64)
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
