"""Authentication: keys, logins, origins."""
