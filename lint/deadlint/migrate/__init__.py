"""`deadlint migrate`: one budget from an entry point down to every blocking call that it reaches, over files."""
