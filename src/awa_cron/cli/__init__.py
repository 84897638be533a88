"""The command line, ``awa-cron``. Needs the ``cli`` extra.

Exit status: 0 done, 1 failed, 2 used wrongly, 3 no such schedule or job. Results go to stdout, everything else to
stderr.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import NoReturn

EXTRA = {"click", "rich"}
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What writing to stdout can fail with, beside a reader that is gone."""


def main() -> NoReturn:
    """Run the command line with the process's arguments."""
    try:
        from awa_cron.cli.root import root  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in EXTRA:
            raise
        sys.exit(f"Error: the command line needs {error.name}, which is not installed: pip install 'awa-cron[cli]'")
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks is shown escaped, and stops nothing.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        root(prog_name="awa-cron")
    except OSError as error:
        if error.filename is not None or error.errno not in NO_ROOM:
            raise
        # Or the interpreter would try again at its end, and have its own say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(f"Error: cannot write the output: {error.strerror or error}")
    sys.exit(0)
