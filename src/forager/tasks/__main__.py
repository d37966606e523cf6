"""A worker process: `python -m forager.tasks FD`, started by a supervisor with a control socket.

It can be killed at any moment: committed results are in the database, all others are repeated.
"""

from __future__ import annotations

from forager.tasks.workers.process import main

if __name__ == "__main__":
    main()
