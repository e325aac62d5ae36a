// The editor: CodeMirror in place of the form's textarea, which keeps the text for a form that is sent without scripts.
import { basicSetup, EditorView } from "codemirror";
import { python } from "@codemirror/lang-python";
import { syntaxHighlighting } from "@codemirror/language";
import { classHighlighter } from "@lezer/highlight";

export interface Editor { text: () => string; replace: (text: string) => void; goTo: (line: number) => void }

export function createEditor(area: HTMLTextAreaElement, nonce: string, changed: (text: string) => void, run: () => void): Editor {
  const view = new EditorView({
    doc: area.value,
    extensions: [
      basicSetup, python(), syntaxHighlighting(classHighlighter), EditorView.cspNonce.of(nonce), EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "Program" }),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        area.value = update.state.doc.toString();
        changed(area.value);
      }),
    ],
  });
  area.hidden = true;
  area.after(view.dom);
  // CodeMirror binds Ctrl+Enter to a new line; here it runs the program, so the key is taken before it.
  view.dom.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  }, true);
  return {
    text: () => view.state.doc.toString(),
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    goTo: (line) => {
      const { from } = view.state.doc.line(Math.max(1, Math.min(line, view.state.doc.lines)));
      view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
      view.focus();
    },
  };
}
