"""Make the template that comes with the package, from the phantom's symmetric mean torso.

    python scripts/make_default_template.py

Writes src/breastmorph/data/template.npz; run it again whenever the phantom's mean or the template making changes.
"""

from __future__ import annotations

from pathlib import Path

from breastmorph.foundation.files import write_file
from breastmorph.phantom import mean_torso
from breastmorph.scan.scan import Scan
from breastmorph.template import to_npz
from breastmorph.template.making import Outline, TemplateParameters, make_template, quality

OUT = Path(__file__).parents[1] / "src" / "breastmorph" / "data" / "template.npz"

# The mean torso has no noise to smooth away; a little more belly makes it as large as the paper's template.
PARAMETERS = TemplateParameters(smoothing=8.0, outline=Outline(below_lower_pole=50.0))


def main() -> None:
    """Make and write it, and print its figures."""
    torso = mean_torso()
    made = make_template(Scan("mean", torso.mesh, torso.landmarks), PARAMETERS)
    for name, value in quality(made).items():
        print(f"{name:32s} {value:.4g}")
    data = to_npz(made.template)
    OUT.parent.mkdir(exist_ok=True)
    write_file(OUT, data)
    print(f"{OUT.name}: {len(data) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
