"""plant.py plants what the tables say, keeps the lines' numbers, and refuses rows that do not fit."""

import unittest

from mistake import mistake, table
from plant import problems_of, with_mistakes

ONE = mistake("a.cpp", "one;", "one(planted(bug::first));", "first")
TWO = mistake("a.cpp", "two;\n", "if (!planted(bug::second)) {\n    two;\n}\n", "second")
TEXT = "zero;\none;\ntwo;\nthree;\n"


def problems(*rows, text=TEXT):
    return list(problems_of([table("h.hpp", "planted(bug::NAME)", list(rows))], {"a.cpp": text}))


class PlantTest(unittest.TestCase):
    def test_rows_that_fit_have_no_problem(self):
        self.assertEqual(problems(ONE, TWO), [])

    def test_a_copy_has_all_mistakes_and_the_numbers_of_the_original(self):
        self.assertEqual(
            with_mistakes(TEXT, [TWO, ONE], "h.hpp", "a.cpp"),
            '// Written by tests/planted/plant.py.\n#include <h.hpp>\n#line 1 "a.cpp"\n'
            "zero;\none(planted(bug::first));\n"
            'if (!planted(bug::second)) {\n    two;\n}\n#line 4 "a.cpp"\nthree;\n')

    def test_numbers_are_right_again_after_the_line_in_which_a_mistake_ends(self):
        longer = mistake("a.cpp", "one;", "one\n;", "first")
        shorter = mistake("a.cpp", "two;\nthree", "two, three", "second")
        self.assertEqual(
            with_mistakes("one; //\n" + TEXT[11:] + "four;\n", [longer, shorter], "h.hpp", "a.cpp"),
            '// Written by tests/planted/plant.py.\n#include <h.hpp>\n#line 1 "a.cpp"\n'
            'one\n; //\n#line 2 "a.cpp"\ntwo, three;\n#line 4 "a.cpp"\nfour;\n')

    def test_a_text_that_is_not_there_once_is_a_problem(self):
        for text in ["zero;\n", TEXT + "one;\n"]:
            with self.subTest(text=text):
                self.assertEqual(len(problems(ONE, text=text)), 1)

    def test_a_file_that_is_not_there_is_a_problem(self):
        self.assertEqual(len(problems(mistake("b.cpp", "one;", ONE.new, "first"))), 1)

    def test_a_row_without_its_switch_is_a_problem(self):
        self.assertEqual(len(problems(mistake("a.cpp", "one;", ONE.new, "second"))), 1)

    def test_two_rows_for_one_text_are_a_problem(self):
        whole = mistake("a.cpp", "one;\ntwo;", "planted(bug::second)", "second")
        self.assertEqual(len(problems(ONE, whole)), 1)

    def test_a_file_in_two_tables_is_a_problem(self):
        tables = [table("h.hpp", "planted(bug::NAME)", [row]) for row in (ONE, TWO)]
        self.assertEqual(len(list(problems_of(tables, {"a.cpp": TEXT}))), 1)


if __name__ == "__main__":
    unittest.main()
