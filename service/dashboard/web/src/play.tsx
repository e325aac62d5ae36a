// The playground's own bundle: the editor is large, so no other page loads it.
import { render } from "preact";
import { createEditor } from "./play/editor";
import { Playground } from "./play/playground";
import type { Opened } from "./play/wire";

const place = document.getElementById("play") as HTMLElement;
const form = place.querySelector("form") as HTMLFormElement;
const area = document.getElementById("program") as HTMLTextAreaElement;
const opened = JSON.parse(document.getElementById("play-opened")?.textContent ?? "{}") as Opened;

let textChanged: (text: string) => void = () => undefined;
let run: () => void = () => undefined;
place.classList.add("scripted");
const editor = createEditor(area, place.dataset.nonce ?? "", (text) => textChanged(text), () => run());
form.addEventListener("submit", (event) => { event.preventDefault(); run(); });
render(
  <Playground editor={editor} opened={opened} firstRun={new URLSearchParams(location.search).get("run")}
    onText={(listener) => { textChanged = listener; }} onRun={(listener) => { run = listener; }} />,
  document.getElementById("play-answer") as HTMLElement,
);
