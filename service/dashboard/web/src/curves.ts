// The curves' own bundle: the library that draws them is as large as all islands together.
import { startCurves } from "./curves/section";

for (const place of document.querySelectorAll<HTMLElement>("[data-curves]")) startCurves(place);
