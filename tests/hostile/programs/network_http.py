# EXPECT: a web request is refused
# OUTCOME: failed
# CONTROL: breaches
import urllib.request
urllib.request.urlopen('http://127.0.0.1:__PORT__/', timeout=1)
