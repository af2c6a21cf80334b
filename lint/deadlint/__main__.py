"""`python -m deadlint` is `deadlint`."""

from deadlint.cli import main

if __name__ == "__main__":
    main()
