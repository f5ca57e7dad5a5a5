"""The shape model: alignment of a cohort."""
