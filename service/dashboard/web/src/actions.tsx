// What a person does with a run: run it again, cancel it, pin it, change its labels, delete it. All by the public API.
import { useRef, useState } from "preact/hooks";
import { patch, request, type Problem } from "./api";

interface Run { id: string; links: { page: string } }

const labelsOf = (text: string): Record<string, string> =>
  Object.fromEntries(text.split(",").map((pair) => pair.trim()).filter(Boolean).map((pair) => {
    const [name, ...value] = pair.split("=");
    return [name!.trim(), value.join("=").trim()];
  }));

const change = (run: string, body: unknown): Promise<void> => patch(`/v1/runs/${run}`, body);

export function Actions({ run, ended, recorded, rerun, pinned, labels, wall, memory, limit }: Record<string, string | undefined>) {
  const [said, setSaid] = useState("");
  const [isBusy, setBusy] = useState(false);
  const seconds = useRef<HTMLInputElement>(null);
  const mebibytes = useRef<HTMLInputElement>(null);
  const names = useRef<HTMLInputElement>(null);
  const sure = useRef<HTMLDialogElement>(null);
  const act = (work: () => Promise<string | null>) => async () => {
    setBusy(true);
    setSaid("");
    try {
      const next = await work();
      if (next === null) location.reload(); else location.assign(next);
    } catch (failed) {
      const { title, detail } = failed as Problem;
      setSaid(`${title}. ${detail}`);
      setBusy(false);
    }
  };
  const again = (limits: Record<string, number>) => act(async () => (await request<Run>(`/v1/runs/${run}/rerun`, "POST", { limits })).links.page);
  const longer = Math.min(3600, Number(wall) * 4);
  return (
    <div class="acts">
      {rerun && <button type="button" disabled={isBusy} onClick={again({})}>Run again</button>}
      {rerun && limit === "wall_seconds" && <button type="button" class="first-choice" disabled={isBusy} onClick={again({ wall_seconds: longer })}>Run again with {longer} s</button>}
      {rerun && <details class="act"><summary>Other limits</summary><div>
        <label>Seconds <input ref={seconds} type="number" min="1" max="3600" value={Number(wall) || 60} /></label>
        <label>Memory, MiB <input ref={mebibytes} type="number" min="64" value={Math.round(Number(memory) / 1048576) || 2048} /></label>
        <button type="button" disabled={isBusy} onClick={() => void again({ wall_seconds: Number(seconds.current!.value), memory_bytes: Number(mebibytes.current!.value) * 1048576 })()}>Run again with these</button></div></details>}
      {!ended && <button type="button" disabled={isBusy} onClick={act(async () => { await request(`/v1/runs/${run}/cancel`, "POST"); return null; })}>Cancel</button>}
      <button type="button" disabled={isBusy} aria-pressed={pinned ? "true" : "false"} title="A pinned record is not deleted when its time is over" onClick={act(async () => { await change(run!, { pinned: !pinned }); return null; })}>{pinned ? "Unpin" : "Pin"}</button>
      <details class="act"><summary>Labels</summary><div>
        <label>name=value, separated by commas <input ref={names} type="text" size={30} value={labels} /></label>
        <button type="button" disabled={isBusy} onClick={act(async () => { await change(run!, { labels: labelsOf(names.current!.value) }); return null; })}>Save the labels</button></div></details>
      {ended && recorded && <button type="button" disabled={isBusy} onClick={() => sure.current!.showModal()}>Delete</button>}
      <dialog ref={sure} aria-label="Delete the record of this run?">
        <p>Delete the record, the output and the source of this run? The run and its findings stay. This cannot be undone.</p>
        <p class="play-bar"><button type="button" onClick={() => sure.current!.close()}>Keep it</button> <button type="button" disabled={isBusy} onClick={act(async () => { sure.current!.close(); await request(`/v1/runs/${run}`, "DELETE"); return null; })}>Delete it</button></p>
      </dialog>
      <span class="bad-words" role="status">{said}</span>
    </div>
  );
}
