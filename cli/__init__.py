"""The ``coincide`` command and the local stack: embedded broker, processes, demonstration."""
