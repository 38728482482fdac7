"""The documentation as a site: Sphinx's configuration, and the reference of REST API and topics.

`python -m deploy.site` builds `docs/` into `build/site`. A broken link or anchor, or a page that is
missing in the navigation (`docs/index.md`), fails the build. The package is not installed.
"""
