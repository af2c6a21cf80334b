"""Programs that open a session with PostgreSQL for a dataset among their arguments: `ogr2ogr … PG:dbname=gis`."""

from __future__ import annotations

from deadlint.index.values import NONE, Mapping
from deadlint.site import Site

from deadlint_rules import _sql
from deadlint_rules._processes import RUNS, Given, limit_given
from deadlint_rules._programs import HOLE, words_of

CALLS = RUNS | {"deadlint_budget.run", "deadlint_budget.run_gdal", "deadlint_budget.check_output"}


def reads_unlimited(site: Site) -> str | None:
    """The program of GDAL that a call runs on a `PG:` source with no limit in sight; None where there is none.

    What writes into the database loads it, and is left alone.
    """
    if not all(v == NONE or (isinstance(v, Mapping) and not v.open) for v in site.argument("env").values):
        return None
    if any(isinstance(v, Mapping) and v.get("PGOPTIONS") is not None for v in site.argument("env").values):
        return None
    for words in words_of(site.argument("args", 0).values, site.module.resolver, site.module.settings):
        names = [word.rpartition("/")[2] for word in words]
        program = next((n for n in names if n.startswith(("ogr2ogr", "ogrinfo", "gdal"))), None)
        if program is not None and _source(words):
            return program
    return None


def _source(words: list[str]) -> bool:
    """Whether a PostgreSQL dataset without a limit is read: the first of two for ogr2ogr is what it writes."""
    places = [i for i, word in enumerate(words) if word.lstrip('"').startswith("PG:")]
    if not places or any(_sql.in_options(words[i]) is not None for i in places):
        return False
    if any(HOLE in words[i] and "options" in words[i] for i in places):
        return False
    program = next((w.rpartition("/")[2] for w in words if w.rpartition("/")[2].startswith(("ogr", "gdal"))), "")
    if program != "ogr2ogr":
        return True
    before = [w for w in words[1 : places[0]] if not w.startswith("-")]
    writes = any(w in ("PostgreSQL", "PGDump") for w in before)
    return not writes


def has_limit(site: Site) -> bool:
    """Whether the process itself has a limit, at whose end its statement goes on."""
    if site.name in RUNS:
        return limit_given(site) is not Given.NO
    return True
