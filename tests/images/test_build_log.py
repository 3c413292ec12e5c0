"""What of a build's output is shown, and what is kept for its error."""

from __future__ import annotations

from jlremote.images.build_log import KEPT_LINES, BuildLog


def test_the_builders_own_count_of_bytes_is_left_out() -> None:
    log = BuildLog()
    sending = "Sending build context to Docker daemon  2.048kB\n"
    assert log.take(f"{sending}Step 1/1 : FROM x\n begun") == "Step 1/1 : FROM x\n"
    assert log.finish() == " begun\n"


def test_the_last_lines_are_kept() -> None:
    log = BuildLog()
    log.take("".join(f"{number}\n\n" for number in range(3 * KEPT_LINES)))
    assert log.lines == [str(number) for number in range(2 * KEPT_LINES, 3 * KEPT_LINES)]
