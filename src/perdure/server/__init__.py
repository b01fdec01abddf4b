"""The HTTP server: keys, tenants, and the routes of the contract."""
