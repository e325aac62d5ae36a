// Mounts the islands into their empty elements, and hides their server twins once they are painted.
import { render, type VNode } from "preact";
import { follow } from "./live";
import { Actions } from "./actions";
import { GraphPane } from "./graph/graph";
import { HeatPane } from "./heat";
import { HeldPane } from "./held";
import { Inbox } from "./inbox";
import { start } from "./selection";
import { startAudits, startExamples } from "./requests";
import { startTools } from "./tools";

const ISLANDS: Record<string, (data: DOMStringMap) => VNode> = {
  actions: (data) => <Actions {...data} />,
  graph: ({ base, calls, first }) => <GraphPane base={base ?? ""} calls={Number(calls)} first={Number(first)} />,
  heat: ({ base }) => <HeatPane base={base ?? ""} />,
  held: ({ base }) => <HeldPane base={base ?? ""} />,
  inbox: ({ only, me }) => <Inbox group={only} me={me ?? ""} />,
};

document.documentElement.classList.add("js");
start(); // the selection of the address, before any island asks for it
for (const element of document.querySelectorAll<HTMLElement>("[data-island]")) {
  const island = ISLANDS[element.dataset.island ?? ""];
  if (!island) continue;
  element.closest<HTMLElement>("section[hidden]")?.removeAttribute("hidden");
  render(island(element.dataset), element);
  const twin = element.dataset.twin ? document.getElementById(element.dataset.twin) : null;
  twin?.remove(); // what the island shows better need not lie twice on the page
}
const live = document.querySelector<HTMLElement>("[data-live]");
if (live) follow(live);
startTools();
startExamples();
startAudits();
