"""Tests of snippets.py: what it takes for a snippet, and what it hands to the compiler."""

import tempfile
import unittest
from pathlib import Path

from snippets import Compiler, sources_of

FRAME = """```cpp
#include <string>

void example(std::string& text) {
    // a snippet of this page goes here
}
```
"""


class SnippetsTest(unittest.TestCase):
    def test_a_file_is_compiled_as_it_is(self):
        problems, sources, count = sources_of("a.md", "# A\n\n```cpp\n#include <set>\nint x;\n```\n")
        self.assertEqual(problems, [])
        self.assertEqual(sources, ['#line 4 "a.md"\n#include <set>\nint x;\n'])
        self.assertEqual(count, 1)

    def test_a_fragment_is_pasted_into_the_frame_of_its_page_and_gets_nothing_else(self):
        problems, sources, count = sources_of("a.md", FRAME + "\n```cpp\ntext.clear();\n```\n")
        self.assertEqual(problems, [])
        self.assertEqual(count, 2)
        self.assertEqual(
            sources[1],
            "#include <string>\nnamespace snippet_0 {\n\nvoid example(std::string& text) {\n"
            '#line 10 "a.md"\ntext.clear();\n}\n}\n',
        )

    def test_what_a_readers_compiler_would_warn_of_is_an_error(self):
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "include" / "holdfast").mkdir(parents=True)
            (Path(directory) / "include" / "holdfast" / "holdfast.hpp").write_text("")
            (Path(directory) / "work").mkdir()
            compiler = Compiler("c++", directory, Path(directory) / "work")
            self.assertTrue(compiler.compiles((0, "int first(int used) { return used; }\n")))
            for source in ("int first(int unused) { return 1; }\n", "int first() {}\n"):
                with self.subTest(source=source):
                    self.assertFalse(compiler.compiles((1, source)))

    def test_a_main_in_the_frame_returns_nothing_there(self):
        frame = FRAME[:-4] + "\nint main() {\n}\n```\n"
        _, sources, _ = sources_of("a.md", frame + "\n```cpp\ntext.clear();\n```\n")
        self.assertIn("void main_() {", sources[1])
        self.assertIn("int main() {", sources[0])

    def test_a_fragment_without_a_frame_is_a_problem(self):
        problems, _, _ = sources_of("a.md", "```cpp\ntext.clear();\n```\n")
        self.assertEqual(problems, ["a.md:2: neither a file nor with a frame"])

    def test_a_block_in_a_list_counts(self):
        _, sources, _ = sources_of("a.md", "1. one\n\n   ```cpp\n   #include <set>\n   ```\n")
        self.assertEqual(sources, ['#line 4 "a.md"\n#include <set>\n'])

    def test_code_under_another_name_does_not_escape(self):
        for language in ("c++", "text", ""):
            with self.subTest(language=language):
                problems, _, _ = sources_of("a.md", f"```{language}\n#include <set>\n```\n")
                self.assertEqual(len(problems), 1)


if __name__ == "__main__":
    unittest.main()
