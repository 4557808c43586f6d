"""What the tests stand on: real backends, a database per test, and the one place that waits."""
