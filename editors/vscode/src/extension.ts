// Starts `python -m backprobe lsp` for a window and shows how it stands. It holds no rule and speaks to no service.
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";
import { keyName, serverEnvironment, serverSettings, type Status, statusText } from "./settings";

const STATUS = "backprobe/status";
let client: LanguageClient | undefined;
let running = ""; // the interpreter of the server
let turn: Promise<void> = Promise.resolve();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const item = vscode.window.createStatusBarItem("backprobe.status", vscode.StatusBarAlignment.Right, 50);
  item.name = "Backprobe";
  item.command = "backprobe.runFile";
  const restart = () => inTurn(async () => {
    await stop();
    await start(context, item);
  });
  context.subscriptions.push(
    item,
    vscode.commands.registerCommand("backprobe.runFile", runFile),
    vscode.commands.registerCommand("backprobe.cancelRun", () => send("backprobe.cancel")),
    vscode.commands.registerCommand("backprobe.setKey", () => setKey(context, restart)),
    vscode.commands.registerCommand("backprobe.restart", restart),
    vscode.workspace.onDidGrantWorkspaceTrust(async () => {
      await restart(); // only a trusted workspace chooses the interpreter
      await followPython(context, restart);
    }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("backprobe.interpreter") || event.affectsConfiguration("backprobe.service.url")) {
        await restart(); // another Python, or a key for another address
      } else if (event.affectsConfiguration("backprobe")) {
        await configure();
      }
    }),
  );
  await inTurn(() => start(context, item));
  await followPython(context, restart);
}

export async function deactivate(): Promise<void> {
  await inTurn(stop);
}

/** Starts and stops follow one another: two saved settings in a row must not start two servers. */
function inTurn(what: () => Promise<void>): Promise<void> {
  turn = turn.then(what, what);
  return turn;
}

async function start(context: vscode.ExtensionContext, item: vscode.StatusBarItem): Promise<void> {
  const python = await interpreter();
  running = python;
  const name = keyName(String(setting("service.url") ?? ""));
  const key = name === undefined ? undefined : await context.secrets.get(name);
  const run = {
    command: python,
    args: ["-m", "backprobe", "lsp"],
    options: { env: serverEnvironment(process.env, key), cwd: context.extensionPath },
  };
  const server: ServerOptions = { run, debug: run };
  const options: LanguageClientOptions = {
    documentSelector: [{ scheme: "file", language: "python" }],
    initializationOptions: settings(python),
  };
  const started = new LanguageClient("backprobe", "Backprobe", server, options);
  started.onNotification(STATUS, (status: Status) => {
    item.text = statusText(status);
    item.tooltip = status.message;
    item.show();
  });
  try {
    await started.start();
    client = started;
  } catch (error) {
    item.text = statusText({ state: "trouble", message: "" });
    item.tooltip = `${python} -m backprobe lsp did not start. Install backprobe[lsp] there, or set backprobe.interpreter. ${error}`;
    item.show();
  }
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  await running?.stop();
}

function setting(name: string): unknown {
  return vscode.workspace.getConfiguration("backprobe").get(name);
}

function settings(python: string): Record<string, unknown> {
  return serverSettings(setting, vscode.workspace.isTrusted, python);
}

async function configure(): Promise<void> {
  const told = { settings: { backprobe: settings(await interpreter()) } };
  await client?.sendNotification("workspace/didChangeConfiguration", told);
}

/** The Python that was set, else the one that the Python extension has chosen, else `python3`. */
async function interpreter(): Promise<string> {
  const set = setting("interpreter");
  if (typeof set === "string" && set !== "") {
    return set;
  }
  const environments = await pythonEnvironments();
  const chosen = environments?.getActiveEnvironmentPath?.(vscode.workspace.workspaceFolders?.[0]?.uri);
  return typeof chosen?.path === "string" && chosen.path !== "" ? chosen.path : "python3";
}

/** What of the Python extension's API is used here. */
interface Environments {
  getActiveEnvironmentPath?(folder: vscode.Uri | undefined): { path?: unknown } | undefined;
  onDidChangeActiveEnvironmentPath?(listener: () => void): vscode.Disposable;
}

async function pythonEnvironments(): Promise<Environments | undefined> {
  const python = vscode.extensions.getExtension("ms-python.python");
  return python === undefined || !vscode.workspace.isTrusted ? undefined : (await python.activate())?.environments;
}

/** Another Python was chosen there: the server starts again, in it. */
async function followPython(context: vscode.ExtensionContext, restart: () => Promise<void>): Promise<void> {
  const listener = (await pythonEnvironments())?.onDidChangeActiveEnvironmentPath?.(async () => {
    if ((await interpreter()) !== running) {
      await restart();
    }
  });
  if (listener !== undefined) {
    context.subscriptions.push(listener);
  }
}

async function send(command: string, ...args: unknown[]): Promise<void> {
  await client?.sendRequest("workspace/executeCommand", { command, arguments: args });
}

async function runFile(): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document !== undefined && document.languageId === "python") {
    await document.save();
    await send("backprobe.run", document.uri.toString());
  }
}

async function setKey(context: vscode.ExtensionContext, restart: () => Promise<void>): Promise<void> {
  const url = String(setting("service.url") ?? "");
  const name = keyName(url);
  if (name === undefined) {
    await vscode.window.showWarningMessage("Set backprobe.service.url first: a key is kept for one address.");
    return;
  }
  const key = await vscode.window.showInputBox({ prompt: `Key of ${url}; empty to forget it`, password: true });
  if (key === undefined) {
    return;
  }
  await (key === "" ? context.secrets.delete(name) : context.secrets.store(name, key));
  await restart();
}
