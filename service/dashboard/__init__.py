"""The pages: server-rendered, readable without JavaScript."""
