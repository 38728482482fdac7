"""The ``coincide`` command, its client commands, the replay, the demo and the local stack."""
