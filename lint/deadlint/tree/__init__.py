"""`deadlint tree`: the entries of a program with the limits beneath them, and how long each may take."""
