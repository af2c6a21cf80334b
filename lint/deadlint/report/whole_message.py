"""What is wrong and what to do about it in one text, for formats without a place for the remedy."""

from __future__ import annotations

from deadlint.model import Finding


def whole_message(finding: Finding) -> str:
    """The message and the remedy as sentences, one after the other."""
    return " ".join(_sentence(text) for text in (finding.message, finding.remedy) if text)


def _sentence(text: str) -> str:
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."
