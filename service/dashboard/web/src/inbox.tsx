// What a team does about groups of findings: one group on its page, or those that are ticked in the list.
import { useRef, useState } from "preact/hooks";
import { request, type Problem } from "./api";

interface Group { version: number; state: string; state_at: string | null; state_by: string | null; owner: string | null }

const TRIES = 3; // a run that shows the group meanwhile changes its version too

const shownOf = (id: string): HTMLElement => document.querySelector<HTMLElement>(`[data-group="${CSS.escape(id)}"]`)!;
const ticked = (): string[] => [...document.querySelectorAll<HTMLInputElement>("input[name=group]:checked")].map((box) => box.value);
const nameOf = (id: string): string => shownOf(id).querySelector("th, h1")?.querySelector("a")?.textContent ?? "";

/** Another person changed what the page shows: it is remembered as shown, so that the same action may be pressed again. */
function findConflict(shown: HTMLElement, seen: Group): string | null {
  const { state, at, owner } = shown.dataset;
  if (seen.state === state && (seen.state_at ?? "") === at && (seen.owner ?? "") === owner) return null;
  Object.assign(shown.dataset, { state: seen.state, at: seen.state_at ?? "", owner: seen.owner ?? "" });
  const whose = seen.owner ? `owner ${seen.owner}` : "no owner";
  return `Someone else changed this group: it is ${seen.state === "suppressed" ? "muted" : seen.state}${seen.state_by ? ` by ${seen.state_by}` : ""}, ${whose}. Nothing was written. Press the button again to write over it, or reload the page.`;
}

/** Null, or in words why the group was not changed. */
async function act(id: string, body: unknown): Promise<string | null> {
  const address = `/v1/finding-groups/${id}`;
  for (let tried = 1; ; tried += 1) {
    try {
      const seen = await request<Group>(address);
      const conflict = findConflict(shownOf(id), seen);
      if (conflict) return conflict;
      const { state, state_at, owner } = await request<Group>(address, "PATCH", body, { "If-Match": `"${seen.version}"` });
      Object.assign(shownOf(id).dataset, { state, at: state_at ?? "", owner: owner ?? "" });
      return null;
    } catch (failed) {
      const { title, detail, code } = failed as Problem;
      if (code !== "stale" || tried === TRIES) return `${title}. ${detail}`;
    }
  }
}

export function Inbox({ group, me }: { group: string | undefined; me: string }) {
  const [said, setSaid] = useState<string[]>([]);
  const [isBusy, setBusy] = useState(false);
  const [count, setCount] = useState(0);
  const reason = useRef<HTMLInputElement>(null);
  const until = useRef<HTMLInputElement>(null);
  const owner = useRef<HTMLInputElement>(null);
  const change = async (body: unknown) => {
    const chosen = group ? [group] : ticked();
    if (!chosen.length) { setSaid(["Tick the groups to change first."]); return; }
    setBusy(true);
    setSaid(["Changing."]);
    const refused: string[] = [];
    for (const id of chosen) {
      const why = await act(id, body);
      if (why) { refused.push(group ? why : `${nameOf(id)}: ${why}`); continue; }
      const box = shownOf(id).querySelector<HTMLInputElement>("input[name=group]");
      if (box) box.checked = false;
      shownOf(id).classList.add("done");
      shownOf(id).querySelector(".status")!.textContent = "changed";
    }
    setBusy(false);
    if (!refused.length) { location.reload(); return; }
    setCount(ticked().length);
    setSaid(group ? refused : [`${chosen.length - refused.length} of ${chosen.length} groups were changed.`, ...refused]);
  };
  const mute = () => {
    if (!reason.current!.value.trim()) { setSaid(["Type the reason for the mute first."]); reason.current!.focus(); return; }
    const end = until.current!.value;
    void change({ state: "suppressed", reason: reason.current!.value.trim(), muted_until: end ? new Date(`${end}T23:59:59`).toISOString() : null });
  };
  const tickAll = (isTicked: boolean) => {
    for (const box of document.querySelectorAll<HTMLInputElement>("input[name=group]")) box.checked = isTicked;
    setCount(ticked().length);
  };
  if (!group) for (const box of document.querySelectorAll<HTMLInputElement>("input[name=group]")) box.onchange = () => setCount(ticked().length);
  const state = (word: string, label: string) => <button type="button" disabled={isBusy} onClick={() => void change({ state: word })}>{label}</button>;
  return (
    <div class="acts">
      {!group && <label><input type="checkbox" onChange={(event) => tickAll(event.currentTarget.checked)} /> All on this page</label>}
      {!group && <span>{count} chosen</span>}
      {state("acknowledged", "Acknowledge")}
      {state("fixed", "Mark fixed")}
      {state("open", "Reopen")}
      <details class="act"><summary>Mute</summary><form onSubmit={(event) => { event.preventDefault(); mute(); }}>
        <label>Reason <input ref={reason} type="text" size={30} maxLength={200} /></label>
        <label>Until the end of <input ref={until} type="date" /></label>
        <button disabled={isBusy}>Mute</button></form></details>
      <details class="act"><summary>Assign</summary><form onSubmit={(event) => { event.preventDefault(); void change({ owner: owner.current!.value.trim() || null }); }}>
        <label>Owner <input ref={owner} type="text" size={24} maxLength={200} /></label>
        <button disabled={isBusy}>Assign</button>
        <button type="button" disabled={isBusy} onClick={() => { owner.current!.value = me; void change({ owner: me }); }}>Assign to me</button></form></details>
      <div class="bad-words" role="status">{said.map((line) => <p key={line}>{line}</p>)}</div>
    </div>
  );
}
