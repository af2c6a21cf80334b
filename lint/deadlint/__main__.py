"""`python -m deadlint` is `deadlint`, and imports nothing from the working directory either.

What is checked need not be trusted: a repository may hold a `click` or a `deadlint_rules` of its own.
"""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # where `-m` puts the working directory
    from deadlint.cli import main

    main()
