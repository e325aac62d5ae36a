"""An identity provider that tests talk to over a socket: metadata, keys, codes with PKCE, signed id tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT, SECRET = "backprobe-test", "a-secret-of-the-client"
KEY = RSAKey.generate_key(2048, {"kid": "one"})


class Provider:
    """Serves until it is closed.

    Attributes:
        issuer: Its URL. claims: Of the next id token, over those that are right. signing: The key that signs it; bytes for HMAC, which may be
            what no library takes.
        answers: Status of each of its addresses by path, where that is not to be 200.
        algorithm: Of the next id token. named_algorithms: what its metadata says that it signs with; None: nothing.
    """

    def __init__(self):
        self.claims, self.answers, self._codes = {}, {}, {}
        self.key = self.signing = KEY
        self.algorithm, self.named_algorithms = "RS256", ["RS256"]
        self.more_keys = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self._say(provider.answer(urlsplit(self.path).path))

            def do_POST(self):
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self._say(provider.token(form, self.headers.get("Authorization", "")))

            def _say(self, told):
                path = urlsplit(self.path).path
                self.send_response(provider.answers.get(path, 200))
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(told).encode())

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = self.named = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path):
        if path == "/keys":
            keys = (*self.more_keys, self.key)
            return {"keys": [key.as_dict(private=isinstance(key, OctKey)) for key in keys]}
        named = (
            {} if self.named_algorithms is None else {"id_token_signing_alg_values_supported": self.named_algorithms}
        )
        return named | {
            "issuer": self.named,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def authorize(self, location):
        """What a person does at the address that the login leads to: the parameters of the way back."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = f"code-{len(self._codes)}-of-the-provider"
        self._codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def token(self, form, authorization):
        asked = self._codes.pop(form["code"][0])
        assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == f"{CLIENT}:{SECRET}"
        assert form["redirect_uri"][0] == asked["redirect_uri"]
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"][0].encode()).digest())
        assert challenge.rstrip(b"=").decode() == asked["code_challenge"]
        now = int(time.time())
        claims = {
            "iss": self.named,
            "sub": "1234",
            "aud": CLIENT,
            "iat": now,
            "exp": now + 600,
            "nonce": asked["nonce"],
            "email": "ann@example.org",
            "email_verified": True,
            **self.claims,
        }
        head = {"alg": self.algorithm, "kid": getattr(self.signing, "kid", "one")}
        if isinstance(self.signing, bytes):
            told = by_hand(head, claims, self.signing)
        else:
            told = jwt.encode(head, claims, self.signing, algorithms=[self.algorithm])
        return {"access_token": "opaque", "token_type": "Bearer", "expires_in": 600, "id_token": told}


def by_hand(head, claims, secret):
    """A token signed by HMAC with any bytes, or by nobody (`alg` none)."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (head, claims)]
    digest = {"HS256": "sha256", "HS512": "sha512"}.get(head["alg"])
    signature = b"" if digest is None else hmac.digest(secret, b".".join(parts), digest)
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()
