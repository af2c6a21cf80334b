"""What the fixes of DL203 and DL507 make of a call of GDAL: before and after, one behaviour a test."""

from __future__ import annotations

from textwrap import dedent

from deadlint.check import check_source
from deadlint.fix import fix_file
from deadlint.model import Finding, Safety
from deadlint.rule import all_rules
from deadlint.settings import Settings
from deadlint.source import SourceFile

CODES = ("DL203", "DL507")
APPLIED = (Safety.SAFE, Safety.UNSAFE)
RULES = tuple(rule for rule in all_rules() if rule.code in CODES)


def findings(text: str) -> list[Finding]:
    return check_source(SourceFile("m.py", dedent(text)), Settings(), RULES)


def fixed(text: str) -> str:
    source = SourceFile("m.py", dedent(text))
    return fix_file(source, lambda s: check_source(s, Settings(), RULES), APPLIED).source.text


# --- DL507 -----------------------------------------------------------------------------------------------------


def test_a_call_under_a_budget_gets_its_callback() -> None:
    before = """\
        from osgeo import gdal


        def warp(source, target, budget):
            result = gdal.Warp(target, source)  # why
            return result
    """
    after = """\
        from deadlint_budget import gdal_progress
        from osgeo import gdal


        def warp(source, target, budget):
            with gdal_progress(budget) as progress:
                result = gdal.Warp(target, source, callback=progress)  # why
            return result
    """
    assert fixed(before) == dedent(after)


def test_a_statement_of_several_lines_is_indented() -> None:
    before = """\
        from osgeo import gdal


        def warp(source, target, timeout=600):
            return gdal.Warp(
                target,
                source,  # first

                dstSRS="EPSG:4326",
            )
    """
    after = """\
        from deadlint_budget import gdal_progress
        from osgeo import gdal


        def warp(source, target, timeout=600):
            with gdal_progress(want=timeout) as progress:
                return gdal.Warp(
                    target,
                    source,  # first

                    dstSRS="EPSG:4326",
                    callback=progress,
                )
    """
    assert fixed(before) == dedent(after)


def test_a_callback_that_never_stops_is_still_called() -> None:
    before = """\
        from osgeo import gdal


        def warp(source, target, budget):
            gdal.Warp(target, source, callback=gdal.TermProgress_nocb)
    """
    assert "gdal_progress(budget, callback=gdal.TermProgress_nocb) as progress" in fixed(before)
    assert "gdal.Warp(target, source, callback=progress)" in fixed(before)


def test_options_that_are_made_in_the_call_get_the_callback() -> None:
    before = """\
        from osgeo import gdal


        def warp(source, target, budget):
            gdal.Warp(target, source, options=gdal.WarpOptions(dstSRS="EPSG:4326"))
    """
    assert 'options=gdal.WarpOptions(dstSRS="EPSG:4326", callback=progress))' in fixed(before)


def test_a_taken_name_is_left_alone() -> None:
    before = """\
        from osgeo import gdal


        def warp(source, target, budget, progress):
            gdal.Warp(target, source)
    """
    assert "with gdal_progress(budget) as gdal_stop:" in fixed(before)


def test_there_is_no_fix_where_a_text_of_several_lines_would_change() -> None:
    text = """\
        from osgeo import gdal


        def warp(source, target, budget):
            gdal.Warp(target, source, cutlineSQL='''
            select 1''')
    """
    assert [f.fix for f in findings(text)] == [None]


def test_there_is_no_fix_where_nothing_says_how_long_it_may_take() -> None:
    assert [f.fix for f in findings("from osgeo import gdal\n\ngdal.Warp('a.tif', 'b.tif')\n")] == [None]


# --- DL203 -----------------------------------------------------------------------------------------------------


def test_a_remote_dataset_is_opened_in_an_environment_of_the_budget() -> None:
    before = """\
        import rasterio


        def read(name, budget):
            with rasterio.open(f"/vsicurl/https://example.com/{name}.tif") as dataset:
                return dataset.read(1)
    """
    after = """\
        import rasterio
        from deadlint_budget import gdal_http_options


        def read(name, budget):
            with rasterio.Env(**gdal_http_options(budget)), rasterio.open(f"/vsicurl/https://example.com/{name}.tif") as dataset:
                return dataset.read(1)
    """
    assert fixed(before) == dedent(after)


def test_a_timeout_parameter_is_the_limit() -> None:
    before = """\
        import rasterio


        def read(timeout=60):
            with rasterio.open("s3://bucket/a.tif") as dataset:
                return dataset.read(1)
    """
    assert "with rasterio.Env(**gdal_http_options(want=timeout)), rasterio.open(" in fixed(before)


def test_without_a_limit_in_scope_the_fix_is_only_shown() -> None:
    text = """\
        import rasterio

        with rasterio.open("s3://bucket/a.tif") as dataset:
            dataset.read(1)
    """
    assert [f.fix.safety for f in findings(text) if f.fix] == [Safety.DISPLAY]


def test_there_is_no_fix_for_a_dataset_that_outlives_the_statement() -> None:
    assert [f.fix for f in findings('import rasterio\n\nd = rasterio.open("s3://bucket/a.tif")\n')] == [None]
