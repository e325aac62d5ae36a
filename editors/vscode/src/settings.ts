// What the language server is told: pure, so that it is tested without an editor.

/** One value of the editor's configuration by its name below `backprobe.`. */
export type Read = (name: string) => unknown;

/** The settings as `backprobe lsp` takes them; an empty text stands for "not set" and is left out. */
export function serverSettings(read: Read, trusted: boolean, interpreter: string): Record<string, unknown> {
  const url = text(read("service.url"));
  const isolation = text(read("service.isolation"));
  return {
    trusted,
    interpreter,
    runOnSave: read("runOnSave") !== false,
    entries: Array.isArray(read("entries")) ? read("entries") : [],
    seconds: typeof read("seconds") === "number" ? read("seconds") : 10,
    hints: {
      leaf: read("hints.leaf") !== false,
      gradient: read("hints.gradient") !== false,
      held: read("hints.held") !== false,
    },
    ...(url === undefined ? {} : { service: isolation === undefined ? { url } : { url, isolation } }),
  };
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** Under which name a service's key is kept: one for each host, so that no other address is ever sent it. */
export function keyName(url: string): string | undefined {
  try {
    const { protocol, host } = new URL(url);
    return protocol === "http:" || protocol === "https:" ? `key ${protocol}//${host}` : undefined;
  } catch {
    return undefined;
  }
}

/** The environment of the server: the editor's, and of keys the one that is kept for this address alone. */
export function serverEnvironment(
  inherited: Record<string, string | undefined>,
  key: string | undefined,
): Record<string, string> {
  const kept = Object.entries(inherited).filter(
    (pair): pair is [string, string] => pair[1] !== undefined && pair[0] !== "BACKPROBE_API_KEY",
  );
  return { ...Object.fromEntries(kept), ...(key === undefined ? {} : { BACKPROBE_API_KEY: key }) };
}

/** What the server says of how things stand. */
export interface Status {
  state: "idle" | "running" | "trouble" | "untrusted";
  message: string;
}

const SIGNS: Record<Status["state"], string> = {
  idle: "$(pulse)",
  running: "$(sync~spin)",
  trouble: "$(warning)",
  untrusted: "$(shield)",
};

/** The status-bar item's text; the message is its tooltip. */
export function statusText(status: Status): string {
  return `${SIGNS[status.state] ?? SIGNS.trouble} Backprobe`;
}
