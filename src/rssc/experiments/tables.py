"""Tables of the studies, in the terminal and as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    style: str = ""
    """Of the terminal: a colour, or "bold". Any style is bold in Markdown."""
    paper: str = ""
    """The paper's figure, in brackets."""

    def in_terminal(self) -> Text:
        return Text.assemble((self.text, self.style), self._brackets)

    def in_markdown(self) -> str:
        return (f"**{self.text}**" if self.style else self.text) + self._brackets

    @property
    def _brackets(self) -> str:
        return f" ({self.paper})" if self.paper else ""


@dataclass(frozen=True)
class Table:
    """A table with notes below it. The first column has labels, the others numbers."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def print_tables(console: Console, tables: Sequence[Table]) -> None:
    """The tables, one below the other."""
    for table in tables:
        shown = RichTable(title=Text(table.title), title_justify="left")
        for i, heading in enumerate(table.headings):
            shown.add_column(Text(heading), justify="right" if i else "left")
        for row in table.rows:
            shown.add_row(*(cell.in_terminal() for cell in row))
        console.print(shown)
        for note in table.notes:
            console.print(Text(f"  {note}"))


def markdown(opening: str, tables: Sequence[Table]) -> str:
    """A page with an opening sentence and a section for each table."""
    parts = [opening + "\n"]
    for table in tables:
        lines = [f"## {table.title}\n", f"| {' | '.join(table.headings)} |"]
        lines.append("|---" + "|---:" * (len(table.headings) - 1) + "|")
        lines += [f"| {' | '.join(cell.in_markdown() for cell in row)} |" for row in table.rows]
        parts.append("\n".join([*lines, "", *(f"- {note}" for note in table.notes)]).rstrip() + "\n")
    return "\n".join(parts)
