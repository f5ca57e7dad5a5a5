"""What is bent onto every scan: the template and its files. How one is made is in ``template.making``."""

from breastmorph.template.files import (
    default_template,
    from_npz,
    load_template,
    save_template,
    template_hash,
    to_npz,
)
from breastmorph.template.template import Template, template_from

__all__ = [
    "Template",
    "default_template",
    "from_npz",
    "load_template",
    "save_template",
    "template_from",
    "template_hash",
    "to_npz",
]
