"""Whether what happened is a behaviour of the spec: event log, rows and jobs are checked against ``AwaCron``."""
