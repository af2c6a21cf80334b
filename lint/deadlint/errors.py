"""Errors that are the user's to mend: said in one line, exit status 2, no traceback."""


class UserError(Exception):
    """Something the user gave is wrong; the text says what, where and what to do."""
