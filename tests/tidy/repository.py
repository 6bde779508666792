"""Lints the repository: repository.py ROOT. Prints one line per problem; fails if there is any.

Each check is a function from (path, text) to messages, and a pattern of the paths it looks at.
"""

import re
import subprocess
import sys
from pathlib import Path

LONGEST_LINE = 104
# There is no formatter for these here, and breaking a call of theirs seldom helps.
LONGEST_CMAKE_LINE = 120

CODE = r"\.(cpp|hpp|in|cmake|sh|py|txt|lua)$|^(scripts|\.ci)/"
CPP = r"\.(cpp|hpp)$"
HEADERS = r"\.hpp$"
PUBLIC_HEADERS = r"^include/.*\.hpp$"
CMAKE = r"(CMakeLists\.txt|\.cmake(\.in)?)$"
DOCUMENTS = r"\.md$"
EVERYTHING = r""
# These name what they look for.
THIS = r"^tests/tidy/repository(_test)?\.py$"


def numbered(text, pattern, message):
    """`line: message` for every line in which the pattern is found."""
    found = re.compile(pattern)
    lines = enumerate(text.split("\n"), 1)
    return [f"{number}: {message}" for number, line in lines if found.search(line)]


def lines_are_not_too_long(path, text):
    longest = LONGEST_CMAKE_LINE if re.search(CMAKE, path) else LONGEST_LINE
    return numbered(text, rf"^.{{{longest + 1},}}$", f"longer than {longest} characters")


def whitespace_is_clean(path, text):
    problems = numbered(text, r"\t", "a tab") + numbered(text, r"[ \r]$", "white space at the end")
    if text and not text.endswith("\n"):
        problems.append("no newline at the end")
    return problems


def nothing_is_left_for_later(path, text):
    return numbered(text, r"\b(TODO|FIXME|XXX|HACK)\b", "unfinished business")


def no_path_of_a_machine(path, text):
    # Alice's home is an example.
    machine = r"(?<![\w.}])/(work|root|home|Users)/(?!alice)\w"
    return numbered(text, machine, "a path of somebody's machine")


def header_has_pragma_once(path, text):
    return [] if re.search(r"^#pragma once$", text, re.M) else ["no #pragma once"]


def header_has_no_using_namespace(path, text):
    # Literals are what a header of tests may want, and hurt nobody.
    named = r"^\s*using namespace\b(?! std::(\w+_)?literals;)"
    return numbered(text, named, "using namespace in a header")


def includes(text):
    return re.findall(r'^\s*#\s*include\s*([<"][^>"]+)[>"]', text, re.M)


def public_header_includes_standard_and_ours(path, text):
    return [
        f"includes {name[1:]}: neither standard nor ours"
        for name in includes(text)
        if not re.fullmatch(r"<([a-z0-9_]+|holdfast/[a-z0-9_/]+\.hpp)", name)
    ]


def core_is_pure(path, text):
    code = re.sub(r"//[^\n]*", "", text)
    impure = (
        r"\bclock::now\b|\bstd::j?thread\b|\bstd::(recursive_|shared_|timed_)?mutex\b"
        r"|condition_variable|sleep|random_device|\bsocket\b"
        r"|<unistd\.h>|<sys/|<netinet/|<thread>|<mutex>|<fstream>"
    )
    problems = numbered(code, impure, "a clock, thread, lock or I/O in the core")
    return problems + [
        f"includes {name[1:]}: the core knows nobody"
        for name in includes(text)
        if not re.fullmatch(r"<([a-z0-9_]+|(holdfast|core)/[a-z0-9_/]+\.hpp)", name)
    ]


def production_has_no_switches_for_tests(path, text):
    return numbered(text, r"planted", "a mistake of the tests: tests/planted is their place")


def users_use_the_public_interface(path, text):
    return [
        f"includes {name[1:]}: only the public interface is for programs"
        for name in includes(text)
        if re.match(r"<(core|runtime|api|memory|local)/", name)
    ]


def tests_do_not_guess_times(path, text):
    sleep = r"\b(sleep_for|sleep_until|usleep|nanosleep)\s*\((?!.*// not a guess:)"
    return numbered(text, sleep, "sleeps for a guess; wait for an event with a deadline")


def sources_are_listed(path, text):
    return numbered(text, r"(?i)file\s*\(\s*GLOB", "file(GLOB): list the sources")


def shell_script_is_strict(path, text):
    if not text.startswith("#!/usr/bin/env bash"):
        return []
    return [] if re.search(r"^set -euo pipefail$", text, re.M) else ["no set -euo pipefail"]


CHECKS = [
    (lines_are_not_too_long, CODE, None),
    (whitespace_is_clean, CODE + "|" + DOCUMENTS, None),
    (nothing_is_left_for_later, EVERYTHING, THIS),
    (no_path_of_a_machine, EVERYTHING, THIS),
    (header_has_pragma_once, HEADERS, None),
    (header_has_no_using_namespace, HEADERS, None),
    (public_header_includes_standard_and_ours, PUBLIC_HEADERS, None),
    (core_is_pure, r"^src/core/.*\.(cpp|hpp)$", None),
    (production_has_no_switches_for_tests, r"^(src|engines|guards|include|cli)/", None),
    (users_use_the_public_interface, r"^(cli|examples|bench|lab)/.*\.(cpp|hpp)$", None),
    (tests_do_not_guess_times, r"^(tests|testing)/.*\.(cpp|hpp)$", None),
    (sources_are_listed, CMAKE, None),
    (shell_script_is_strict, EVERYTHING, None),
]


