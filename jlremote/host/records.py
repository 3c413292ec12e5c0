"""Records in a script's output: ASCII's own separators, which JSON and file names rarely hold.

A field ends with the unit separator, a record with the record separator, and a group of records
with the group separator. Scripts take them out of any text that others on the host may choose.
"""

from __future__ import annotations

FIELD, RECORD, GROUP = "\037", "\036", "\035"
# The same as `printf` and `tr` of a script read them.
PRINT_FIELD, PRINT_RECORD, PRINT_GROUP = "\\037", "\\036", "\\035"
# A shell function that prints a short text file. With a process for each, as `cat` would be, a list
# of a hundred jobs takes seconds.
PRINT_FILE = """\
print_file() {
  line=
  while IFS= read -r line; do printf '%s\\n' "$line"; done <"$1" && printf %s "$line"
}
"""
TAKE_OUT = f"tr -d '{PRINT_GROUP}{PRINT_RECORD}{PRINT_FIELD}'"


def records(output: str) -> list[list[str]]:
    """Return the fields of each record; text behind the last record is not one."""
    return [record.split(FIELD) for record in output.split(RECORD)[:-1]]
