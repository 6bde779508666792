"""Compares what shared libraries export with the committed lists: exports.py [--renew] LIBRARY…

The list of libholdfast_redis.so is exports/libholdfast_redis.txt beside this file. It has a line for
each class and function, without members and parameters.
"""

import re
import subprocess
import sys
from pathlib import Path

LISTS = Path(__file__).parent / "exports"
NAMESPACES = {"holdfast", "v0", "engines", "guard", "detail"}
OF_A_CLASS = re.compile(r"^(vtable|typeinfo name|typeinfo|VTT|guard variable|[a-z-]*thunk) (for|to) ")


def without_parameters(name):
    """The name up to its parameters, without those of templates."""
    result, depth = "", 0
    for character in name.replace("operator ", "operator_").replace("[abi:cxx11]", ""):
        if character == "(" and depth == 0:
            break
        depth += {"<": 1, ">": -1}.get(character, 0)
        if depth == 0 and character != ">":
            result += character
    return result.split(" ")[-1]


def class_or_function(symbol):
    """holdfast::v0::client for each of its members."""
    parts = []
    for part in without_parameters(OF_A_CLASS.sub("", symbol)).split("::"):
        parts.append(part)
        if part not in NAMESPACES:
            break
    return "::".join(parts)


def exported(library):
    command = ["nm", "--dynamic", "--defined-only", "--demangle", "--format=posix", str(library)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    # The name, the type, and two numbers; a demangled name has blanks in it.
    symbols = [line.rsplit(" ", 3)[0] for line in lines]
    symbols = [re.sub(r" [A-Za-z]$", "", symbol) for symbol in symbols]
    return sorted({class_or_function(symbol) for symbol in symbols})


def main(arguments):
    renew = "--renew" in arguments
    differs = False
    for library in (Path(each) for each in arguments if each != "--renew"):
        listed = LISTS / (library.name.split(".")[0] + ".txt")
        now = exported(library)
        if renew:
            listed.write_text("".join(name + "\n" for name in now))
            continue
        before = listed.read_text().split() if listed.exists() else []
        for name in sorted(set(now) - set(before)):
            print(f"{library.name} exports {name}, which is not in {listed.name}")
        for name in sorted(set(before) - set(now)):
            print(f"{library.name} does not export {name}, which is in {listed.name}")
        differs = differs or now != before
    if differs:
        print("If this is meant: " + " ".join(["exports.py", "--renew", *arguments]))
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
