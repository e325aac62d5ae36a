// Mounts the islands into their empty elements, and hides their server twins once they are painted.
import { render, type VNode } from "preact";
import { follow } from "./live";
import { GraphPane } from "./graph/graph";
import { HeatPane } from "./heat";
import { HeldPane } from "./held";
import { start } from "./selection";
import { startAudits, startExamples } from "./requests";
import { startTools } from "./tools";

const ISLANDS: Record<string, (data: DOMStringMap) => VNode> = {
  graph: ({ base, calls, first }) => <GraphPane base={base ?? ""} calls={Number(calls)} first={Number(first)} />,
  heat: ({ base }) => <HeatPane base={base ?? ""} />,
  held: ({ base }) => <HeldPane base={base ?? ""} />,
};

document.documentElement.classList.add("js");
for (const element of document.querySelectorAll<HTMLElement>("[data-island]")) {
  const island = ISLANDS[element.dataset.island ?? ""];
  if (!island) continue;
  element.closest<HTMLElement>("section[hidden]")?.removeAttribute("hidden");
  render(island(element.dataset), element);
  const twin = element.dataset.twin ? document.getElementById(element.dataset.twin) : null;
  twin?.remove(); // what the island shows better need not lie twice on the page
}
const live = document.querySelector<HTMLElement>("[data-live]");
if (live) follow(live.dataset.live ?? "", live.dataset.empty === "true", live);
start();
startTools();
startExamples();
startAudits();
