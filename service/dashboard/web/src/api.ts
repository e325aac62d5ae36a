// The only caller of fetch. In a report everything is in the file already, under the address that the API would have.

export interface Problem { title: string; detail: string; code: string; request: string; line: number | null }

const problem = (title: string, detail: string): Problem => ({ title, detail, code: "", request: "", line: null });

let inFile: Record<string, unknown> | null | undefined;

function embedded(): Record<string, unknown> | null {
  if (inFile === undefined) {
    const text = document.getElementById("in-file")?.textContent;
    inFile = text ? (JSON.parse(text) as Record<string, unknown>) : null;
  }
  return inFile;
}

export const isReport = (): boolean => embedded() !== null;

const known = new Map<string, Promise<unknown>>();

/** What the API answers at `base/path`; a failure is a `Problem`, and is asked again the next time. */
export function ask<T>(base: string, path: string): Promise<T> {
  const file = embedded();
  if (file !== null) {
    return path in file
      ? Promise.resolve(file[path] as T)
      : Promise.reject<T>(problem("Not in this report", "Only what was asked for when it was written is in it."));
  }
  const shipped = [...document.querySelectorAll("script[data-answer]")].find((one) => one.getAttribute("data-answer") === path);
  if (shipped) return Promise.resolve(JSON.parse(shipped.textContent ?? "") as T);
  const address = `${base}/${path}`;
  const before = known.get(address);
  if (before) return before as Promise<T>;
  const now = request<T>(address);
  known.set(address, now);
  now.catch(() => known.delete(address));
  if (known.size > 60) known.delete(known.keys().next().value as string);
  return now;
}

export const inReport = (path: string): boolean => { const file = embedded(); return file !== null && path in file; };

/** The JSON of an answer; throws a `Problem` when there is none or it is an error. */
export async function request<T>(address: string, method = "GET", body?: unknown, more: Record<string, string> = {}): Promise<T> {
  const answer = await send(address, method, body, more);
  return (await answer.json().catch(() => ({}))) as T;
}

/** Changes a resource as it stands now: the tag of what is read goes with the change. */
export async function patch(address: string, body: unknown): Promise<void> {
  const seen = await send(address, "GET");
  await send(address, "PATCH", body, { "If-Match": seen.headers.get("ETag") ?? "" });
}

async function send(address: string, method: string, body?: unknown, more: Record<string, string> = {}): Promise<Response> {
  const token = document.querySelector<HTMLMetaElement>("meta[name=csrf-token]")?.content;
  const headers = { Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...(token ? { "X-CSRF-Token": token } : {}), ...more };
  let answer: Response;
  try {
    answer = await fetch(address, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  } catch {
    throw problem("The server does not answer", "Check that it runs, then try again.");
  }
  if (answer.ok) return answer;
  const told = (await answer.json().catch(() => ({}))) as { title?: string; detail?: string; hint?: string; code?: string; request_id?: string; errors?: { line?: number }[] };
  throw {
    title: told.title ?? `HTTP ${answer.status}`,
    detail: `${told.detail ?? ""} ${told.hint ?? ""}`.trim(),
    code: told.code ?? "",
    request: told.request_id ?? "",
    line: told.errors?.[0]?.line ?? null,
  } satisfies Problem;
}
