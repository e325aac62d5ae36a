"""Who asks: keys, logins, origins."""
