// The only caller of fetch. In a report everything is in the file already, under the address that the API would have.

export interface Problem { title: string; detail: string; code: string; request: string }

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
      : Promise.reject<T>({ title: "Not in this report", detail: "Only what was asked for when it was written is in it.", code: "", request: "" });
  }
  const shipped = [...document.querySelectorAll("script[data-answer]")].find((one) => one.getAttribute("data-answer") === path);
  if (shipped) return Promise.resolve(JSON.parse(shipped.textContent ?? "") as T);
  const address = `${base}/${path}`;
  const before = known.get(address);
  if (before) return before as Promise<T>;
  const now = fetched<T>(address);
  known.set(address, now);
  now.catch(() => known.delete(address));
  if (known.size > 60) known.delete(known.keys().next().value as string);
  return now;
}

export const inReport = (path: string): boolean => { const file = embedded(); return file !== null && path in file; };

async function fetched<T>(address: string): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(address, { headers: { Accept: "application/json" } });
  } catch {
    throw { title: "The server does not answer", detail: "Is it still running?", code: "", request: "" } satisfies Problem;
  }
  const told = (await answer.json().catch(() => ({}))) as Record<string, string>;
  if (answer.ok) return told as T;
  throw { title: told.title ?? `HTTP ${answer.status}`, detail: told.detail ?? "", code: told.code ?? "", request: told.request_id ?? "" } satisfies Problem;
}
