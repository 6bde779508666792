"""Tests of holdfast-lab's other commands and of its pages: documents_test.py PROGRAM ROOT."""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

PROGRAM, ROOT = sys.argv[1], Path(sys.argv[2])
LEARN = ROOT / "docs" / "learn"
FLAWS = 17
MISUSE = 64


def lab(*words, **options):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60, **options)


def scenarios():
    return [line.split()[0] for line in lab("list").stdout.splitlines()]


def pages(name):
    return [LEARN / f"{name}.md", LEARN / "zh" / f"{name}.md"]


def paragraphs_of(page):
    """What stands between the heading and the first section, without the links."""
    beginning = page.read_text().split("\n", 1)[1].split("\n## ")[0].strip()
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", beginning)


class Lab(unittest.TestCase):
    def test_lists_every_flaw_once(self):
        names = scenarios()
        self.assertEqual(len(names), FLAWS)
        self.assertEqual(len(set(names)), FLAWS)

    def test_explains_in_the_two_paragraphs_of_the_page(self):
        for name in scenarios():
            for page, options in zip(pages(name), ([], ["--zh"])):
                with self.subTest(page=page):
                    text = paragraphs_of(page)
                    self.assertEqual(len(text.split("\n\n")), 2)
                    self.assertIn(text, lab("explain", name, *options).stdout)

    def test_every_page_shows_the_sequence_and_both_verdicts(self):
        for name in scenarios():
            for page in pages(name):
                with self.subTest(page=page):
                    text = page.read_text()
                    self.assertIn("```mermaid\nsequenceDiagram\n", text)
                    self.assertIn("BROKEN as expected: ", text)
                    self.assertRegex(text, r"(?m)^    (SAFE|LIMIT): ")

    def test_every_page_is_on_the_path(self):
        for index in (LEARN / "README.md", LEARN / "zh" / "README.md"):
            for name in scenarios():
                self.assertIn(f"({name}.md)", index.read_text(), index)

    def test_a_story_is_told_as_json(self):
        told = json.loads(lab("run", "v5-not-reentrant", "--json").stdout)
        self.assertEqual(told["naive"]["verdict"], "BROKEN")
        self.assertEqual(told["holdfast"]["verdict"], "SAFE")
        self.assertTrue(told["naive"]["timeline"])

    def test_repeats_are_counted(self):
        run = lab("run", "v5-not-reentrant", "--repeat", "2")
        self.assertEqual(run.returncode, 0)
        self.assertIn("BROKEN 2/2", run.stdout)

    def test_a_verdict_that_is_not_as_stated_fails_the_run(self):
        without_servers = {**os.environ, "PATH": str(ROOT / "docs")}
        run = lab("run", "v5-not-reentrant", env=without_servers)
        self.assertEqual(run.returncode, 1)
        self.assertIn("UNEXPECTED", run.stdout)

    def test_a_command_line_that_makes_no_sense_is_refused(self):
        for words in (["run", "v99"], ["explain"], ["run", "--repeat", "0"], ["dance"], ["actor", "x"]):
            with self.subTest(words=words):
                self.assertEqual(lab(*words).returncode, MISUSE)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
