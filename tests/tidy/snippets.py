"""Compiles the C++ in the documentation: snippets.py ROOT COMPILER.

A ```cpp block that includes something is a file of its own. Any other is a piece of a function, which
finds the names of `SCENE` around it. ```text, ```sh and the like are not looked at.
"""

import re
import subprocess
import sys
from pathlib import Path

HEADERS = """
#include <holdfast/engine.hpp>
#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/once.hpp>
#include <holdfast/guard/storage_lease.hpp>
#include <holdfast/holdfast.hpp>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <thread>
"""

SCENE = """
[[maybe_unused]] static void snippet_{number}([[maybe_unused]] holdfast::client& client,
    [[maybe_unused]] holdfast::mutex& stock, [[maybe_unused]] holdfast::lease& lease,
    [[maybe_unused]] holdfast::guard::database& database) {{
    using namespace std::chrono_literals;
    {{
#line {line} "{path}"
{code}
    }}
}}
"""

FILE = """
namespace snippet_{number} {{
#line {line} "{path}"
{code}
}}
"""


def snippets(text):
    """(line, code) of every ```cpp block."""
    for match in re.finditer(r"^```cpp\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, match.start()) + 2, match.group(1)


def translation_unit(path, text):
    includes, bodies = [HEADERS], []
    for number, (line, code) in enumerate(snippets(text)):
        found = re.findall(r"^#include .*$", code, re.M)
        includes += found
        body = re.sub(r"^#include .*$", "", code, flags=re.M)
        shape = FILE if found else SCENE
        bodies.append(shape.format(number=number, line=line, path=path, code=body))
    return "\n".join(includes + bodies), len(bodies)


def main(arguments):
    root, compiler = Path(arguments[1]), arguments[2]
    # `main` is not special inside a namespace, and may end without a return elsewhere.
    flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wno-return-type", f"-I{root}/include"]
    command = [compiler, *flags, "-x", "c++", "-"]
    failed = total = 0
    for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        source, count = translation_unit(str(page.relative_to(root)), page.read_text())
        total += count
        if count and subprocess.run(command, input=source, text=True, check=False).returncode:
            failed += 1
    print(f"{total} snippets, {failed} pages with errors")
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
