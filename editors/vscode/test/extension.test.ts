// The extension in an editor that stands in for VS Code: which server runs, in which Python, and when it starts again.
import assert from "node:assert/strict";
import Module from "node:module";
import { test } from "node:test";

type Listener = (event?: unknown) => unknown;

/** What the stand-in knows, and what the extension did: `start PYTHON` and `stop PYTHON`, in order. */
const editor = {
  trusted: false,
  chosen: "/project/.venv/bin/python",
  done: [] as string[],
  told: [] as Record<string, unknown>[],
  onTrust: (() => undefined) as Listener,
  followed: 0, // times that a change of the chosen Python was asked for
  onEnvironment: (() => undefined) as Listener,
};

const disposable = { dispose: () => undefined };
const environments = {
  getActiveEnvironmentPath: () => ({ path: editor.chosen }),
  onDidChangeActiveEnvironmentPath: (listener: Listener) => {
    editor.followed += 1;
    editor.onEnvironment = listener;
    return disposable;
  },
};
const vscode = {
  StatusBarAlignment: { Right: 2 },
  window: { createStatusBarItem: () => ({ show: () => undefined }) },
  commands: { registerCommand: () => disposable },
  extensions: { getExtension: () => ({ activate: async () => ({ environments }) }) },
  workspace: {
    get isTrusted() {
      return editor.trusted;
    },
    workspaceFolders: [{ uri: "file:///project" }],
    getConfiguration: () => ({ get: () => undefined }),
    onDidChangeConfiguration: () => disposable,
    onDidGrantWorkspaceTrust: (listener: Listener) => {
      editor.onTrust = listener;
      return disposable;
    },
  },
};

class LanguageClient {
  constructor(
    _id: string,
    _name: string,
    private readonly server: { run: { command: string } },
    private readonly options: { initializationOptions: Record<string, unknown> },
  ) {}
  onNotification(): void {}
  async start(): Promise<void> {
    editor.done.push(`start ${this.server.run.command}`);
    editor.told.push(this.options.initializationOptions);
  }
  async stop(): Promise<void> {
    editor.done.push(`stop ${this.server.run.command}`);
  }
}

const modules: Record<string, unknown> = { vscode, "vscode-languageclient/node": { LanguageClient } };
const loader = Module as unknown as { _load: (name: string, ...rest: unknown[]) => unknown };
const load = loader._load;
loader._load = (name, ...rest) => modules[name] ?? load(name, ...rest);

test("the server starts again in the workspace's Python after trust, and in another that is chosen", async () => {
  const extension = (await import("../src/extension.js")) as typeof import("../src/extension");
  const context = { subscriptions: [], extensionPath: "/extension", secrets: { get: async () => undefined } };
  await extension.activate(context as never);
  assert.deepEqual(editor.done, ["start python3"]);
  assert.equal(editor.told[0]?.["trusted"], false);
  assert.equal(editor.followed, 0, "no Python is asked for before the workspace is trusted");

  editor.trusted = true;
  await editor.onTrust();
  assert.deepEqual(editor.done.splice(0), ["start python3", "stop python3", "start /project/.venv/bin/python"]);
  assert.equal(editor.told[1]?.["trusted"], true);
  assert.equal(editor.followed, 1);

  await editor.onEnvironment();
  assert.deepEqual(editor.done, [], "the same Python: nothing to do");
  editor.chosen = "/other/bin/python";
  await editor.onEnvironment();
  assert.deepEqual(editor.done.splice(0), ["stop /project/.venv/bin/python", "start /other/bin/python"]);
  await extension.deactivate();
  assert.deepEqual(editor.done, ["stop /other/bin/python"]);
});
