"""Grafana dashboards and recording rules, generated from the metrics that the code defines.

`python -m deploy.dashboards` writes the files of deploy/grafana/dashboards and
deploy/recording_rules.yml, which are committed. The package is not installed.
"""
