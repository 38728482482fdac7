"""Grafana dashboards and recording rules, generated from the metrics that the code defines.

`python -m deploy.dashboards` writes the files of deploy/grafana/dashboards, docs/panels.md,
deploy/recording_rules.yml and the rules of the Operator, which are committed. The
package is not installed.
"""
