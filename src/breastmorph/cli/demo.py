"""``breastmorph demo``: the main job on a small built-in cohort."""

from __future__ import annotations

import os
from pathlib import Path

import click

from breastmorph.cli.check import print_checks
from breastmorph.cli.terminal import progress
from breastmorph.phantom.files import write_cohort
from breastmorph.report.contact_sheet import scan_sheet
from breastmorph.scan.check import check_scan
from breastmorph.scan.folder import find_scans

_ON_SHEET = 6


@click.command("demo")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, help="Folder."
)
@click.option("--n", type=click.IntRange(min=1), default=12, show_default=True, help="Number of subjects.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Same seed, same cohort."
)
def command(out: Path, n: int, seed: int) -> None:
    """Make a synthetic cohort, check it and draw a contact sheet.

    \b
    Example:
      breastmorph demo --out demo/
    """
    click.echo(f"1. A synthetic cohort of {n} adult torsos, scanned from three views")
    write_cohort(out, n, seed, os.cpu_count() or 1)
    click.echo("2. Checking scans and landmarks")
    found = find_scans(out / "scans", out / "landmarks")
    checks = [check_scan(files) for files in progress(found, "Checking")]
    print_checks(checks)
    click.echo("3. Drawing the contact sheet")
    sheet = out / "contact-sheet.png"
    scan_sheet([check.scan for check in checks if check.scan][:_ON_SHEET], sheet)
    click.echo(f"\nScans and landmarks   {out / 'scans'}, {out / 'landmarks'}")
    click.echo(f"Known truth           {out / 'truth'}, {out / 'cohort.csv'}")
    click.echo(f"Look at               {sheet}")
