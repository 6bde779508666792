"""Compiles the C++ in the documentation as a reader would paste it: snippets.py ROOT COMPILER. What a
reader's compiler would warn of is an error.

A ```cpp block that includes something is a file, and is compiled as it is. Any other block is pasted
into the frame of its page: the file on that page with the line `// a snippet of this page goes here`.
Nothing else is added, so a page without a frame has files only.
"""

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PLACE = re.compile(r"^[ \t]*// a snippet of this page goes here\n", re.M)
INCLUDE = re.compile(r"^#include .*\n", re.M)
LANGUAGES = {"", "cpp", "sh", "text", "sql", "cmake", "mermaid", "java", "json", "lua"}
# What a reader has installed anyway who uses these parts.
SYSTEM_HEADERS = ["/usr/include/postgresql", "/usr/include/mariadb"]


def blocks(text):
    """(line of its first line, language, content) of every fenced block."""
    for match in re.finditer(r"^ *```([^\n]*)\n(.*?)^ *```$", text, re.M | re.S):
        line = text.count("\n", 0, match.start()) + 2
        yield line, match.group(1), textwrap.dedent(match.group(2))


def line_mark(line, page):
    return f'#line {line} "{page}"\n'


def pasted(frame, number, line, page, code):
    """The frame with the snippet in its place, in a namespace, without the includes. There `main` is a
    function like any other, which has to return what it says."""
    frame = INCLUDE.sub("", frame).replace("int main() {", "void main_() {")
    before, after = PLACE.split(frame, 1)
    return f"namespace snippet_{number} {{\n{before}{line_mark(line, page)}{code}{after}}}\n"


def sources_of(page, text):
    """Problems, the files to compile (one for all fragments), and how many snippets there are."""
    problems, files, fragments = [], [], []
    for line, language, code in blocks(text):
        if language not in LANGUAGES:
            problems.append(f"{page}:{line - 1}: a block in {language}, which is none of ours")
        elif language == "cpp":
            (files if INCLUDE.search(code) else fragments).append((line, code))
        elif language != "sh" and INCLUDE.search(code):
            problems.append(f"{page}:{line}: C++ that is not marked as such")
    sources = [line_mark(line, page) + code for line, code in files]
    frames = [code for _, code in files if PLACE.search(code)]
    if fragments and len(frames) != 1:
        problems += [f"{page}:{line}: neither a file nor with a frame" for line, _ in fragments]
    elif fragments:
        bodies = [
            pasted(frames[0], number, line, page, code)
            for number, (line, code) in enumerate(fragments)
        ]
        sources.append("".join(INCLUDE.findall(frames[0]) + bodies))
    return problems, sources, len(files) + len(fragments)


class Compiler:
    """Reads holdfast.hpp once for all files that include it first of all, if the compiler can."""

    def __init__(self, program, root, directory):
        self.directory = Path(directory)
        headers = [f"-isystem{path}" for path in SYSTEM_HEADERS]
        includes = [f"-I{directory}", f"-I{root}/include", f"-I{root}/testing/include", *headers]
        self.command = [program, "-std=c++20", "-Wall", "-Wextra", "-Werror", *includes]
        ready = self.directory / "holdfast" / "holdfast.hpp.gch"
        ready.parent.mkdir()
        header = f"{root}/include/holdfast/holdfast.hpp"
        self.run(["-w", "-x", "c++-header", header, "-o", str(ready)])

    def run(self, arguments):
        return subprocess.run([*self.command, *arguments], check=False).returncode == 0

    def compiles(self, numbered):
        number, source = numbered
        file = self.directory / f"snippet_{number}.cpp"
        file.write_text(source)
        return self.run(["-fsyntax-only", str(file)])


def main(arguments):
    root = Path(arguments[1]).resolve()
    problems, sources, total = [], [], 0
    for path in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        found, files, count = sources_of(str(path.relative_to(root)), path.read_text())
        problems, sources, total = problems + found, sources + files, total + count
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(os.cpu_count()) as pool:
        compiler = Compiler(arguments[2], root, directory)
        failed = list(pool.map(compiler.compiles, enumerate(sources))).count(False)
    summary = f"{total} snippets in {len(sources)} files, {failed} of them with errors"
    print("\n".join([*problems, summary]))
    return 1 if problems or failed or not total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
