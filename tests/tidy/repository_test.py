"""The checks of repository.py find what they look for, and leave clean files alone."""

import unittest

from repository import problems_of

CLEAN = {
    "src/core/a.hpp": "#pragma once\n\n#include <string>\n#include <core/b.hpp>\n",
    "src/core/b.hpp": "#pragma once\n// never calls clock::now: time comes in as an argument\n",
    "include/holdfast/a.hpp": "#pragma once\n#include <vector>\n#include <holdfast/detail/b.hpp>\n",
    "README.md": "# Title of it\n\n[a](docs/a.md#one-two) [b](#title-of-it) [web](https://e.org)\n",
    "docs/a.md": "# One, two\n\n[back](../README.md)\n```\n[code](not/a/link)\n```\n",
    "tests/s.hpp": "#pragma once\nusing namespace std::chrono_literals;\n",
    "CMakeLists.txt": "# " + "x" * 118 + "\n",
    "tests/t.cpp": "std::this_thread::sleep_for(1ms);  // not a guess: the ttl itself\n",
}

DIRTY = {
    "src/core/a.cpp": "auto now = clock::now();\n",
    "src/core/b.cpp": "#include <runtime/timer.hpp>\n",
    "src/core/c.cpp": "std::mutex guard;\n",
    "src/core/d.cpp": "if (held && !planted(bug::one_is_kept)) {\n",
    "src/d.hpp": "int x;\n",
    "src/e.hpp": "#pragma once\nusing namespace std;\n",
    "src/g.cpp": "//" + "x" * 103 + "\n",
    "src/h.cpp": "\tint a;\n",
    "src/i.cpp": "int a; \n",
    "src/j.cpp": "int a;",
    "src/k.cpp": "// TODO: finish\n",
    "src/l.cpp": 'open("/home/bob/locks");\n',
    "include/holdfast/m.hpp": "#pragma once\n#include <sqlite3.h>\n",
    "include/holdfast/n.hpp": "#pragma once\n#include <boost/json.hpp>\n",
    "cli/o.cpp": "#include <runtime/session.hpp>\n",
    "tests/p.cpp": "std::this_thread::sleep_for(100ms);\n",
    "src/CMakeLists.txt": "file(GLOB sources *.cpp)\n",
    "docs/q.md": "[a](missing.md)\n",
    "docs/r.md": "# Here\n\n[a](#there)\n",
    "src/t.cmake": "#" + "x" * 120 + "\n",
    "scripts/s": "#!/usr/bin/env bash\necho\n",
}


class RepositoryTest(unittest.TestCase):
    def test_clean_files_pass(self):
        self.assertEqual(problems_of(CLEAN), [])

    def test_every_dirty_file_has_exactly_one_problem(self):
        for path, text in DIRTY.items():
            with self.subTest(path=path):
                self.assertEqual(len(problems_of({path: text})), 1, problems_of({path: text}))

    def test_an_error_without_explanation_is_found(self):
        header = "enum class errc {\n    busy = 1,\n    lost,\n};\n#pragma once\n"
        found = problems_of({"include/holdfast/error.hpp": header, "docs/api.md": "`errc`: `busy`\n"})
        self.assertEqual(found, ["docs/api.md: errc::lost is not explained"])

    def test_a_public_name_without_explanation_is_found(self):
        header = (
            "#pragma once\nnamespace holdfast {\nnamespace detail {\nclass hidden {\n};\n}\n"
            "enum class mood { good };\n"
            "/// Not `comment()`.\nclass gate {\npublic:\n    gate(int width);\n    ~gate();\n"
            "    void open(mood how = mood{}) { push(); }\n    int width() const noexcept;\n\n"
            "    /// For the library.\n    int inner();\n\n"
            "private:\n    void push();\n};\nvoid shut(gate& one);\n}\n"
        )
        page = "A `gate` has a `width`.\n```cpp\none.open(mood::good);\n```\nDo shut it.\n"
        found = problems_of({"include/holdfast/gate.hpp": header, "docs/api.md": page})
        self.assertEqual(found, ["include/holdfast/gate.hpp: shut is not mentioned in docs/api.md"])

    def test_versions_that_differ_are_found(self):
        found = problems_of(
            {
                "CMakeLists.txt": "project(holdfast VERSION 0.2.0)\n",
                "include/holdfast/version.hpp": "#pragma once\n#define HOLDFAST_VERSION_MAJOR 0\n",
            }
        )
        self.assertEqual(len(found), 1)


if __name__ == "__main__":
    unittest.main()
