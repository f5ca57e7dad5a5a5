"""Many scans onto one template: an engine that loses no work, clusters, the folder of results."""
