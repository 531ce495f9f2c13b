"""Which decimal mark a table uses.

The decimal mark is a property of the table that is read, not of the model. A model that was trained
on a file with decimal points can classify a file with decimal commas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from .cells import Cells
from .decimals import COMMA, NUMBER_SHARE, POINT, WITH_COMMA, YES_NO, as_numbers

OTHER = {POINT: COMMA, COMMA: POINT}
#: In a column with many texts such as 1.234, a smaller share of decimal commas than this counts as
#: typing errors.
TYPING_ERRORS = 0.1


class Evidence:
    """Counts over the texts of a whole table, by column, which tell how its numbers are written."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    @classmethod
    def of(cls, parts: Iterable[Cells]) -> Evidence:
        """The evidence of all columns of a table."""
        made = cls()
        for cells in parts:
            made.add(cells)
        return made

    def add(self, cells: Cells) -> None:
        """Count the texts of some columns, or of a chunk of them.

        A text such as 1.5 shows a decimal point and 1,5 a decimal comma. 1.234 and 12 fit both.

        Parameters
        ----------
        cells : Cells
        """
        point, comma = ~np.isnan(cells.points), cells.matching(WITH_COMMA)
        either, words = point & comma, cells.present & ~(point | comma)
        either[either] = cells.texts[either.ravel()].str.contains(".", regex=False)
        words[words] = ~np.isnan(as_numbers(cells.texts[words.ravel()], YES_NO))
        counted = {
            "texts": cells.present, "numbers": point | comma, "either": either,
            POINT: point & ~comma, COMMA: comma & ~point, YES_NO: words,
        }  # fmt: skip
        sums = {kind: found.sum(axis=1).tolist() for kind, found in counted.items()}
        for name, *counts in zip(cells.names, *sums.values()):
            self._counts.setdefault(name, Counter()).update(dict(zip(sums, counts)))

    def mark(self, name: str) -> str | None:
        """The decimal mark of a column; None if all of its texts fit both marks."""
        counts = self._counts.get(name, Counter())
        if counts[COMMA] > counts[POINT] + TYPING_ERRORS * counts["either"]:
            return COMMA
        return POINT if counts[POINT] > counts[COMMA] else None

    def marks(self, names: Iterable[str]) -> dict[str, str]:
        """The decimal marks of training columns.

        A column whose texts fit both marks gets the mark of most of the other numeric columns.
        """
        common = self._common_mark()
        return {name: self.mark(name) or common for name in names}

    def _common_mark(self) -> str:
        numbers = [
            name for name, counts in self._counts.items()
            if counts["numbers"] >= NUMBER_SHARE * counts["texts"]
        ]  # fmt: skip
        marks = Counter(self.mark(name) for name in numbers)
        return COMMA if marks[COMMA] > marks[POINT] else POINT

    def readings(self, training: dict[str, str]) -> dict[str, str]:
        """How to read every column of a new table.

        A column whose texts fit both marks is read as in training. If most of the columns that
        show their mark have the other mark than in training, it is read with the other mark too.

        Parameters
        ----------
        training : dict
            The decimal mark that every column had in training.
        """
        marks = {name: self.mark(name) for name in training}
        changed = [mark != training[name] for name, mark in marks.items() if mark is not None]
        usual = training
        if 2 * sum(changed) > len(changed):
            usual = {name: OTHER[mark] for name, mark in training.items()}
        return {
            name: YES_NO if self._is_yes_no(name) else mark or usual[name]
            for name, mark in marks.items()
        }

    def _is_yes_no(self, name: str) -> bool:
        counts = self._counts.get(name, Counter())
        return counts[YES_NO] > 0 and counts["numbers"] == 0
