"""What stands out in a monitored training: anomalies of single series, ranks that stray, where one run leaves another."""
