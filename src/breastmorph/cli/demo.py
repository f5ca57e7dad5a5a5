"""``breastmorph demo``: the main job on a small built-in cohort."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from breastmorph.cli.check import print_checks
from breastmorph.cli.register import print_outcomes
from breastmorph.cli.terminal import progress, progress_with
from breastmorph.machine import cores
from breastmorph.phantom.files import write_cohort
from breastmorph.registration.batch import register_batch
from breastmorph.registration.product import recipe
from breastmorph.report.contact_sheet import scan_sheet
from breastmorph.report.summary_page import write_summaries
from breastmorph.report.thumbnail import Pictures
from breastmorph.scan.check import check_scan
from breastmorph.scan.folder import find_scans
from breastmorph.template.files import default_template

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
    """Make a synthetic cohort, check it, register it and draw contact sheets.

    \b
    Example:
      breastmorph demo --out demo/
    """
    click.echo(f"1. A synthetic cohort of {n} adult torsos, scanned from three views")
    with progress_with("Scanning", n) as advance:
        write_cohort(out, n, seed, cores(), on_done=lambda done: advance())
    click.echo("2. Checking scans and landmarks")
    template = default_template()
    found = find_scans(out / "scans", out / "landmarks")
    checks = [check_scan(files, reference=template.as_reference) for files in progress(found, "Checking")]
    print_checks(checks)
    sheet = out / "contact-sheet.png"
    scan_sheet([check.scan for check in checks if check.scan][:_ON_SHEET], sheet)
    click.echo(f"3. Bending the template of {template.mesh.n_vertices:,} vertices onto every scan")
    registration = out / "registration"
    with progress_with("Registering", len(found)) as advance:
        outcomes = register_batch(
            found,
            recipe(template, pictures=Pictures()),
            registration,
            force=True,
            on_done=lambda outcome: advance(),
            on_end=lambda known: write_summaries(known, registration),
        )
    print_outcomes(outcomes, registration)
    click.echo(f"\nScans and landmarks   {out / 'scans'}, {out / 'landmarks'}")
    click.echo(f"Known truth           {out / 'truth'}, {out / 'cohort.csv'}")
    click.echo(f"Registered meshes     {registration / 'registered'}")
    click.echo(f"Look at               {sheet}, {registration / 'summary.html'}")
    sys.exit(1 if any(outcome.status == "failed" for outcome in outcomes) else 0)
