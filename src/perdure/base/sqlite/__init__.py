"""What every SQLite file of the package shares: keys, ciphers, and how the driver is called."""
