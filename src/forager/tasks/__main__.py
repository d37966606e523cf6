"""A worker's process: `python -m forager.tasks FD`, started by a supervisor with a control socket.

Everything it does is in the database when it is committed, so it may be killed at any moment.
"""

from __future__ import annotations

from forager.tasks.workers.process import main

if __name__ == "__main__":
    main()