def anchors(text):
    """The anchors that a Markdown page's headings get, as the usual hosts write them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#+\s+(.*?)\s*$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_resolve(files):
    problems = []
    for path, text in files.items():
        if not re.search(DOCUMENTS, path):
            continue
        prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            page = normalise(path, name) if name else path
            if page not in files and not any(other.startswith(page + "/") for other in files):
                problems.append(f"{path}: the link {target} leads nowhere")
            elif anchor and page in files and anchor not in anchors(files[page]):
                problems.append(f"{path}: {target}: no such heading")
    return problems


def normalise(path, link):
    parts = list(Path(path).parent.parts)
    for part in Path(link).parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def every_error_is_documented(files):
    header, guide = files.get("include/holdfast/error.hpp", ""), files.get("docs/api.md", "")
    body = re.search(r"enum class errc \{(.*?)\};", header, re.S)
    names = re.findall(r"^\s*(\w+)(?: = 1)?,$", body.group(1), re.M) if body else []
    return [f"docs/api.md: errc::{name} is not explained" for name in names if f"`{name}`" not in guide]


def code_of(page):
    """What a Markdown page shows as code, in spans and in blocks."""
    fence = re.compile(r"^ *```[^\n]*\n(.*?)^ *```$", re.M | re.S)
    return "\n".join(fence.findall(page) + re.findall(r"`([^`\n]+)`", fence.sub("", page)))


def without(text, opening):
    """The text without the blocks that begin with the pattern and a brace."""
    for match in reversed(list(re.finditer(opening + r"\s*\{", text))):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: match.start()] + text[end:]
    return text


def public_names(header):
    """The types and functions of a header, without those that are for the library."""
    kinds = r"(?:class|struct|enum class)"
    text = re.sub(r"^ */// For the library\..*?\n\n", "", header, flags=re.M | re.S)
    text = re.sub(r"//[^\n]*|^#[^\n]*|\[\[\w+\]\]|HOLDFAST_EXPORT ", "", text, flags=re.M)
    text = re.sub(r"^namespace [^\n]*\{|^\}$", "", without(text, r"namespace detail"), flags=re.M)
    text = re.sub(r"^(?:private|protected):.*?(?=^public:|^\};)", "", text, flags=re.M | re.S)
    types = re.findall(rf"^\s*{kinds} +(\w+)[^;{{]*\{{", text, re.M)
    # Bodies and initialisers go; what is left of classes are declarations.
    declared = without(re.sub(rf"^{kinds} [^;{{]*\{{|^\}};", "", text, flags=re.M), r"")
    functions = re.findall(r"(?<![~:\w.<>])(\w+)\(", declared)
    words = {"void", "operator", "auto", "decltype", "noexcept", "bool"}
    return {name for name in [*types, *functions] if name not in words and not name.endswith("_")}


# The pages that explain a header's names, by the beginnings of both paths. The first line counts.
EXPLAINED = [
    ("include/holdfast/detail/", None),
    ("include/holdfast/engine.hpp", "docs/engines.md"),
    ("include/holdfast/records.hpp", "docs/engines.md"),
    ("include/holdfast/ordered_nodes.hpp", "docs/engines.md"),
    ("include/holdfast/guard/", "docs/guards"),
    ("include/holdfast/quorum.hpp", ("docs/api.md", "docs/quorum.md")),
    ("include/holdfast/", "docs/api.md"),
]


def every_public_name_is_documented(files):
    problems = []
    for path in sorted(path for path in files if re.search(PUBLIC_HEADERS, path)):
        pages = next(pages for start, pages in EXPLAINED if path.startswith(start))
        if pages is None:
            continue
        texts = [text for page, text in files.items() if page.startswith(pages)]
        known = set(re.findall(r"\w+", "\n".join(code_of(text) for text in texts)))
        for name in sorted(public_names(files[path]) - known):
            problems.append(f"{path}: {name} is not mentioned in {pages}")
    return problems


def versions_agree(files):
    project = re.search(r"project\(holdfast VERSION (\S+)", files.get("CMakeLists.txt", ""))
    numbers = re.findall(r"HOLDFAST_VERSION_\w+ (\d+)", files.get("include/holdfast/version.hpp", ""))
    if project and project.group(1) != ".".join(numbers):
        return [f"CMakeLists.txt says {project.group(1)}, version.hpp {'.'.join(numbers)}"]
    return []


REPOSITORY_CHECKS = [
    links_resolve,
    every_error_is_documented,
    every_public_name_is_documented,
    versions_agree,
]


def problems_of_file(path, text):
    for check, where, exempt in CHECKS:
        if re.search(where, path) and not (exempt and re.search(exempt, path)):
            yield from (f"{path}:{problem}" for problem in check(path, text))


def problems_of(files):
    found = []
    for path, text in sorted(files.items()):
        found.extend(problems_of_file(path, text))
    for check in REPOSITORY_CHECKS:
        found.extend(check(files))
    return found


def own_files(root):
    """The text files of the repository; without git, everything outside build/."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, capture_output=True, check=False)
    if listing.returncode == 0:
        names = listing.stdout.decode().split("\0")
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
    skipped = ("build/", ".git/", "tests/fuzz/corpus/")
    paths = [root / name for name in names if name and not name.startswith(skipped)]
    return {str(path.relative_to(root)): path.read_text() for path in paths if path.is_file()}


def main(arguments):
    problems = problems_of(own_files(Path(arguments[1]).resolve()))
    print("\n".join(problems + [f"{len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
