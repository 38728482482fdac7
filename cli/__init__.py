"""The `coincide` command and the local stack."""
