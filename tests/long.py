"""What runs with `JLR_LONG=1` only: tests of minutes, and repeats.

A repeat shows with another engine, user or version what a test that always runs has shown with one.
"""

from __future__ import annotations

import os
from functools import partial

import pytest

WANTED = bool(os.environ.get("JLR_LONG"))
# In place of a parameter's plain value.
LONG = partial(pytest.param, marks=pytest.mark.long)
