"""The template: what is bent onto every scan; how one is made; its files."""

from breastmorph.template.template import Template, template_from

__all__ = ["Template", "template_from"]
