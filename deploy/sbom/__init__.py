"""Software bill of materials of the image: packages of Python and Debian, and Java archives.

`python -m deploy.sbom [FILE]` writes it as CycloneDX, by default to build/sbom.json. The package is
not installed.
"""
