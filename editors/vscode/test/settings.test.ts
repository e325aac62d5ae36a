import assert from "node:assert/strict";
import { test } from "node:test";
import { keyName, serverEnvironment, serverSettings, statusText } from "../src/settings";

const nothing = () => undefined;

test("what is not set takes the server's own default", () => {
  assert.deepEqual(serverSettings(nothing, false, "python3"), {
    trusted: false,
    interpreter: "python3",
    runOnSave: true,
    entries: [],
    seconds: 10,
    hints: { leaf: true, gradient: true, held: true },
  });
});

test("an address is told, and a blank one is none", () => {
  const set = (values: Record<string, unknown>) => serverSettings((name) => values[name], true, "p");
  assert.deepEqual(set({ "service.url": " https://bp.example ", "service.isolation": "namespace" })["service"], {
    url: "https://bp.example",
    isolation: "namespace",
  });
  assert.equal(set({ "service.url": "  " })["service"], undefined);
  assert.deepEqual(set({ "hints.held": false })["hints"], { leaf: true, gradient: true, held: false });
});

test("a key is kept for one host and no other address gets it", () => {
  assert.equal(keyName("https://bp.example/x?y"), "key https://bp.example");
  assert.notEqual(keyName("http://bp.example"), keyName("https://bp.example"));
  assert.notEqual(keyName("https://bp.example:8443"), keyName("https://bp.example"));
  assert.equal(keyName("file:///etc/passwd"), undefined);
  assert.equal(keyName(""), undefined);
});

test("a key of the window's own environment is not handed on", () => {
  assert.deepEqual(serverEnvironment({ PATH: "/bin", BACKPROBE_API_KEY: "other", GONE: undefined }, undefined), { PATH: "/bin" });
  assert.deepEqual(serverEnvironment({ PATH: "/bin" }, "bp_1"), { PATH: "/bin", BACKPROBE_API_KEY: "bp_1" });
});

test("each state has a sign", () => {
  const signs = (["idle", "running", "trouble", "untrusted"] as const).map((state) => statusText({ state, message: "" }));
  assert.equal(new Set(signs).size, 4);
});
