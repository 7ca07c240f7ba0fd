"""Where a stage runs: functions and tables, no feature."""
