// A program is sent, waited for and canceled, as any client would do it.
import { request } from "../api";
import type { Opened, Output, Run } from "./wire";

const SECONDS = 2; // a fast run is one request; a slower one can be canceled after this time

export const filesOf = (text: string, opened: Opened): { path: string; text: string }[] =>
  [{ path: opened.entry ?? "snippet.py", text }, ...Object.entries(opened.files).map(([path, content]) => ({ path, text: content }))];

export const bodyOf = (text: string, opened: Opened): unknown =>
  opened.entry === null ? { source: text } : { files: filesOf(text, opened), entry: opened.entry };

const WAIT = { Prefer: `wait=${SECONDS}` };
const INCLUDED = "include=findings,source";

export const loadRun = (run: string): Promise<Run> => request<Run>(`/v1/runs/${encodeURIComponent(run)}?${INCLUDED}`);
export const loadOutput = (run: string): Promise<Output | null> => request<Output>(`/v1/runs/${run}/output`).catch(() => null);

/** The ended run; `began` is called with it as soon as it has an id, and as often as it changes. */
export async function runProgram(text: string, opened: Opened, began: (run: Run) => void): Promise<Run> {
  let run = await request<Run>(`/v1/runs?${INCLUDED}`, "POST", bodyOf(text, opened), WAIT);
  while (!run.ended) {
    began(run);
    run = await request<Run>(`/v1/runs/${run.id}?${INCLUDED}`, "GET", undefined, WAIT);
  }
  return run;
}
